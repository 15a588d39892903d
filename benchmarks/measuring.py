"""How masks are measured, the same for every engine: fresh starts, passes over programs, stages, memory.

Standard library only, since it also runs in the environments of the peers.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

Request = dict[str, Any]
Answer = dict[str, Any]
Program = Sequence[int]  # token ids

FOLDS = 2  # for the pass over unseen programs: each part is measured after the others went through


class Engine(Protocol):
    """A grammar and a vocabulary, loaded, and one text under way."""

    @property
    def learns(self) -> bool:
        """Whether a text leaves something behind that later ones profit from; if not, one pass says all."""

    def begin(self) -> None:
        """Start a new text; what earlier ones left behind in caches stays."""

    def forget(self) -> None:
        """Drop what texts left behind in caches, as far as a user can."""

    def mask(self) -> None:
        """Fill the engine's buffer with the packed mask of the text so far."""

    def admits(self, token: int) -> bool:
        """What the mask filled last says of a token."""

    def accept(self, token: int) -> None:
        """Add a token to the text."""

    def cache_bytes(self) -> int | None:
        """The engine's own report of what it keeps, where it has one."""


class Refused(RuntimeError):
    """An engine refused a token of a program that it must accept."""


class Stages:
    """CPU seconds of the stages on the way to the first mask."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Charge what happens inside to a stage."""
        began = time.process_time()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - began


def summary(seconds: Sequence[float]) -> dict[str, float]:
    """The usual figures of some durations, in milliseconds."""
    ordered = sorted(seconds)
    count = len(ordered)
    return {
        "steps": count,
        "median": 1e3 * ordered[count // 2],
        "mean": 1e3 * sum(ordered) / count,
        "p99": 1e3 * ordered[min(count - 1, count * 99 // 100)],
        "max": 1e3 * ordered[-1],
    }


def memory_mb(peak: bool = False) -> float:
    """What the process holds in memory now, or held at most since `forget_peak`."""
    wanted = "VmHWM:" if peak else "VmRSS:"
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(wanted):
            return int(line.split()[1]) / 1024
    raise OSError("/proc/self/status has no memory figures; the benchmark of masks runs on Linux only")


def forget_peak() -> None:
    """Let the peak start again from what is held now."""
    Path("/proc/self/clear_refs").write_text("5")


def passed(engine: Engine, programs: Sequence[Program]) -> tuple[list[float], list[float]]:
    """The CPU seconds of each mask and of each accepted token along the programs."""
    masks: list[float] = []
    accepts: list[float] = []
    for number, program in enumerate(programs):
        engine.begin()
        for place, token in enumerate(program):
            began = time.process_time()
            engine.mask()
            masks.append(time.process_time() - began)
            if not engine.admits(token):
                raise Refused(f"token {place} of program {number} (id {token}) is not admitted")
            began = time.process_time()
            engine.accept(token)
            accepts.append(time.process_time() - began)
    return masks, accepts


def unseen(engine: Engine, programs: Sequence[Program]) -> list[float]:
    """The CPU seconds of each mask of programs whose other half, and nothing else, has gone through before."""
    found: list[float] = []
    for fold in range(FOLDS):
        engine.forget()
        passed(engine, [program for number, program in enumerate(programs) if number % FOLDS != fold])
        found += passed(engine, programs[fold::FOLDS])[0]
    return found


def measured(build: Callable[[Stages], Engine], request: Request) -> Answer:
    """All figures of one engine on one grammar and vocabulary; with `first_only` just those of the first mask."""
    base = memory_mb()
    forget_peak()
    stages = Stages()
    engine = build(stages)
    engine.begin()
    with stages.stage("first mask"):
        engine.mask()
    answer: Answer = {"first": stages.seconds}
    if not request.get("first_only"):
        programs: list[Program] = request["programs"]
        cold, accepts = passed(engine, programs)
        warm, accepts = passed(engine, programs) if engine.learns else (cold, accepts)
        held = engine.cache_bytes()
        answer["cache_mb"] = None if held is None else held / 1e6
        answer["held_mb"], answer["peak_mb"] = memory_mb() - base, memory_mb(peak=True) - base
        new = unseen(engine, programs) if engine.learns else cold
        passes = {"cold": cold, "warm": warm, "unseen": new, "accept": accepts}
        answer |= {name: summary(seconds) for name, seconds in passes.items()}
    return answer


def serve(measure: Callable[[Request], Answer]) -> None:
    """Read one request from standard input, measure, and write the answer as the last line of standard output."""
    print(json.dumps(measure(json.load(sys.stdin))))
