"""Asks for masks along random walks, and shows whether memory goes on growing."""

from __future__ import annotations

import random
import sys
from typing import Any

import numpy as np

from benchmarks.mask_ours import Ours, load
from benchmarks.measuring import Answer, Request, Stages, memory_mb, serve

MASKS = 10_000
EVERY = 500  # masks between two points of the curve
LENGTH = 300  # bytes after which a walk starts afresh
SHORT = 2  # bytes of the tokens that half of the draws are among, so that walks get on and do not only grow one name


def walk(engine: Ours, lengths: Any, masks: int, every: int, seed: int) -> list[dict[str, float]]:
    """Points of the curve: masks asked for, growth of the process, and what the caches say of themselves."""
    draw = random.Random(seed)
    base = memory_mb()
    points: list[dict[str, float]] = []
    engine.begin()
    for number in range(1, masks + 1):
        engine.mask()
        admitted = engine.admitted()
        if draw.random() < 0.5:
            short = admitted[lengths[admitted] <= SHORT]
            admitted = short if len(short) else admitted
        if len(admitted) == 0 or len(engine.text) > LENGTH:
            engine.begin()
        else:
            engine.accept(int(admitted[draw.randrange(len(admitted))]))
        if number % every == 0 or number == masks:
            point = {"masks": number, "held_mb": memory_mb() - base, "cache_mb": engine.cache_bytes() / 1e6}
            points.append(point)
            print(f"{number:6} masks, {point['held_mb']:7.1f} MB held", file=sys.stderr, flush=True)
    return points


def measure(request: Request) -> Answer:
    """The curve of one grammar, beginning before grammar and vocabulary are loaded."""
    base = memory_mb()
    engine = load(request, Stages())
    loaded = memory_mb() - base
    lengths = np.array([len(engine.spelling(token)) for token in range(request["tokens"])])
    points = walk(engine, lengths, request.get("masks", MASKS), request.get("every", EVERY), request.get("seed", 1))
    return {"points": [point | {"held_mb": point["held_mb"] + loaded} for point in points]}


if __name__ == "__main__":
    serve(measure)
