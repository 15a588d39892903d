"""The vocabulary and the chat template that a GGUF file carries, read through llama-cpp-python."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from agentkit.models.errors import ModelLoadError
from agentkit.models.extras import require
from aufbau.vocabulary import Vocabulary

_PIECE = 64  # bytes that hold the spelling of nearly every token


class LlamaTokenizer:
    """What we ask of a tokenizer, of a `llama_cpp.Llama`."""

    def __init__(self, llama: Any) -> None:
        """Raises `ModelLoadError` where no token ends a text."""
        self._llama = llama
        self._api = require("llama_cpp")
        self._vocab = self._api.llama_model_get_vocab(llama.model)
        metadata: Mapping[str, str] = llama.metadata
        self.name: str = metadata.get("general.name") or Path(llama.model_path).stem
        self.chat_template: str | None = metadata.get("tokenizer.chat_template")
        ends = [token for token in range(llama.n_vocab()) if self._api.llama_vocab_is_eog(self._vocab, token)]
        if not ends:
            raise ModelLoadError(
                f"no token of {self.name} ends a text, so llama.cpp could not be told that one is over"
            )
        # The end of a turn comes first, where the file names it.
        first = (int(llama.token_eos()), *ends)
        self._ends = sorted(ends, key=first.index)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The tokens' spellings: control tokens are special, and those that end a text are its stops."""
        silent = {*self.added.values(), *self._ends}
        size = self._llama.n_vocab()
        spellings = [b"" if token in silent else self._piece(token) for token in range(size)]
        return Vocabulary(spellings, special=silent, stop=self._ends)

    @cached_property
    def added(self) -> Mapping[str, int]:
        """The control tokens by their text."""
        tokens = range(self._llama.n_vocab())
        return {self._text(token): token for token in tokens if self._api.llama_vocab_is_control(self._vocab, token)}

    @cached_property
    def added_bos(self) -> str:
        """What llama.cpp itself puts before each prompt; empty where it puts nothing."""
        begins = bool(self._api.llama_vocab_get_add_bos(self._vocab))
        return self._text(self._llama.token_bos()) if begins else ""

    def apply_chat_template(self, turns: Sequence[Mapping[str, str]], *, tokenize: bool, **settings: Any) -> str:
        """The conversation as the file's template writes it."""
        assert not tokenize, "only text is asked for"
        jinja2 = require("jinja2")

        def refuse(message: str) -> NoReturn:
            raise jinja2.exceptions.TemplateError(message)

        sandbox = require("jinja2.sandbox").ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        bos, eos = (self._text(token) for token in (self._llama.token_bos(), self._llama.token_eos()))
        return str(
            sandbox.from_string(self.chat_template).render(
                messages=list(turns),
                bos_token=bos,
                eos_token=eos,
                raise_exception=refuse,
                strftime_now=lambda form: datetime.now().strftime(form),
                **settings,
            )
        )

    def count(self, text: str) -> int:
        """How many tokens llama.cpp makes of a prompt."""
        tokens = self._llama.tokenize(text.encode(), add_bos=False, special=True)
        return len(tokens) + bool(self.added_bos)

    def _piece(self, token: int, room: int = _PIECE) -> bytes:
        buffer = ctypes.create_string_buffer(room)
        # No leading blanks are cut off, and special tokens write nothing.
        length = self._api.llama_token_to_piece(self._vocab, token, buffer, room, 0, False)
        # A negative length says how much room it takes.
        return self._piece(token, -length) if length < 0 else bytes(buffer.raw[:length])

    def _text(self, token: int) -> str:
        return self._api.llama_vocab_get_text(self._vocab, token).decode(errors="replace") if token >= 0 else ""
