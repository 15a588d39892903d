"""Exact byte spellings of a tokenizer's tokens, with special and stop tokens kept apart."""

from __future__ import annotations

import json
import re
from binascii import a2b_base64
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from aufbau.errors import AufbauError
from aufbau.store import default_store
from aufbau.vocabulary.spelled import Bytes
from aufbau.vocabulary.trie import Trie

# Names under which published chat models end a turn; each counts only where the tokenizer declares it
# special.
_END_TOKENS = frozenset(
    {
        "</s>",
        "<eos>",
        "<end_of_turn>",
        "<|end|>",
        "<|end_of_text|>",
        "<|endoftext|>",
        "<|eom_id|>",
        "<|eot_id|>",
        "<|im_end|>",
        "<|return|>",
    }
)
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_METASPACE = "\u2581"
_LONG: Final = 100_000  # bytes from which on a file is kept: they take about 5 ms to read


class VocabularyError(AufbauError):
    """A tokenizer whose tokens have no exact byte spelling that we know how to read."""


@final
class Vocabulary:
    """What each token id writes, in bytes. Immutable, hashable by identity, safe to share.

    A token may be a part of a UTF-8 character, and several tokens may have one spelling. Special tokens
    (beginning and end of a turn, padding, …) are not text: their spelling is empty and no mask ever
    admits them.
    """

    def __init__(
        self, spellings: Sequence[bytes] | Bytes, *, special: Collection[int] = (), stop: Iterable[int] = ()
    ) -> None:
        source = spellings if isinstance(spellings, Bytes) else Bytes(spellings)
        self.stop: tuple[int, ...] = tuple(dict.fromkeys(stop))
        # A token that writes nothing can never make progress, so it is kept apart like a special one.
        silent = np.flatnonzero(source.starts == source.ends).tolist()
        self.special: frozenset[int] = frozenset(special) | frozenset(self.stop) | frozenset(silent)
        outside = sorted(token for token in self.special if not 0 <= token < len(source))
        if outside:
            raise VocabularyError(
                f"token ids {outside[:5]} are declared special or stop, but the vocabulary has the ids 0 to"
                f" {len(source) - 1}; give a spelling (b'' will do) for each id"
            )
        self.bytes: Final = source.changed(len(source), self.special)  # the spellings as arrays

    @classmethod
    def from_tokenizer(cls, tokenizer: Any, *, stop: Iterable[int] = ()) -> Vocabulary:
        """Read a fast tokenizer of `transformers`; `stop` adds end tokens that only model settings name.

        Byte-level BPE and SentencePiece (with or without byte fallback) are understood; others raise
        `VocabularyError`, since a spelling that is nearly right would let an inadmissible text pass.
        """
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise VocabularyError(
                f"{type(tokenizer).__name__} is not a fast tokenizer, so its byte spellings cannot be read;"
                " load it with AutoTokenizer.from_pretrained(…, use_fast=True)"
            )
        added: dict[int, Any] = dict(tokenizer.added_tokens_decoder)
        spellings = _spellings(backend, added)
        special = {token for token, entry in added.items() if entry.special}
        special.update(token for token in tokenizer.all_special_ids if token is not None)
        ends = [] if tokenizer.eos_token_id is None else [int(tokenizer.eos_token_id)]
        ends.extend(sorted(token for token in special if token in added and added[token].content in _END_TOKENS))
        return cls(spellings, special=special, stop=[*ends, *stop])

    @classmethod
    def from_tiktoken(
        cls,
        path: str | Path,
        *,
        special: Mapping[str, int] | None = None,
        stop: Iterable[int] = (),
        cache: bool = True,
    ) -> Vocabulary:
        """Read a tiktoken file: one token a line, its bytes in base64 and its id.

        Such a file does not list special tokens, so their names and ids are given here; those that published models
        end a turn with are stop tokens. Ids between that name no token are special. What a long file holds is kept on
        disk for later processes (`aufbau.store`), unless `cache` is False.
        """
        data = Path(path).read_bytes()
        store = default_store() if cache and len(data) >= _LONG else None
        shelf = None if store is None else store.shelf("tiktoken", data)
        kept = None if shelf is None else shelf.read()
        source = _tiktoken(data, path) if kept is None else Bytes.unpack(kept)
        if shelf is not None and kept is None:
            shelf.write(source.pack())
        named = special or {}
        clash = sorted(token for token in named.values() if 0 <= token < len(source) and source[token])
        if clash:
            raise VocabularyError(f"the special token ids {clash[:5]} are ordinary tokens of {path}")
        size = 1 + max(named.values(), default=-1)
        ends = [token for name, token in named.items() if name in _END_TOKENS]
        return cls(source.changed(size, ()), special=named.values(), stop=[*ends, *stop])

    def __len__(self) -> int:
        return len(self.bytes)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.bytes)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} tokens, {len(self.special)} special, stop={self.stop})"

    def spelling(self, token: int) -> bytes:
        """The bytes that `token` writes; empty for a special token."""
        return self.bytes[token]

    @cached_property
    def longest(self) -> int:
        """The length of the longest spelling, in bytes."""
        return int((self.bytes.ends - self.bytes.starts).max(initial=0))

    def begins(self, text: bytes) -> bool:
        """Whether some token's spelling begins with this text and is longer."""
        return self.trie.extends(text)

    @cached_property
    def trie(self) -> Trie:
        """The byte trie over the spellings, built at first use."""
        return Trie(list(self.bytes))


def _tiktoken(data: bytes, path: str | Path) -> Bytes:
    """The spellings in a tiktoken file; ids that name no token get the empty one."""
    by_id: dict[int, bytes] = {}
    for number, line in enumerate(data.splitlines(), start=1):
        parts = line.split()
        if not parts:
            continue
        try:
            text, token = parts
            by_id[int(token)] = a2b_base64(text, strict_mode=True)
        except ValueError as error:
            raise VocabularyError(
                f"{path}, line {number}: {line[:40]!r} is no tiktoken entry ({error}); each line has the base64"
                " of the token's bytes, a space, and its id"
            ) from error
    return Bytes(by_id.get(token, b"") for token in range(1 + max(by_id, default=-1)))


def _spellings(backend: Any, added: Mapping[int, Any]) -> list[bytes]:
    """The spelling of every id from 0 on; ids that name no token get the empty one."""
    read = _reader(None if backend.decoder is None else json.loads(backend.decoder.__getstate__()))
    by_id = {token: read(text) for text, token in _model_tokens(backend)}
    # An added token is matched in the text before the model sees it, so it writes its own content.
    by_id.update((token, read.added(entry.content)) for token, entry in added.items())
    return [by_id.get(token, b"") for token in range(max(by_id, default=-1) + 1)]


def _model_tokens(backend: Any) -> Iterable[tuple[str, int]]:
    """Pairs of token text and id; only Unigram models may list a text twice, and do so by position."""
    if type(backend.model).__name__ != "Unigram":
        vocab: dict[str, int] = backend.get_vocab(with_added_tokens=False)
        return vocab.items()
    listed = json.loads(backend.to_str())["model"]["vocab"]
    return ((text, token) for token, (text, _score) in enumerate(listed))


class _ByteLevelReader:
    """Spellings of byte-level BPE, which writes each byte as one printable character."""

    def __init__(self) -> None:
        printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
        shifted = [byte for byte in range(256) if byte not in printable]
        self._bytes = {chr(byte): byte for byte in printable}
        self._bytes.update({chr(256 + place): byte for place, byte in enumerate(shifted)})

    def __call__(self, text: str) -> bytes:
        try:
            return bytes(map(self._bytes.__getitem__, text))
        except KeyError:
            # The decoder of `tokenizers` takes such a token literally as well.
            return text.encode()

    def added(self, text: str) -> bytes:
        """What an added token writes."""
        return text.encode()


class _MetaspaceReader:
    """Spellings of SentencePiece, which writes a space as U+2581 and lone bytes as `<0xHH>`."""

    def __init__(self, *, byte_fallback: bool) -> None:
        self._byte_fallback = byte_fallback

    def __call__(self, text: str) -> bytes:
        if self._byte_fallback and text.startswith("<0x"):
            byte = _BYTE_TOKEN.fullmatch(text)
            if byte is not None:
                return bytes((int(byte[1], 16),))
        return self.added(text)

    def added(self, text: str) -> bytes:
        """What an added token writes: its spaces are spelled like those of the model (Gemma adds series of them)."""
        return text.replace(_METASPACE, " ").encode()


def _reader(decoder: Any) -> _ByteLevelReader | _MetaspaceReader:
    """Choose the reading by the decoder, the part of a tokenizer that turns tokens back into text."""
    decoders = list(_parts(decoder, "decoders"))
    kinds = [str(part["type"]) for part in decoders]
    if "ByteLevel" in kinds:
        return _ByteLevelReader()
    spaced = any(
        part["type"] == "Metaspace" or (part["type"] == "Replace" and part.get("pattern") == {"String": _METASPACE})
        for part in decoders
    )
    if spaced:
        return _MetaspaceReader(byte_fallback="ByteFallback" in kinds)
    raise VocabularyError(
        f"a tokenizer that decodes by {kinds or 'nothing'} has no exact byte spellings that we can read;"
        " use a model with a byte-level BPE or SentencePiece tokenizer (nearly every generative one has)"
    )


def _parts(component: Any, key: str) -> Iterator[Mapping[str, Any]]:
    """The parts of a tokenizer component, with nested sequences laid flat."""
    if component is None:
        return
    if component["type"] == "Sequence":
        for part in component[key]:
            yield from _parts(part, key)
    else:
        yield component
