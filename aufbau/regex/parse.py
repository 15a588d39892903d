"""Pattern text to expression; what is not regular, or means nothing in a terminal, is refused by name."""

from __future__ import annotations

from typing import NoReturn, final

from aufbau.regex.charset import (
    DIGIT,
    MAX_SCALAR,
    NEWLINE,
    SPACE,
    WORD,
    Ranges,
    category,
    complement,
    union,
    without_surrogates,
)
from aufbau.regex.errors import RegexError
from aufbau.regex.limits import DEFAULT_LIMITS, RegexLimits
from aufbau.regex.syntax import EPSILON, Alternate, Chars, Concat, Regex, Repeat

_CONTROLS = {"n": 0x0A, "t": 0x09, "r": 0x0D, "f": 0x0C, "v": 0x0B, "0": 0x00}
_SHORTHANDS: dict[str, Ranges] = {
    "d": DIGIT,
    "w": WORD,
    "s": SPACE,
    "D": complement(DIGIT),
    "W": complement(WORD),
    "S": complement(SPACE),
}
_BACKREFERENCE_HINT = "spell the repeated text out, or leave the check to a typing rule"
_ANCHOR_HINT = "a terminal always matches a whole lexeme, so remove it"
_ANY_BUT_NEWLINE = complement(NEWLINE)

# What may follow `(?`, longest first, and why it is refused.
_GROUP_FAULTS: tuple[tuple[str, str, str], ...] = (
    ("<=", "lookbehind is not regular here", "write what the lexeme itself consists of"),
    ("<!", "lookbehind is not regular here", "write what the lexeme itself consists of"),
    ("=", "lookahead is not regular here", "the longest match already decides where a lexeme ends"),
    ("!", "lookahead is not regular here", "the longest match already decides where a lexeme ends"),
    ("P=", "a backreference is not regular", _BACKREFERENCE_HINT),
    ("P<", "groups have no names here", "write `(?:…)`"),
    ("<", "groups have no names here", "write `(?:…)`"),
    (">", "an atomic group has no meaning here", "write `(?:…)`; terminals always take the longest match"),
    ("#", "comments are not part of a pattern", "put the comment on a `//` line of the grammar"),
    ("(", "conditionals are not regular", "write the cases as alternatives"),
)
_CLASS_FAULTS = {
    "[:": ("POSIX classes are not known", "write `\\d`, `\\w`, `\\s` or a category such as `\\p{L}`"),
    "&&": ("set operations are not known", "write the ranges out, or `\\&` for the character"),
    "--": ("set operations are not known", "write the ranges out, or `\\-` for the character"),
    "~~": ("set operations are not known", "write the ranges out, or `\\~` for the character"),
}


def parse_regex(pattern: str, limits: RegexLimits = DEFAULT_LIMITS) -> Regex:
    """Read a pattern; raises RegexError with the offset of the construct that is at fault."""
    for offset, char in enumerate(pattern):
        if 0xD800 <= ord(char) <= 0xDFFF:
            raise RegexError(_surrogate(ord(char)), offset, "write the whole character")
    return _Parser(pattern, limits).whole()


def _surrogate(code: int) -> str:
    return f"U+{code:04X} is a surrogate, which no UTF-8 text contains"


def _fail(message: str, offset: int, hint: str) -> NoReturn:
    raise RegexError(message, offset, hint)


@final
class _Parser:
    """A cursor over one pattern."""

    __slots__ = ("_at", "_depth", "_limits", "_pattern")

    def __init__(self, pattern: str, limits: RegexLimits) -> None:
        self._pattern = pattern
        self._limits = limits
        self._at = 0
        self._depth = 0

    def whole(self) -> Regex:
        regex = self._alternation()
        if self._at < len(self._pattern):
            _fail("this `)` closes no group", self._at, "remove it, or write `\\)` for the character")
        return regex

    def _peek(self) -> str:
        return self._pattern[self._at] if self._at < len(self._pattern) else ""

    def _alternation(self) -> Regex:
        branches = [self._sequence()]
        while self._peek() == "|":
            self._at += 1
            branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else Alternate(parts=tuple(branches))

    def _sequence(self) -> Regex:
        parts: list[Regex] = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._quantified())
        if not parts:
            return EPSILON
        return parts[0] if len(parts) == 1 else Concat(parts=tuple(parts))

    def _quantified(self) -> Regex:
        body = self._atom()
        bounds = self._quantifier()
        if bounds is None:
            return body
        following = self._peek()
        if following == "?":
            _fail("lazy quantifiers have no meaning here", self._at, "remove the `?`; the longest match is read")
        if following == "+":
            _fail("possessive quantifiers have no meaning here", self._at, "remove the second quantifier")
        if following and following in "*{":
            _fail("a quantifier follows a quantifier", self._at, "keep one, or put the first part in `(…)`")
        return Repeat(body=body, low=bounds[0], high=bounds[1])

    def _quantifier(self) -> tuple[int, int | None] | None:
        char = self._peek()
        if not char or char not in "*+?{":
            return None
        if char == "{":
            return self._counts()
        self._at += 1
        return (1 if char == "+" else 0, 1 if char == "?" else None)

    def _counts(self) -> tuple[int, int | None]:
        opened = self._at
        closed = self._pattern.find("}", opened)
        if closed < 0:
            _fail("this `{` is not closed", opened, "write `{m}`, `{m,}` or `{m,n}`, or `\\{` for the character")
        low_text, comma, high_text = self._pattern[opened + 1 : closed].partition(",")
        self._at = closed + 1
        low = self._count(low_text, opened)
        if not comma:
            return low, low
        if not high_text:
            return low, None
        high = self._count(high_text, opened)
        if high < low:
            _fail(f"the counts of {{{low},{high}}} are reversed", opened, f"write `{{{high},{low}}}`")
        return low, high

    def _count(self, text: str, opened: int) -> int:
        if not (text.isascii() and text.isdigit()):
            hint = "write `{m}`, `{m,}` or `{m,n}` (and `{0,n}` for at most n), or `\\{` for the character"
            _fail("this `{` begins no count", opened, hint)
        limit = self._limits.repetition
        # The length is looked at first: Python itself refuses to read numbers of thousands of digits.
        if len(text.lstrip("0")) > len(str(limit)) or int(text) > limit:
            _fail(f"a count is above the limit of {limit} (repetition)", opened, "use `*` or `+` instead")
        return int(text)

    def _atom(self) -> Regex:
        at = self._at
        char = self._pattern[at]
        if char == "(":
            return self._group()
        if char == "[":
            return Chars(ranges=self._class())
        if char == "\\":
            ranges, _ = self._escape(in_class=False)
            return Chars(ranges=ranges)
        if char in "*+?":
            _fail(f"`{char}` has nothing to repeat", at, f"put something before it, or write `\\{char}`")
        if char == "{":
            _fail("`{` has nothing to repeat", at, "put something before it, or write `\\{` for the character")
        if char in "]}":
            _fail(f"this `{char}` closes nothing", at, f"remove it, or write `\\{char}` for the character")
        if char in "^$":
            _fail(f"the anchor `{char}` has no meaning here", at, f"{_ANCHOR_HINT}, or write `\\{char}`")
        self._at += 1
        return Chars(ranges=_ANY_BUT_NEWLINE if char == "." else _one(ord(char)))

    def _group(self) -> Regex:
        opened = self._at
        self._at += 1
        if self._peek() == "?":
            self._group_kind(opened)
        self._depth += 1
        if self._depth > self._limits.nesting:
            limit = self._limits.nesting
            _fail(f"more than {limit} groups are open (nesting)", opened, "remove groups that group nothing")
        regex = self._alternation()
        if self._peek() != ")":
            _fail("this `(` is not closed", opened, "add `)`, or write `\\(` for the character")
        self._at += 1
        self._depth -= 1
        return regex

    def _group_kind(self, opened: int) -> None:
        self._at += 1
        if self._peek() == ":":
            self._at += 1
            return
        for start, message, hint in _GROUP_FAULTS:
            if self._pattern.startswith(start, self._at):
                _fail(message, opened, hint)
        _fail("flags are not known", opened, "write both cases, as in `[aA]`; `(?:…)` groups")

    def _class(self) -> Ranges:
        opened = self._at
        self._at += 1
        negated = self._peek() == "^"
        if negated:
            self._at += 1
        if self._peek() == "]":
            text = self._pattern[opened : self._at + 1]
            _fail(f"the class `{text}` is empty", opened, "put characters in it; `\\]` is the bracket itself")
        ranges: list[tuple[int, int]] = []
        while self._peek() != "]":
            if self._at >= len(self._pattern):
                _fail("this `[` is not closed", opened, "add `]`, or write `\\[` for the character")
            ranges.extend(self._class_item())
        self._at += 1
        return complement(union(ranges)) if negated else union(ranges)

    def _class_item(self) -> Ranges:
        """One character, range or shorthand."""
        at = self._at
        self._class_fault(at)
        ranges, low = self._class_char()
        ahead = self._pattern[self._at : self._at + 2]
        if not ahead.startswith("-") or ahead in ("-", "-]"):
            return ranges
        self._class_fault(self._at)
        self._at += 1
        _, high = self._class_char()
        text = self._pattern[at : self._at]
        if low is None or high is None:
            _fail(f"the range `{text}` has a set as its end", at, "write `\\-` for the character `-`")
        if high < low:
            _fail(f"the range `{text}` is reversed", at, "write the smaller character first")
        # A range across the surrogates means the scalar values in it.
        return without_surrogates(((low, high),))

    def _class_fault(self, at: int) -> None:
        """Refuse what other notations give a meaning inside brackets."""
        fault = _CLASS_FAULTS.get(self._pattern[at : at + 2])
        if fault is not None:
            _fail(fault[0], at, fault[1])

    def _class_char(self) -> tuple[Ranges, int | None]:
        char = self._pattern[self._at]
        if char == "\\":
            return self._escape(in_class=True)
        self._at += 1
        return _one(ord(char)), ord(char)

    def _escape(self, *, in_class: bool) -> tuple[Ranges, int | None]:
        """What follows a backslash: its characters and, if it is just one, its code."""
        at = self._at
        self._at += 2
        char = self._pattern[at + 1 : at + 2]
        if not char:
            _fail("the pattern ends in a backslash", at, "write `\\\\` for the backslash itself")
        if char in _SHORTHANDS:
            return _SHORTHANDS[char], None
        if char in "pP":
            return self._category(at, negated=char == "P"), None
        if char == "0" and self._peek().isdigit():
            _fail("octal escapes are not known", at, "write `\\xHH`")
        code = _CONTROLS.get(char)
        if code is None and char in "xu":
            code = self._code(at, char)
        if code is None and not char.isalnum():
            code = ord(char)
        if code is None:
            self._bad_escape(at, char, in_class=in_class)
        return _one(code), code

    def _bad_escape(self, at: int, char: str, *, in_class: bool) -> NoReturn:
        if char.isdigit() or char == "k":
            _fail(f"the backreference `\\{char}` is not regular", at, _BACKREFERENCE_HINT)
        if char in "bBAZzG":
            hint = "write `\\x08` for backspace" if in_class and char == "b" else _ANCHOR_HINT
            _fail(f"the anchor `\\{char}` has no meaning here", at, hint)
        hint = f"write `{char}` for the character itself, or `\\u{{…}}` for one by its code"
        _fail(f"the escape `\\{char}` is not known", at, hint)

    def _code(self, at: int, kind: str) -> int:
        """The number of `\\xHH`, `\\uHHHH` or `\\u{H…}`."""
        if kind == "u" and self._peek() == "{":
            closed = self._pattern.find("}", self._at)
            digits = self._pattern[self._at + 1 : closed] if closed >= 0 else ""
            self._at = closed + 1
            well_formed = 1 <= len(digits) <= 6
        else:
            length = 2 if kind == "x" else 4
            digits = self._pattern[self._at : self._at + length]
            self._at += length
            well_formed = len(digits) == length
        if not well_formed or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
            hint = "write `\\xHH`, `\\uHHHH` or `\\u{H…}` with hexadecimal digits H, at most six"
            _fail(f"`\\{kind}` is not followed by a code", at, hint)
        code = int(digits, 16)
        if code > MAX_SCALAR:
            _fail(f"U+{code:X} is beyond the last character", at, "the last one is `\\u{10FFFF}`")
        if 0xD800 <= code <= 0xDFFF:
            _fail(_surrogate(code), at, "write the whole character, as in `\\u{1F600}`")
        return code

    def _category(self, at: int, *, negated: bool) -> Ranges:
        closed = self._pattern.find("}", self._at)
        name = self._pattern[self._at + 1 : closed] if self._peek() == "{" and closed >= 0 else ""
        self._at = closed + 1
        found = category(name)
        if found is None:
            what = f"`{name}` is no general category" if name else "a category is missing after `\\p`"
            _fail(what, at, "write one or two letters in braces, as in `\\p{L}`, `\\p{Lu}`, `\\p{Nd}`")
        return complement(found) if negated else found


def _one(code: int) -> Ranges:
    return ((code, code),)
