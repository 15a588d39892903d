"""Regular expressions as data, with the two questions a loader asks of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from aufbau.regex.charset import Ranges
from aufbau.regex.errors import RegexError


@dataclass(frozen=True, kw_only=True, slots=True)
class Chars:
    """One character of a set; the empty set matches nothing."""

    ranges: Ranges


@dataclass(frozen=True, kw_only=True, slots=True)
class Concat:
    """The parts one after the other; no parts match the empty text."""

    parts: tuple[Regex, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Alternate:
    """Any one of the parts."""

    parts: tuple[Regex, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Repeat:
    """The body `low` to `high` times; `high` None means without end."""

    body: Regex
    low: int
    high: int | None


Regex: TypeAlias = Chars | Concat | Alternate | Repeat

EPSILON = Concat(parts=())


def literal_regex(text: str) -> Regex:
    """The expression that matches exactly this text."""
    for offset, char in enumerate(text):
        if 0xD800 <= ord(char) <= 0xDFFF:
            raise RegexError(
                f"the literal holds the surrogate U+{ord(char):04X}, which no UTF-8 text contains",
                offset,
                "write the whole character instead of half of its UTF-16 pair",
            )
    return Concat(parts=tuple(Chars(ranges=((ord(char), ord(char)),)) for char in text))


def nullable(regex: Regex) -> bool:
    """Whether the empty text matches."""
    if isinstance(regex, Chars):
        return False
    if isinstance(regex, Concat):
        return all(nullable(part) for part in regex.parts)
    if isinstance(regex, Alternate):
        return any(nullable(part) for part in regex.parts)
    return regex.low == 0 or nullable(regex.body)


def is_empty(regex: Regex) -> bool:
    """Whether no text at all matches."""
    if isinstance(regex, Chars):
        return not regex.ranges
    if isinstance(regex, Concat):
        return any(is_empty(part) for part in regex.parts)
    if isinstance(regex, Alternate):
        return all(is_empty(part) for part in regex.parts)
    return regex.low > 0 and is_empty(regex.body)
