"""Numbers and dates of every surface, and strings as JSON has them: their regular expressions, meaning and spelling.

Each expression is exact: whatever it matches denotes a value, and no match denotes two. So a string never holds half
a surrogate pair, a number is never infinite, and 30 February is no date.
"""

from __future__ import annotations

import datetime
import json
import math
import re

from dialects.errors import SpellingError

# Digits of an integer, and of each part of a float. A bound, because a model can go on with digits for ever, and
# because Python refuses to read more than 4300 of them.
MAX_DIGITS = 24

_HEX = "[0-9a-fA-F]"
_PLAIN_UNIT = rf"([0-9a-cA-CefEF]{_HEX}{{3}}|[dD][0-7]{_HEX}{{2}})"
_PAIR = rf"[dD][89abAB]{_HEX}{{2}}\\u[dD][c-fC-F]{_HEX}{{2}}"
TEXT_PATTERN = rf'"([^"\\\x00-\x1f]|\\(["\\\/bfnrt]|u{_PLAIN_UNIT}|u{_PAIR}))*"'

_DIGITS = f"[0-9]{{1,{MAX_DIGITS}}}"
_WHOLE = f"(0|[1-9][0-9]{{0,{MAX_DIGITS - 1}}})"
INT_PATTERN = f"-?{_WHOLE}"
# Two-digit exponents for any mantissa, three-digit ones for a mantissa below ten: neither can overflow.
_SCIENTIFIC = rf"[0-9](\.{_DIGITS})?[eE](\+?[0-2][0-9]{{2}}|\+?30[0-7]|-[0-9]{{3}})"
FLOAT_PATTERN = rf"-?({_WHOLE}(\.{_DIGITS}([eE][+-]?[0-9]{{1,2}})?|[eE][+-]?[0-9]{{1,2}})|{_SCIENTIFIC})"

_YEAR = "([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_LEAP_YEAR = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
_DAY = "((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
DAY_PATTERN = f"({_YEAR}-{_DAY}|{_LEAP_YEAR}-02-29)"
DATE_PATTERN = f'"{DAY_PATTERN}"'

_INT = re.compile(INT_PATTERN)
_FLOAT = re.compile(FLOAT_PATTERN)
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_text(text: str) -> str:
    """The string that a match of `TEXT_PATTERN` (or a quoted enum member) denotes."""
    value = json.loads(text)
    if not isinstance(value, str):
        raise ValueError(f"{text!r} is not a string literal")
    return value


def read_date(text: str) -> datetime.date:
    """The date that a match of `DATE_PATTERN` denotes."""
    return datetime.date.fromisoformat(text[1:-1])


def spell_text(value: str) -> str:
    """A string as JSON, with every character that JSON lets stand written as itself."""
    refuse_surrogates(value)
    return json.dumps(value, ensure_ascii=False)


def refuse_surrogates(value: str) -> None:
    """Raise `SpellingError` for a string that is no Unicode text."""
    if _SURROGATE.search(value):
        raise SpellingError(
            f"the string {value!r} holds half a surrogate pair, which is no Unicode text; remove that character"
        )


def spell_int(value: int) -> str:
    """An integer in decimal."""
    if abs(value) >= 10**MAX_DIGITS:
        raise SpellingError(f"an integer literal has at most {MAX_DIGITS} digits; bind a larger one by a tool")
    return str(value)


def spell_float(value: float) -> str:
    """A float in the shortest form that reads back equal."""
    if not math.isfinite(value):
        raise SpellingError(f"{value!r} has no literal: only finite numbers can be written")
    text = repr(value)
    if _FLOAT.fullmatch(text) is None:
        raise SpellingError(f"{value!r} has no literal: the largest exponent is 307")
    return text
