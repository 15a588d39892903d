"""Measures what a step costs after a hundred and after two thousand lexemes, where the scope does not grow."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.mask_ours import load
from benchmarks.measuring import Answer, Engine, Request, Stages, serve

EARLY, LATE = 100, 2000  # lexemes before the steps that are measured
STEPS = 60  # measured at each place; a multiple of every period below
PASSES = 3  # of which the median is taken


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """A text that goes on for ever by repeating lexemes."""

    name: str
    grammar: str
    head: tuple[str, ...]
    period: tuple[str, ...]

    def lexemes(self, count: int) -> list[str]:
        """The first so many lexemes, each with the white space before it."""
        found = list(self.head)
        while len(found) < count:
            found += self.period
        return found[:count]


_C_HEAD = ("int", " main", "(", "void", ")", " {", " int", " x", " =", " 1", ";")

SHAPES: tuple[Shape, ...] = (
    Shape(name="flat sum", grammar="ml", head=("let", " x", " :", " int", " =", " 1"), period=(" +", " 1")),
    Shape(name="flat list", grammar="ml", head=("let", " x", " :", " int", " list", " =", " [1"), period=(";", " 1")),
    Shape(name="flat sum", grammar="c", head=(*_C_HEAD, " x", " =", " 1"), period=(" +", " 1")),
    Shape(name="statements", grammar="c", head=_C_HEAD, period=(" x", " =", " x", " +", " 1", ";")),
)


def step_ms(lexemes: Sequence[str], engine: Engine, feed: Callable[[str], None]) -> dict[str, float]:
    """The mean CPU milliseconds of a mask and a feed at both places.

    Each step is the median of its times in some passes, after a first one that works things out: a full garbage
    collection takes as long as fifty steps, comes once in thousands, and would be charged to the place that it hits.
    """
    times: dict[int, list[float]] = {}
    for number in range(1 + PASSES):
        engine.begin()
        for index, lexeme in enumerate(lexemes):
            wanted = any(place <= index < place + STEPS for place in (EARLY, LATE))
            began = time.process_time()
            if wanted:
                engine.mask()
            feed(lexeme)
            if wanted and number:
                times.setdefault(index, []).append(time.process_time() - began)

    def mean(place: int) -> float:
        return statistics.mean(statistics.median(times[place + step]) for step in range(STEPS))

    return {"early_ms": 1e3 * mean(EARLY), "late_ms": 1e3 * mean(LATE)}


def measure(request: Request) -> Answer:
    """Both places of one shape."""
    shape = next(s for s in SHAPES if (s.grammar, s.name) == (request["language"], request["shape"]))
    engine = load(request, Stages())
    return step_ms(shape.lexemes(LATE + STEPS), engine, engine.feed)


if __name__ == "__main__":
    serve(measure)
