"""The benchmark measures what it says: slopes, families, and a bound on every request."""

from __future__ import annotations

import sys
from functools import cache

import pytest

from aufbau import Grammar, Oracle, Verdict
from benchmarks.families import FAMILIES, Family
from benchmarks.report import Cost, Point, Report, markdown, slope
from benchmarks.worker import Worker, WorkerFailed

# A worker that echoes each request's "answer", sleeps for ever on "hang" and ends on "die".
ECHO = """
import json, sys, time
print(json.dumps({"engine": "echo"}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if request["answer"] == "hang":
        time.sleep(60)
    if request["answer"] == "die":
        raise SystemExit("no more")
    print(json.dumps({"verdict": request["answer"]}), flush=True)
"""


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.4, 3.0])
def test_slope_finds_the_exponent(exponent: float) -> None:
    assert slope((n, 7 * n**exponent) for n in (3.0, 10.0, 450.0)) == pytest.approx(exponent)


def test_slope_of_one_size_is_refused() -> None:
    with pytest.raises(ValueError, match="two different sizes"):
        slope([(5.0, 1.0), (5.0, 2.0)])


@cache
def oracle(source: str) -> Oracle:
    return Oracle(Grammar.parse(source))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.title)
def test_families_are_programs_of_their_language(family: Family) -> None:
    for source in family.grammars().values():
        for repetitions in (1, 2, 7):
            assert oracle(source).start().feed(family.build(repetitions).text).verdict is Verdict.SATISFIED


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.title)
def test_families_fill_the_size_asked_for(family: Family) -> None:
    for size in (16, 64, 450):
        assert size / 2 < family.nearest(size).lexemes <= size
    assert 100 <= len(family.at_least(100).body) < 110


def test_worker_answers_and_outlives_a_request_that_hangs() -> None:
    with Worker([sys.executable, "-c", ECHO]) as worker:
        assert worker.facts == {"engine": "echo"}
        assert worker.ask({"answer": "one"}, limit_s=20) == {"verdict": "one"}
        assert worker.ask({"answer": "hang"}, limit_s=0.2) is None
        assert worker.ask({"answer": "two"}, limit_s=20) == {"verdict": "two"}


def test_worker_that_dies_says_what_it_wrote() -> None:
    with Worker([sys.executable, "-c", ECHO]) as worker, pytest.raises(WorkerFailed, match="no more"):
        worker.ask({"answer": "die"}, limit_s=20)


def test_report_shows_missing_sizes_as_gaps() -> None:
    def point(size: int, seconds: float) -> Point:
        return Point(
            engine="e",
            grammar="g",
            family="f",
            mode="whole",
            size=size,
            lexemes=size,
            bytes=size,
            median_s=seconds,
            runs=1,
        )

    report = Report(
        facts={"cpu": "some"},
        limit_s=60,
        points=(point(10, 0.001), point(100, 0.01), point(1000, 0.1)),
        costs=(Cost(family="f", tenth_s=0.001, mean_s=0.002, hundred_s=0.08),),
    )
    page = markdown(report)
    assert "| f | e | g | whole | 1.00 | 10.00 | 100.00 | 1.00 |" in page
    assert "| f | 1000 | 2000 | 80000 | 80 | 40 |" in page
