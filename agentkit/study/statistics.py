"""Statistics of paired attempts: McNemar's exact test, an interval for a difference of shares, medians."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from aufbau.validation.statistics import Share

__all__ = ["Paired", "Share", "mcnemar", "mean_interval"]


def mcnemar(better: int, worse: int) -> float:
    """The two-sided p-value of McNemar's exact test: of the pairs that differ, each way is as probable as the other."""
    if better < 0 or worse < 0:
        raise ValueError(f"numbers of pairs are from 0 on, not {better} and {worse}")
    total = better + worse
    tail = sum(math.comb(total, k) for k in range(min(better, worse) + 1))
    # Whole numbers, which have no greatest one.
    return min(1.0, 2 * tail / (1 << total))


@dataclass(frozen=True, kw_only=True, slots=True)
class Paired:
    """Attempts at the same tasks in two ways, by which of them passed.

    Pairs count as independent of each other. Several at one task, under several seeds or by several models, are less
    than that: then the interval is too narrow and the p-value too small.
    """

    both: int
    # The first way alone, the second way alone.
    first: int
    second: int
    neither: int

    @classmethod
    def of(cls, pairs: Iterable[tuple[bool, bool]]) -> Paired:
        """Count pairs of outcomes: passed the first way, passed the second way."""
        counted = {(a, b): 0 for a in (True, False) for b in (True, False)}
        for pair in pairs:
            counted[pair] += 1
        return cls(
            both=counted[True, True],
            first=counted[True, False],
            second=counted[False, True],
            neither=counted[False, False],
        )

    @property
    def total(self) -> int:
        """All pairs."""
        return self.both + self.first + self.second + self.neither

    @property
    def shares(self) -> tuple[Share, Share]:
        """What passed the first way, and what passed the second way."""
        return (
            Share(count=self.both + self.first, total=self.total),
            Share(count=self.both + self.second, total=self.total),
        )

    @property
    def difference(self) -> float:
        """The first share less the second; not a number where there is no pair."""
        return (self.first - self.second) / self.total if self.total else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of the difference: Newcombe's hybrid score interval for paired shares (his method 10)."""
        if not self.total:
            return -1.0, 1.0
        one, two = self.shares
        (low1, high1), (low2, high2) = one.interval, two.interval
        p1, p2, phi = one.value, two.value, self._correlation()
        down = (p1 - low1) ** 2 - 2 * phi * (p1 - low1) * (high2 - p2) + (high2 - p2) ** 2
        up = (high1 - p1) ** 2 - 2 * phi * (high1 - p1) * (p2 - low2) + (p2 - low2) ** 2
        # Rounding may bring a square that is 0 below it.
        low = self.difference - math.sqrt(max(0.0, down))
        high = self.difference + math.sqrt(max(0.0, up))
        return max(-1.0, low), min(1.0, high)

    def _correlation(self) -> float:
        """Newcombe's φ, with his correction for continuity where the two ways agree more often than by chance."""
        a, b, c, d = self.both, self.first, self.second, self.neither
        product = (a + b) * (c + d) * (a + c) * (b + d)
        if not product:
            return 0.0
        agreement = float(a * d - b * c)
        if agreement > 0:
            agreement = max(agreement - self.total / 2, 0.0)
        return agreement / math.sqrt(product)

    @property
    def p(self) -> float:
        """The p-value of McNemar's exact test."""
        return mcnemar(self.first, self.second)


def mean_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """A mean with its 95% interval by the percentile bootstrap over the values, from a fixed seed."""
    if not values:
        return math.nan, math.nan, math.nan
    mean = sum(values) / len(values)
    if len(values) == 1:
        return mean, mean, mean
    draw = random.Random(0)
    means = sorted(sum(draw.choices(values, k=len(values))) / len(values) for _ in range(1000))
    return mean, means[24], means[974]
