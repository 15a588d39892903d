"""The statistics of paired attempts: against counting by hand, and by their laws."""

from __future__ import annotations

from itertools import product
from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit.study.statistics import Paired, mcnemar


def by_counting(better: int, worse: int) -> float:
    """Among all ways in which the differing pairs could have fallen: the share at least as uneven as this."""
    total = better + worse
    ways = [sum(way) for way in product((0, 1), repeat=total)]
    return sum(abs(2 * heads - total) >= abs(better - worse) for heads in ways) / len(ways)


@pytest.mark.parametrize(("better", "worse"), [(0, 0), (1, 0), (5, 0), (3, 3), (8, 2), (1, 9), (4, 5)])
def test_mcnemar_is_exact(better: int, worse: int) -> None:
    assert mcnemar(better, worse) == pytest.approx(by_counting(better, worse))


def test_mcnemar_has_no_greatest_number() -> None:
    assert mcnemar(3000, 3000) == 1.0
    assert mcnemar(1500, 1000) == pytest.approx(1.3325871648e-23)
    assert 0.0 <= mcnemar(5000, 0) < 1e-300


counts = st.integers(0, 60)
tables = st.builds(lambda a, b, c, d: Paired(both=a, first=b, second=c, neither=d), counts, counts, counts, counts)


@given(tables)
def test_the_interval_holds_the_difference(paired: Paired) -> None:
    low, high = paired.interval
    assert -1 <= low <= high <= 1
    if paired.total:
        assert low - 1e-9 <= paired.difference <= high + 1e-9
    else:
        assert isnan(paired.difference)


@given(tables)
def test_swapping_the_ways_turns_the_sign(paired: Paired) -> None:
    other = Paired(both=paired.both, first=paired.second, second=paired.first, neither=paired.neither)
    low, high = paired.interval
    assert other.interval == pytest.approx((-high, -low))
    assert other.p == paired.p


@given(tables.filter(lambda one: one.total > 0))
def test_more_of_the_same_narrows_the_interval(paired: Paired) -> None:
    more = Paired(**{name: 9 * getattr(paired, name) for name in ("both", "first", "second", "neither")})
    (low, high), (inner_low, inner_high) = paired.interval, more.interval
    assert inner_high - inner_low < high - low


def test_a_published_example() -> None:
    """Newcombe (1998), paired differences, method 10."""
    low, high = Paired(both=36, first=12, second=2, neither=0).interval
    assert (round(low, 4), round(high, 4)) == (0.0569, 0.3404)


def test_pairs_are_counted() -> None:
    paired = Paired.of([(True, True), (True, False), (True, False), (False, True), (False, False)])
    assert (paired.both, paired.first, paired.second, paired.neither) == (1, 2, 1, 1)
    assert paired.difference == pytest.approx(0.2)
    assert [share.count for share in paired.shares] == [3, 2]
