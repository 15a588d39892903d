"""The benchmark of overhead: pairs of runs, medians with intervals, and results that are kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

from benchmarks.overhead import TASKS, TITLES, WAYS, Run, compared, median, read, report, table, write

FREE = Run(task="fun", prompt=0, number=1, decoder="ours", mode="free", tokens=10, cpu_s=1.0, wall_s=1.0, inside_s=0.0)


def runs() -> list[Run]:
    """Every way on every task, in two passes; the oracle takes a tenth of the time of a token, and twice that first."""
    found = []
    for task in TASKS:
        for number in (0, 1):
            for decoder, mode in WAYS:
                inside = 0.0 if mode == "free" else 0.2 if number else 0.5
                one = replace(FREE, task=task, number=number, decoder=decoder, mode=mode)
                # Twice as many tokens: what counts is the time of one.
                longer = replace(one, tokens=20, cpu_s=2.0 + inside, wall_s=2.0 + inside, inside_s=inside)
                found.append(one if mode == "free" else longer)
    return found


def test_every_way_with_the_oracle_has_one_without() -> None:
    assert set(TITLES) == {way for way, greedy in WAYS.items() if greedy is not None}
    assert all((decoder, "free") in WAYS for decoder, _ in WAYS)


def test_runs_are_compared_by_the_time_of_a_token() -> None:
    assert compared([run for run in runs() if run.number], "ours", "lazy") == pytest.approx([1.1] * len(TASKS))
    assert compared([FREE], "ours", "lazy") == []


def test_the_interval_holds_the_median() -> None:
    values = [1.0, 1.01, 1.02, 1.05, 1.2, 0.9]
    found = median(values)
    assert min(values) <= found.low <= found.median <= found.high <= max(values)
    assert median([1.5] * 4) == median([1.5])


def test_the_table_has_a_line_for_each_way_and_task() -> None:
    lines = table(runs())
    assert len(lines) == 2 + len(TITLES) * (1 + len(TASKS))
    assert all("| 10.00 | 1.100 (1.100 to 1.100) | 1.250 | 1.100 (" in line for line in lines[2:])


def test_results_are_kept(tmp_path: Path) -> None:
    about = {"cpu": "one", "threads": 1}
    assert read(tmp_path) == ([], {})
    write(runs(), about, tmp_path)
    assert read(tmp_path) == (runs(), about)
    assert (tmp_path / "overhead.md").read_text() == report(runs(), about)
    assert "a token took our decoder 100.0 ms" in report(runs(), about)
