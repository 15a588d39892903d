"""Whole samples of a model held to an oracle: which part of one may be kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agentkit.models.base import PrefixLike
from aufbau.verdict import Verdict

_FENCE = "```"


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """What one request gave; for reports."""

    accepted: str
    """The part that was kept: the longest one that is not LOST, in whole characters."""

    rejected: str
    """What came after it, and was dropped."""

    temperature: float
    seed: int
    finish: str
    """The server's word for why the sample ended."""

    continued: bool
    """Asked as the continuation of the assistant's own message, and not with the text quoted."""

    retreated: int = 0
    """Characters that were given up before the request, since no sample went on from them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """The part of a sample that goes on with a text."""

    accepted: str
    rejected: str
    prefix: PrefixLike
    """After the accepted part."""

    @property
    def whole(self) -> bool:
        """Nothing but white space was dropped, or nothing more can follow."""
        done = self.prefix.verdict is Verdict.SATISFIED and not self.prefix.extensible
        return not self.rejected.strip() or (done and bool(self.accepted))


def keep(sample: str, begun: str, prefix: PrefixLike) -> Kept:
    """The best reading of a sample as a continuation of `begun`, of which `prefix` has the constrained part.

    A model that is asked to go on often begins again, or puts its answer into a code fence. Of those readings the one
    counts that is whole, or that drops the least.
    """
    readings = [_longest(reading, prefix) for reading in dict.fromkeys(_readings(sample, begun))]
    return max(readings, key=lambda one: (one.whole, bool(one.accepted), -len(one.rejected.strip())))


def _readings(sample: str, begun: str) -> Iterator[str]:
    for text in (sample, *_fenced(sample)):
        yield text
        yield text.lstrip()
        for overlap in _overlaps(begun, text.lstrip()):
            yield text.lstrip()[overlap:]


def _fenced(sample: str) -> Iterator[str]:
    """What stands in the first code fence."""
    _, fence, rest = sample.partition(_FENCE)
    if fence:
        yield rest.partition("\n")[2].partition(_FENCE)[0]


def _overlaps(begun: str, text: str) -> Iterator[int]:
    """How much of the text repeats the end of what was begun: all of it, its last line, or the longest end there is."""
    if begun and text.startswith(begun):
        yield len(begun)
    line = begun.rpartition("\n")[2]
    for size in range(min(len(line), len(text)), 0, -1):
        if line.endswith(text[:size]):
            yield size
            return


def _longest(text: str, prefix: PrefixLike) -> Kept:
    """The longest part that is not LOST. LOST is final, so a bisection finds it."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if prefix.try_feed(text[:middle].encode(errors="replace")) is Verdict.LOST:
            high = middle - 1
        else:
            low = middle
    accepted = text[:low]
    return Kept(accepted=accepted, rejected=text[low:], prefix=prefix.feed(accepted.encode(errors="replace")))
