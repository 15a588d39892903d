"""Shares, Wilson intervals and spreads, against figures known from elsewhere and as laws."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aufbau.validation import Share, Spread

# count, total, and the 95% bounds of Wilson's interval: the first four by Newcombe (1998), table I
INTERVALS = [
    (81, 263, 0.2553, 0.3662),
    (15, 148, 0.0624, 0.1605),
    (0, 20, 0.0, 0.1611),
    (1, 29, 0.0061, 0.1718),
    (20, 20, 0.8389, 1.0),
    (0, 0, 0.0, 1.0),
]


@pytest.mark.parametrize(("count", "total", "low", "high"), INTERVALS)
def test_intervals(count: int, total: int, low: float, high: float) -> None:
    assert Share(count=count, total=total).interval == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_intervals_hold_the_share_and_mirror(pair: tuple[int, int]) -> None:
    count, total = pair
    share, mirrored = Share(count=count, total=total), Share(count=total - count, total=total)
    low, high = share.interval
    assert 0 <= low <= share.value <= high <= 1
    assert mirrored.interval == pytest.approx((1 - high, 1 - low))


# count, total, how it reads
SHOWN = [
    (0, 0, "0 of 0"),
    (1, 4, "1 of 4 = 25.00% [4.56%, 69.94%]"),
    (99_999, 100_000, "99999 of 100000 = 99.99% [99.99%, 99.99%]"),
    (1, 100_000, "1 of 100000 = 0.01% [0.01%, 0.01%]"),
]


@pytest.mark.parametrize(("count", "total", "shown"), SHOWN)
def test_no_share_is_rounded_to_all_or_nothing(count: int, total: int, shown: str) -> None:
    assert str(Share(count=count, total=total)) == shown


@pytest.mark.parametrize(("count", "total"), [(2, 1), (-1, 1)])
def test_impossible_shares(count: int, total: int) -> None:
    with pytest.raises(ValueError, match="does not exist"):
        Share(count=count, total=total)


def test_share_of_nothing_as_json() -> None:
    assert Share(count=0, total=0).to_json()["share"] is None
    assert math.isnan(Share(count=0, total=0).value)


def test_spread() -> None:
    spread = Spread.of([float(n) for n in range(11)])
    assert spread is not None
    assert (spread.mean, spread.median, spread.low, spread.high, spread.greatest) == (5, 5, 1, 9, 10)
    assert str(spread) == "+5.0 (median +5, deciles +1 to +9)"
    assert Spread.of([]) is None
