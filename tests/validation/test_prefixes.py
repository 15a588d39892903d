"""Judging texts at every byte prefix, within a time limit that leaves other timers alone."""

from __future__ import annotations

import signal
import time

import pytest

from aufbau import Grammar, Limits, Oracle, Verdict
from aufbau.validation import Language, judge
from aufbau.validation.prefixes import OutOfTime, time_limit
from tests.validation.subjects import FILES, oracle

# language, program with ¦ before the byte at which it is lost
JUDGED = [
    (Language.ML, "let x : int = 1 + 2"),
    (Language.ML, "let x : int = ¦y"),
    (Language.ML, "let f : int -> int = fun (n : int) -> n let y : bool = f 1 ¦let"),
    (Language.C, "int f(int a) { return f(a) + 1; }"),
    (Language.C, "int f(int *a) { return ¦a; }"),
]


@pytest.mark.parametrize("every_byte", [True, False])
@pytest.mark.parametrize(("language", "marked"), JUDGED)
def test_verdicts(language: Language, marked: str, every_byte: bool) -> None:
    before, mark, _ = marked.partition("¦")
    found = judge(oracle(language), marked.replace("¦", "").encode(), every_byte=every_byte)
    assert found.verdict is (Verdict.LOST if mark else Verdict.SATISFIED)
    assert found.lost_at == (len(before.encode()) if mark else None)
    assert not found.failure


def test_a_spent_budget_is_no_verdict() -> None:
    small = Oracle(Grammar.load(FILES[Language.ML]), limits=Limits(chart_items=300))
    found = judge(small, b"let x : int = 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9")
    assert found.verdict is None and found.lost_at is None
    assert found.failure.startswith("LimitError")


def test_the_time_limit() -> None:
    text = b"let x : int = 1" + b" + 1" * 20_000
    found = judge(oracle(Language.ML), text, seconds=0.05)
    assert found.verdict is None
    assert found.failure == "OutOfTime: took longer than 0.05 s"
    assert found.seconds < 5


def test_the_time_limit_leaves_a_running_timer_alone() -> None:
    rung: list[int] = []
    handler = signal.signal(signal.SIGALRM, lambda number, _frame: rung.append(number))
    timer = signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(OutOfTime), time_limit(0.05):
            time.sleep(5)
        assert not rung
        end = time.monotonic() + 5
        while not rung and time.monotonic() < end:
            time.sleep(0.01)
        assert rung == [signal.SIGALRM]
    finally:
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, *timer)
