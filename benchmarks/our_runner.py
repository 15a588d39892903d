"""Runs our oracle, on the same requests and in the same manner as the reference engine is run."""

from __future__ import annotations

import functools
import importlib.metadata
import platform
from collections.abc import Callable

from aufbau import Grammar, Oracle
from benchmarks.serving import Request, serve


@functools.cache
def load(grammar: str) -> Oracle:
    """The compiled oracle, loaded once. What parsing finds is kept by a start, so no run helps the next."""
    return Oracle(Grammar.parse(grammar))


def prepare(request: Request) -> Callable[[], str]:
    """A fresh start, and what to do with it."""
    start = load(request["grammar"]).start().feed(request.get("before", ""))
    text: bytes = request["text"].encode()

    def whole() -> str:
        return start.feed(text).verdict.name

    def feed_each() -> str:
        prefix = start
        for index in range(len(text)):
            prefix = prefix.feed(text[index : index + 1])
        return prefix.verdict.name

    return {"whole": whole, "byte by byte": feed_each}[request["mode"]]


if __name__ == "__main__":
    version = importlib.metadata.version("aufbau")
    serve({"engine": f"aufbau {version}", "python": platform.python_version()}, prepare)
