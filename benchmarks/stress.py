"""Measures how the oracle's cost grows on four stress families, next to the reference engine.

    python -m benchmarks.stress [--peer PYTHON] [--quick] [--out FOLDER]

Every figure is the median CPU time of several runs on fresh starts, without the time to load a grammar. An
engine that runs past the limit on one size is not asked for larger sizes of that family.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.families import FAMILIES, Family, Text
from benchmarks.report import Cost, Point, Report, machine, write
from benchmarks.worker import Worker

FOLDER = Path(__file__).parent
SIZES = (16, 32, 64, 128, 256, 450)  # lexemes at most, geometric; the paper's largest input has 450 tokens
RUNS = 5  # of which the median is taken
BUDGET_S = 5.0  # no further run of a case starts once so much has been spent on it
LIMIT_S = 20.0  # for a case, all its runs; at the edge the engine is killed and the case counts as too slow
COST_RUNS = 9  # for the short per-lexeme figures
COST_LIMIT_S = 120.0  # for one of these, with what is fed before it


@dataclass(frozen=True, kw_only=True, slots=True)
class Engine:
    """An engine's process and the ways to feed it that are measured."""

    worker: Worker
    modes: tuple[str, ...]
    small: bool = False  # whether it reads small grammars only


def curve(engine: Engine, family: Family, grammar: str, mode: str, sizes: tuple[int, ...]) -> list[Point]:
    """The cost of one family by one grammar over all sizes, up to the first that takes too long."""
    source = family.grammars()[grammar]
    points: list[Point] = []
    for size in sizes:
        text = family.nearest(size)
        request = {
            "mode": mode,
            "grammar": source,
            "text": text.text,
            "runs": RUNS,
            "budget_s": BUDGET_S,
        }
        answer = engine.worker.ask(request, limit_s=LIMIT_S)
        if answer is None:
            break
        if answer["verdict"] not in ("SATISFIED", "typed", "kept"):
            raise SystemExit(f"{engine.worker.facts['engine']} calls {family.title} {answer['verdict']}")
        point = Point(
            engine=engine.worker.facts["engine"],
            grammar=grammar,
            family=family.title,
            mode=mode,
            size=size,
            lexemes=text.lexemes,
            bytes=len(text.text.encode()),
            median_s=answer["median_s"],
            runs=answer["runs"],
        )
        milliseconds = point.median_s * 1e3
        print(f"{point.engine:18} {family.title:22} {grammar:14} {mode:16} {text.lexemes:4} {milliseconds:10.2f} ms")
        points.append(point)
    return points


def lexeme_cost(engine: Engine, family: Family) -> Cost:
    """Lexemes at the end of ten against a whole hundred, all after the prelude."""

    def timed(text: Text, start: int, end: int) -> float:
        request: dict[str, Any] = {
            "mode": "whole",
            "grammar": next(iter(family.grammars().values())),
            "before": "".join(text.prelude + text.body[:start]),
            "text": "".join(text.body[start:end]),
            "runs": COST_RUNS,
            "budget_s": BUDGET_S,
        }
        answer = engine.worker.ask(request, limit_s=COST_LIMIT_S)
        if answer is None:
            raise SystemExit(f"{family.title}: {end - start} lexemes took more than {COST_LIMIT_S:.0f} s")
        return float(answer["median_s"])

    text = family.at_least(100)
    return Cost(
        family=family.title,
        tenth_s=timed(text, 9, 10),
        mean_s=timed(text, 10 - family.period, 10) / family.period,
        hundred_s=timed(text, 0, 100),
    )


def main() -> None:
    """Measure, then write the results as JSON, Markdown and a plot."""
    parser = argparse.ArgumentParser(description="stress families: growth of the oracle's cost")
    parser.add_argument("--peer", metavar="PYTHON", help="interpreter that has the reference engine installed")
    parser.add_argument("--quick", action="store_true", help="small sizes only, to see that everything runs")
    parser.add_argument("--out", type=Path, default=FOLDER / "results", help="folder for the results")
    options = parser.parse_args()
    sizes = SIZES[:3] if options.quick else SIZES
    environment = os.environ | {"PYTHONPATH": str(FOLDER.parent)}
    ours = Worker([sys.executable, "-m", "benchmarks.our_runner"], env=environment)
    engines = [Engine(worker=ours, modes=("whole", "byte by byte"))]
    if options.peer:
        peer = Worker([options.peer, "-E", str(FOLDER / "peer_runner.py")])
        engines.append(Engine(worker=peer, modes=("whole", "whole, mask only", "byte by byte"), small=True))
    points = [
        point
        for engine in engines
        for family in FAMILIES
        for grammar in list(family.grammars())[-1 if engine.small else 0 :]
        for mode in engine.modes
        for point in curve(engine, family, grammar, mode, sizes)
    ]
    costs = [lexeme_cost(engines[0], family) for family in FAMILIES]
    for engine in engines:
        engine.worker.close()
    facts = machine() | {f"python of {e.worker.facts['engine']}": e.worker.facts["python"] for e in engines}
    write(Report(facts=facts, limit_s=LIMIT_S, points=tuple(points), costs=tuple(costs)), options.out)


if __name__ == "__main__":
    main()
