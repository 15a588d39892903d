"""Vocabularies: spellings are exact, the trie holds every token, and the mask is the exhaustive set."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aufbau.verdict import Verdict
from aufbau.vocabulary import Trie, Vocabulary, VocabularyError, admissible, fast_forward, settled

tokenizers = pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers")

CORPUS = ["hello wörld  12\n\tdef f(x): return x + 1", "naïve café — 日本語 🙂🙂", "ab ab abc  abcd"] * 3


def fast(tokenizer: Any, **names: Any) -> Any:
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def byte_level(*, digits: bool = False) -> Any:
    pre = tokenizers.pre_tokenizers
    cut = pre.ByteLevel(add_prefix_space=False)
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = pre.Sequence([pre.Digits(individual_digits=True), cut]) if digits else cut
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=["<|endoftext|>", "<|im_end|>"],
        initial_alphabet=pre.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return fast(tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>")


def sentence_piece() -> Any:
    decoders = tokenizers.decoders
    words = [
        "<unk>",
        "<s>",
        "</s>",
        *(f"<0x{byte:02X}>" for byte in range(256)),
        "▁",
        "a",
        "b",
        "▁a",
        "ab",
        "▁ab",
    ]
    merges = [("▁", "a"), ("a", "b"), ("▁a", "b")]
    model = tokenizers.models.BPE(
        vocab={word: place for place, word in enumerate(words)},
        merges=merges,
        unk_token="<unk>",
        byte_fallback=True,
        fuse_unk=True,
    )
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer = tokenizers.normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return fast(tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def unigram() -> Any:
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.Unigram([("<unk>", 0.0), ("▁", -1.0), ("a", -2.0), ("▁a", -1.5)], unk_id=0)
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(prepend_scheme="never")
    tokenizer.decoder = tokenizers.decoders.Metaspace(prepend_scheme="never")
    return fast(tokenizer, unk_token="<unk>")


TOKENIZERS = {
    "byte level": byte_level(),
    "digits apart": byte_level(digits=True),
    "sentencepiece": sentence_piece(),
}


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(max_examples=60)
@given(text=st.text(max_size=40))
def test_spellings_of_a_text_join_to_its_bytes(name: str, text: str) -> None:
    tokenizer = TOKENIZERS[name]
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    tokens = tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    assert b"".join(vocabulary.spelling(token) for token in tokens) == text.encode()


@pytest.mark.parametrize("name", TOKENIZERS)
def test_every_byte_is_some_token(name: str) -> None:
    vocabulary = Vocabulary.from_tokenizer(TOKENIZERS[name])
    missing = {bytes((byte,)) for byte in range(256)} - set(vocabulary)
    assert not missing
    assert len(vocabulary) == len(TOKENIZERS[name])


def test_unigram_with_metaspace() -> None:
    vocabulary = Vocabulary.from_tokenizer(unigram())
    assert [vocabulary.spelling(token) for token in range(4)] == [b"", b" ", b"a", b" a"]


def test_special_and_stop_tokens_are_apart() -> None:
    tokenizer = byte_level()
    end, pad = tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|endoftext|>"])
    vocabulary = Vocabulary.from_tokenizer(tokenizer, stop=[7])
    assert vocabulary.stop == (end, pad, 7)
    assert vocabulary.special == {end, pad, 7}
    assert vocabulary.spelling(end) == b""


def test_added_tokens_write_their_own_content() -> None:
    tokenizer = byte_level()
    tokenizer.add_tokens(["<think>", "    ", "é¡"])
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    for text in ("<think>", "    ", "é¡"):
        token = tokenizer.convert_tokens_to_ids(text)
        assert vocabulary.spelling(token) == text.encode()
        assert token not in vocabulary.special


def test_added_series_of_spaces_write_spaces() -> None:
    tokenizer = sentence_piece()
    tokenizer.add_tokens(["▁▁▁"])
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    assert vocabulary.spelling(tokenizer.convert_tokens_to_ids("▁▁▁")) == b"   "


def test_word_piece_is_refused() -> None:
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    tokenizer.decoder = tokenizers.decoders.WordPiece()
    with pytest.raises(VocabularyError, match=r"WordPiece.*byte-level BPE or SentencePiece"):
        Vocabulary.from_tokenizer(fast(tokenizer, unk_token="[UNK]"))


def test_a_slow_tokenizer_is_refused() -> None:
    with pytest.raises(VocabularyError, match="not a fast tokenizer"):
        Vocabulary.from_tokenizer(object())


def test_special_tokens_outside_the_vocabulary_are_refused() -> None:
    with pytest.raises(VocabularyError, match=r"\[5\].*0 to 1"):
        Vocabulary([b"a", b"b"], stop=[5])


def test_tiktoken_files(tmp_path: Path) -> None:
    path = tmp_path / "small.tiktoken"
    path.write_bytes(b"IQ== 0\n4oY= 1\nIA== 3\n\n")
    vocabulary = Vocabulary.from_tiktoken(path, special={"<|im_start|>": 4, "<|im_end|>": 5}, stop=[3])
    assert list(vocabulary) == [b"!", b"\xe2\x86", b"", b"", b"", b""]
    assert vocabulary.stop == (5, 3)
    assert vocabulary.special == {2, 3, 4, 5}


@pytest.mark.parametrize("line", [b"IQ==", b"IQ== x", b"I? 0", b"IQ== 0 0"])
def test_files_that_are_not_tiktoken_are_refused(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "broken.tiktoken"
    path.write_bytes(b"IQ== 0\n" + line)
    with pytest.raises(VocabularyError, match=r"broken\.tiktoken, line 2: .*base64"):
        Vocabulary.from_tiktoken(path)


def test_special_ids_that_a_tiktoken_file_uses_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "small.tiktoken"
    path.write_bytes(b"IQ== 0")
    with pytest.raises(VocabularyError, match=r"\[0\] are ordinary"):
        Vocabulary.from_tiktoken(path, special={"<|im_end|>": 0})


@pytest.mark.parametrize(
    ("tokens", "whole"),
    [
        ([b"re", b"turn"], 0),  # "return" is a token
        ([b"x", b"re"], 1),  # "re" begins "return", "xre" begins nothing
        ([b"x", b"("], 2),
        ([], 0),
    ],
)
def test_tokens_that_more_text_can_change_are_open(tokens: list[bytes], whole: int) -> None:
    spellings = [b"r", b"e", b"re", b"turn", b"returns", b"x", b"("]
    assert settled(Vocabulary(spellings), [spellings.index(token) for token in tokens]) == whole


@settings(max_examples=60)
@given(text=st.text("re turnx(", max_size=12), forced=st.text("return(", max_size=8))
def test_fast_forward_writes_what_the_tokenizer_writes(text: str, forced: str) -> None:
    tokenizer = TOKENIZERS["byte level"]
    vocabulary = Vocabulary.from_tokenizer(tokenizer)

    def encode(data: bytes) -> list[int]:
        return list(tokenizer(data.decode(), add_special_tokens=False)["input_ids"])

    written = encode(text.encode())
    move = fast_forward(vocabulary, encode, written, forced.encode())
    after = [*written[: move.keep], *move.append]
    assert b"".join(map(vocabulary.spelling, after)) in (text + forced).encode()
    assert len(after) >= len(written) or move.append
    whole = encode((text + forced).encode())
    assert not move.append or whole[: len(after)] == after


SPELLINGS = st.lists(st.binary(max_size=4).map(lambda text: bytes(byte % 3 for byte in text)), max_size=30)


@given(spellings=SPELLINGS)
def test_the_trie_holds_each_token_at_its_spelling(spellings: list[bytes]) -> None:
    trie = Trie(spellings)
    found: dict[int, bytes] = {}
    pending = [(trie.root, b"")]
    while pending:
        node, path = pending.pop()
        found.update((token, path) for token in trie.tokens(node))
        children = list(trie.children(node))
        assert [byte for byte, _ in children] == sorted({byte for byte, _ in children})
        pending.extend((child, path + bytes((byte,))) for byte, child in children)
    assert found == {token: text for token, text in enumerate(spellings) if text}


@dataclass(frozen=True, slots=True)
class StartsWith:
    """Not lost while the text begins with one of the words or one of them begins with the text."""

    words: tuple[bytes, ...]
    text: bytes = b""

    @property
    def verdict(self) -> Verdict:
        if self.text in self.words:
            return Verdict.SATISFIED
        return Verdict.LIVE if any(word.startswith(self.text) for word in self.words) else Verdict.LOST

    def feed(self, data: bytes, /) -> StartsWith:
        return StartsWith(self.words, self.text + data)


@given(spellings=SPELLINGS, words=SPELLINGS, fed=st.binary(max_size=2))
def test_the_mask_is_what_feeding_every_token_says(spellings: list[bytes], words: list[bytes], fed: bytes) -> None:
    special = {token for token in range(len(spellings)) if token % 5 == 0}
    vocabulary = Vocabulary(spellings, special=special)
    prefix = StartsWith(tuple(words)).feed(bytes(byte % 3 for byte in fed))
    mask = admissible(prefix, vocabulary)
    assert len(mask) == len(vocabulary)
    for token, text in enumerate(vocabulary):
        expected = token not in vocabulary.special and prefix.feed(text).verdict is not Verdict.LOST
        assert bool(mask[token]) is (expected and prefix.verdict is not Verdict.LOST)


def test_vocabularies_need_no_torch() -> None:
    code = "import sys, aufbau.vocabulary; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
