"""Measures the masks of the syntactic engines, in the interpreter of an environment of their own."""

from __future__ import annotations

import importlib
import importlib.metadata
import platform
import time
from base64 import b64decode
from pathlib import Path
from typing import Any

from benchmarks.measuring import Answer, Engine, Request, Stages, measured, serve


def spellings(request: Request) -> list[bytes]:
    """The spelling of each token from the file that our engine reads too; special tokens have none."""
    found = [b""] * request["tokens"]
    for line in Path(request["vocabulary"]).read_bytes().splitlines():
        text, token = line.split()
        found[int(token)] = b64decode(text)
    return found


class LLGuidance:
    """llguidance, with its general slices; a matcher that is reset keeps the lexer states it has found."""

    learns = True

    def __init__(self, request: Request, stages: Stages) -> None:
        self._module: Any = importlib.import_module("llguidance")
        masks: Any = importlib.import_module("llguidance.numpy")
        self._fill = masks.fill_next_token_bitmask
        with stages.stage("vocabulary"):
            self._tokenizer = self._module.LLTokenizer(self._module.TokenizerWrapper(_Tokens(request)))
        self._grammar = Path(request["grammar"]).read_text(encoding="utf-8")
        with stages.stage("grammar"):
            self.forget()
        self._words: Any = masks.allocate_token_bitmask(1, request["tokens"])

    def begin(self) -> None:
        """The same matcher at the beginning."""
        self._matcher.reset()

    def forget(self) -> None:
        """Another matcher."""
        self._matcher: Any = self._module.LLMatcher(self._tokenizer, self._grammar)
        if self._matcher.is_error():
            raise ValueError(self._matcher.get_error())

    def mask(self) -> None:
        """Into a numpy buffer."""
        self._fill(self._matcher, self._words, 0)

    def admits(self, token: int) -> bool:
        """The token's bit."""
        return bool(self._words[0, token // 32] >> (token % 32) & 1)

    def accept(self, token: int) -> None:
        """Consume it."""
        if not self._matcher.consume_token(token):
            raise ValueError(self._matcher.get_error())

    def cache_bytes(self) -> None:
        """It reports nothing."""


class _Tokens:
    """What llguidance's wrapper of tokenizers asks for."""

    def __init__(self, request: Request) -> None:
        self.tokens = spellings(request)
        # An empty spelling is a special token, which llguidance wants to have a name.
        self.special_token_ids = [token for token, text in enumerate(self.tokens) if not text]
        for token in self.special_token_ids:
            self.tokens[token] = b"<|%d|>" % token
        self.eos_token_id: int = request["stop"]
        self.bos_token_id: int | None = None
        self._ids = {text: token for token, text in enumerate(self.tokens)}

    def __call__(self, text: str | bytes) -> list[int]:
        """Byte by byte: forced tokens, which need more, are not measured."""
        data = text.encode() if isinstance(text, str) else text
        return [self._ids[data[at : at + 1]] for at in range(len(data)) if data[at : at + 1] in self._ids]


class XGrammar:
    """xgrammar; its compiler works things out for a vocabulary when the grammar is loaded, and nothing more is kept."""

    learns = False

    def __init__(self, request: Request, stages: Stages) -> None:
        xgrammar: Any = importlib.import_module("xgrammar")
        self._module = xgrammar
        with stages.stage("vocabulary"):
            information = xgrammar.TokenizerInfo(
                spellings(request), vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[request["stop"]]
            )
        with stages.stage("grammar"):
            compiler = xgrammar.GrammarCompiler(information, max_threads=1, cache_enabled=False)
            self._compiled = compiler.compile_grammar(Path(request["grammar"]).read_text(encoding="utf-8"))
            self.forget()
        self._words: Any = xgrammar.allocate_token_bitmask(1, request["tokens"])
        self._bits = self._words.numpy()

    def begin(self) -> None:
        """The same matcher at the beginning."""
        self._matcher.reset()

    def forget(self) -> None:
        """Another matcher over the compiled grammar."""
        self._matcher: Any = self._module.GrammarMatcher(self._compiled)

    def mask(self) -> None:
        """Into a tensor on the CPU. Where all tokens are admitted it says so and leaves the buffer alone."""
        if not self._matcher.fill_next_token_bitmask(self._words):
            self._words.fill_(-1)

    def admits(self, token: int) -> bool:
        """The token's bit."""
        return bool(self._bits[0, token // 32] >> (token % 32) & 1)

    def accept(self, token: int) -> None:
        """Accept it."""
        if not self._matcher.accept_token(token):
            raise ValueError(f"xgrammar does not accept token {token}, which its mask admits")

    def cache_bytes(self) -> int:
        """The compiled grammar."""
        return int(self._compiled.memory_size_bytes)


ENGINES: dict[str, type[LLGuidance | XGrammar]] = {"llguidance": LLGuidance, "xgrammar": XGrammar}


def measure(request: Request) -> Answer:
    """All that the request asks for."""
    name: str = request["engine"]
    facts = {"version": f"{name} {importlib.metadata.version(name)}", "python": platform.python_version()}
    if request.get("facts_only"):
        return facts
    began = time.process_time()
    importlib.import_module(name)
    imported = time.process_time() - began

    def build(stages: Stages) -> Engine:
        return ENGINES[name](request, stages)

    return measured(build, request) | {"import_s": imported, "facts": facts}


if __name__ == "__main__":
    serve(measure)
