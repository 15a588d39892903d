"""Shares with Wilson intervals, and the summary of a series of numbers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

Z95 = 1.959963984540054  # two-sided 95%


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    """`count` of `total`, with the 95% interval of Wilson (1927), which is sound near 0 and 1 too."""

    count: int
    total: int

    def __post_init__(self) -> None:
        if not 0 <= self.count <= self.total:
            raise ValueError(f"a share of {self.count} of {self.total} does not exist")

    @property
    def value(self) -> float:
        """The share itself; 0 of 0 is not a number."""
        return self.count / self.total if self.total else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval; of 0 observations it is everything."""
        if not self.total:
            return 0.0, 1.0
        n, p, square = self.total, self.value, Z95 * Z95
        centre = (p + square / (2 * n)) / (1 + square / n)
        half = Z95 / (1 + square / n) * math.sqrt(p * (1 - p) / n + square / (4 * n * n))
        # At the ends the exact bound is 0 or 1; rounding must not move it.
        return (0.0 if not self.count else centre - half), (1.0 if self.count == n else centre + half)

    def to_json(self) -> dict[str, object]:
        """Count, total, share and interval; the share of nothing is null."""
        value = self.value if self.total else None
        return {"count": self.count, "total": self.total, "share": value, "interval": list(self.interval)}

    def __str__(self) -> str:
        if not self.total:
            return "0 of 0"
        low, high = self.interval
        return f"{self.count} of {self.total} = {_percent(self.value)} [{_percent(low)}, {_percent(high)}]"


def _percent(value: float) -> str:
    """Two digits where that tells apart, never rounding up to 100% or down to 0%."""
    shown = f"{100 * value:.2f}"
    if shown == "100.00" and value < 1:
        shown = "99.99"
    if shown == "0.00" and value > 0:
        shown = "0.01"
    return f"{shown}%"


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """Mean, median and deciles of a series that is not empty."""

    count: int
    mean: float
    median: float
    low: float  # first decile
    high: float  # ninth decile
    least: float
    greatest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """The summary of the values, or None when there are none."""
        if not values:
            return None
        ordered = sorted(values)
        last = len(ordered) - 1
        return cls(
            count=len(ordered),
            mean=statistics.fmean(ordered),
            median=statistics.median(ordered),
            low=ordered[round(last * 0.1)],
            high=ordered[round(last * 0.9)],
            least=ordered[0],
            greatest=ordered[-1],
        )

    def to_json(self) -> dict[str, float]:
        """All fields by name."""
        return {name: getattr(self, name) for name in self.__slots__}

    def __str__(self) -> str:
        return f"{self.mean:+.1f} (median {self.median:+g}, deciles {self.low:+g} to {self.high:+g})"
