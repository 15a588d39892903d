"""Runs the reference engine in an interpreter of its own; its module has the name of ours.

It loads our grammar files unchanged. Two ways to ask it for a verdict on a whole text are timed: `try_feed`,
which the paper reports, and `mask` with one candidate, which does less (it prints no syntax tree).
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import platform
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.serving import Request, serve
else:  # run as a script: the folder above would offer our own `aufbau`
    from serving import Request, serve

peer = importlib.import_module("aufbau")


@functools.cache
def load(grammar: str) -> Any:
    """The engine's grammar, loaded once."""
    return peer.SPG(grammar)


def prepare(request: Request) -> Callable[[], str]:
    """A fresh synthesizer, and what to do with it."""
    synthesizer = peer.Synthesizer.from_grammar(load(request["grammar"]))
    text: str = request["text"]

    def try_feed() -> str:
        synthesizer.try_feed(text)  # raises on a dead text
        return "kept"

    def mask() -> str:
        return "kept" if synthesizer.mask([text])[0] else "dead"

    def feed_each() -> str:
        for character in text:
            synthesizer.feed(character)
        return str(synthesizer.status())

    return {"whole": try_feed, "whole, mask only": mask, "byte by byte": feed_each}[request["mode"]]


if __name__ == "__main__":
    version = importlib.metadata.version("aufbau-rs")
    serve({"engine": f"aufbau-rs {version}", "python": platform.python_version()}, prepare)
