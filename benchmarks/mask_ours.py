"""Measures our masks in a process of its own; run by the interpreter whose build of the oracle is asked for."""

from __future__ import annotations

import importlib.metadata
import platform
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

from benchmarks.measuring import Answer, Refused, Request, Stages, measured, serve

_began = time.process_time()
import numpy as np  # noqa: E402

import aufbau.earley.parser  # noqa: E402
from aufbau import Grammar, Oracle, Prefix  # noqa: E402
from aufbau.vocabulary import Vocabulary  # noqa: E402

IMPORTED_S = time.process_time() - _began


class Ours:
    """The oracle, or its syntactic twin."""

    learns = True

    def __init__(self, oracle: Oracle, vocabulary: Vocabulary, start: dict[str, Any]) -> None:
        self._grammar = oracle.grammar
        self._oracle = oracle
        self._vocabulary = vocabulary
        self._start = start
        self._words = np.zeros(-(-len(vocabulary) // 32), np.int32)
        self._prefix: Prefix = oracle.start(**start)

    def begin(self) -> None:
        """A fresh start of the same oracle."""
        self._prefix = self._oracle.start(**self._start)

    def forget(self) -> None:
        """A new oracle over the loaded grammar."""
        self._oracle = Oracle(self._grammar)

    def mask(self) -> None:
        """Into the same buffer each time, packed as the peers' masks are."""
        self._oracle.packed_mask(self._prefix, self._vocabulary, self._words)

    def admits(self, token: int) -> bool:
        """The token's bit."""
        return bool(self._words[token // 32] >> (token % 32) & 1)

    def accept(self, token: int) -> None:
        """Feed its spelling."""
        self._prefix = self._prefix.feed(self._vocabulary.spelling(token))

    def feed(self, text: str) -> None:
        """Add text that is no token."""
        self._prefix = self._prefix.feed(text)
        if self._prefix.lost_at is not None:
            raise Refused(f"{text!r} is not admitted after {self._prefix.text[-60:]!r}")

    def admitted(self) -> Any:
        """The ids that the last mask admits."""
        return np.flatnonzero(np.unpackbits(self._words.view(np.uint8), bitorder="little"))

    def spelling(self, token: int) -> bytes:
        """What a token writes."""
        return self._vocabulary.spelling(token)

    @property
    def text(self) -> bytes:
        """The text so far."""
        return self._prefix.text

    def cache_bytes(self) -> int:
        """What masks keep between calls, over all automata."""
        return sum(report.nbytes for report in self._oracle.mask_caches())


def load(request: Request, stages: Stages) -> Ours:
    """Grammar, oracle and vocabulary, as a user loads them."""
    with stages.stage("grammar"):
        oracle = Oracle(Grammar.load(request["grammar"]))
        if request["syntax_only"]:
            oracle = oracle.syntactic()
    with stages.stage("vocabulary"):
        vocabulary = Vocabulary.from_tiktoken(request["vocabulary"], special={"<stop>": request["stop"]})
    return Ours(oracle, vocabulary, request["start"])


def sources() -> str:
    """A short digest of the engine's sources, to tell builds apart."""
    digest = sha256()
    folder = Path(aufbau.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        digest.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def facts() -> dict[str, str]:
    """What the figures depend on."""
    return {
        "version": f"aufbau {importlib.metadata.version('aufbau')}",
        "sources": sources(),
        "build": "interpreted" if str(aufbau.earley.parser.__file__).endswith(".py") else "compiled",
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def measure(request: Request) -> Answer:
    """All that the request asks for."""
    if request.get("facts_only"):
        return facts()
    answer = measured(lambda stages: load(request, stages), request)
    return answer | {"import_s": IMPORTED_S, "facts": facts()}


if __name__ == "__main__":
    serve(measure)
