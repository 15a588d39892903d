"""From expressions to positions: which characters may come first, which may follow which, which may be last.

Each occurrence of a character set, after unrolling counted repetitions, is one *position*, a bit of an int;
sets of positions are ints. A repetition `x{0,n}` unrolls as `(x(x(…)?)?)?`, so its follow sets stay small:
each occurrence is followed by the next one only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, final

from aufbau.regex.charset import Ranges
from aufbau.regex.errors import RegexError
from aufbau.regex.limits import RegexLimits
from aufbau.regex.syntax import Alternate, Chars, Concat, Regex, Repeat, is_empty


class Fragment(NamedTuple):
    """What the surroundings of a part must know of it."""

    nullable: bool
    first: int
    last: int


_NOTHING_LEFT = Fragment(True, 0, 0)


def bits(mask: int) -> Iterator[int]:
    """The numbers of the set bits, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


@final
class Positions:
    """The positions of several expressions; expression i ends at those whose `tags` hold bit i."""

    __slots__ = ("charset_positions", "follow", "limits", "start_first", "start_tags", "tags")

    def __init__(self, regexes: Sequence[Regex], limits: RegexLimits) -> None:
        self.limits = limits
        self.follow: list[int] = []
        self.tags: list[int] = []
        self.charset_positions: dict[Ranges, int] = {}
        self.start_first = 0
        self.start_tags = 0
        total = sum(_unrolled_size(regex) for regex in regexes)
        if total > limits.positions:
            raise RegexError(
                f"the expressions unroll to {total} characters; the limit is {limits.positions} (positions)",
                0,
                "lower the counts of nested repetitions or replace `{m,n}` by `*` or `+`",
            )
        for index, regex in enumerate(regexes):
            if is_empty(regex):
                continue
            fragment = self._build(regex)
            self.start_first |= fragment.first
            if fragment.nullable:
                self.start_tags |= 1 << index
            for position in bits(fragment.last):
                self.tags[position] |= 1 << index

    def _build(self, regex: Regex) -> Fragment:
        """Add the positions of an expression that is not empty."""
        if isinstance(regex, Chars):
            return self._character(regex.ranges)
        if isinstance(regex, Concat):
            whole = _NOTHING_LEFT
            for part in reversed(regex.parts):
                whole = self._join(self._build(part), whole)
            return whole
        if isinstance(regex, Alternate):
            nullable, first, last = False, 0, 0
            for part in regex.parts:
                if not is_empty(part):
                    fragment = self._build(part)
                    nullable = nullable or fragment.nullable
                    first |= fragment.first
                    last |= fragment.last
            return Fragment(nullable, first, last)
        return self._repeat(regex)

    def _character(self, ranges: Ranges) -> Fragment:
        bit = 1 << len(self.follow)
        self.follow.append(0)
        self.tags.append(0)
        self.charset_positions[ranges] = self.charset_positions.get(ranges, 0) | bit
        return Fragment(False, bit, bit)

    def _join(self, left: Fragment, right: Fragment) -> Fragment:
        for position in bits(left.last):
            self.follow[position] |= right.first
        return Fragment(
            left.nullable and right.nullable,
            left.first | right.first if left.nullable else left.first,
            left.last | right.last if right.nullable else right.last,
        )

    def _repeat(self, regex: Repeat) -> Fragment:
        if is_empty(regex.body):
            return _NOTHING_LEFT
        rest = _NOTHING_LEFT
        if regex.high is None:
            body = self._build(regex.body)
            self._join(body, body)
            # The looping copy counts as one of the mandatory ones.
            rest = Fragment(body.nullable or regex.low == 0, body.first, body.last)
            mandatory = regex.low - 1
        else:
            for _ in range(regex.high - regex.low):
                joined = self._join(self._build(regex.body), rest)
                rest = Fragment(True, joined.first, joined.last)
            mandatory = regex.low
        for _ in range(mandatory):
            rest = self._join(self._build(regex.body), rest)
        return rest


def _unrolled_size(regex: Regex) -> int:
    """Positions and inner nodes of the unrolled expression, without unrolling it."""
    if isinstance(regex, Chars):
        return 1
    if isinstance(regex, Repeat):
        copies = max(1, regex.low) if regex.high is None else regex.high
        return 1 + copies * _unrolled_size(regex.body)
    return 1 + sum(_unrolled_size(part) for part in regex.parts)
