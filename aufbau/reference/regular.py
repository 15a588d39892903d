"""Regular languages by derivatives over characters (Brzozowski 1964): matching, and what can still be matched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

from aufbau.regex.syntax import EPSILON, Alternate, Chars, Concat, Regex, Repeat, is_empty, nullable

NOTHING: Regex = Chars(ranges=())
_PREFERRED = [ord(char) for char in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"]
_VISIBLE = [*_PREFERRED, *(code for code in range(33, 127) if code not in _PREFERRED)]


def derivative(regex: Regex, char: int) -> Regex:
    """What must follow `char` for the whole to match."""
    if isinstance(regex, Chars):
        return EPSILON if any(low <= char <= high for low, high in regex.ranges) else NOTHING
    if isinstance(regex, Alternate):
        return _either([derivative(part, char) for part in regex.parts])
    if isinstance(regex, Concat):
        if not regex.parts:
            return NOTHING
        head, tail = regex.parts[0], Concat(parts=regex.parts[1:])
        found = [_then(derivative(head, char), tail)]
        if nullable(head):
            found.append(derivative(tail, char))
        return _either(found)
    if regex.high == 0:
        return NOTHING
    high = None if regex.high is None else regex.high - 1
    rest = Repeat(body=regex.body, low=max(0, regex.low - 1), high=high)
    return _then(derivative(regex.body, char), rest)


def _then(first: Regex, second: Regex) -> Regex:
    if is_empty(first) or is_empty(second):
        return NOTHING
    parts = [*(first.parts if isinstance(first, Concat) else (first,))]
    parts += second.parts if isinstance(second, Concat) else (second,)
    return parts[0] if len(parts) == 1 else Concat(parts=tuple(parts))


def _either(options: list[Regex]) -> Regex:
    parts: dict[Regex, None] = {}
    for option in options:
        for part in option.parts if isinstance(option, Alternate) else (option,):
            if not is_empty(part):
                parts[part] = None
    return next(iter(parts), NOTHING) if len(parts) < 2 else Alternate(parts=tuple(parts))


def _ranges(regex: Regex) -> Iterator[tuple[int, int]]:
    if isinstance(regex, Chars):
        yield from regex.ranges
    elif isinstance(regex, Repeat):
        yield from _ranges(regex.body)
    else:
        for part in regex.parts:
            yield from _ranges(part)


@final
class Language:
    """One terminal; its derivatives are numbered as they are met, 0 being the whole."""

    def __init__(self, regex: Regex) -> None:
        self._regexes = [regex]
        self._numbers = {regex: 0}
        self._next: dict[tuple[int, int], int] = {}
        self._ranges = sorted(set(_ranges(regex)))
        # One character at least of each set that the regex tells apart.
        near = {end + by for pair in self._ranges for end in pair for by in (-1, 0, 1)}
        inside = {code for code in near | set(_VISIBLE) if any(low <= code <= high for low, high in self._ranges)}
        visible = [code for code in _VISIBLE if code in inside]
        self._samples = [*visible, *sorted(inside - set(visible))]
        self._distances: dict[int, int] = {}

    def step(self, state: int, char: int) -> int:
        """The state after one more character."""
        found = self._next.get((state, char))
        if found is None:
            regex = derivative(self._regexes[state], char)
            found = self._numbers.setdefault(regex, len(self._regexes))
            if found == len(self._regexes):
                self._regexes.append(regex)
            self._next[state, char] = found
        return found

    def run(self, text: str) -> int:
        """The state after a text."""
        state = 0
        for char in text:
            state = self.step(state, ord(char))
            if self._regexes[state] == NOTHING:
                break
        return state

    def longest(self, text: str, start: int) -> int:
        """The end of the longest match that begins at `start`; `start` itself when there is none."""
        state, end = 0, start
        for at in range(start, len(text)):
            state = self.step(state, ord(text[at]))
            if self._regexes[state] == NOTHING:
                break
            if nullable(self._regexes[state]):
                end = at + 1
        return end

    def accepts(self, text: str) -> bool:
        """Whether the whole text matches."""
        return nullable(self._regexes[self.run(text)])

    def longer(self, piece: bytes) -> Iterator[str]:
        """Matches that `piece`, which may end inside a character, is a proper beginning of, shortest first."""
        text, broken = split(piece)
        state = self.run(text)
        if is_empty(self._regexes[state]):
            return
        firsts = self._samples
        if broken:
            low, high = _spelled_by(broken)
            inside = {max(low, a) for a, b in self._ranges if a <= high and b >= low}
            firsts = sorted(inside | {code for code in firsts if low <= code <= high})
        distance = self._distance(state)
        length = 1
        # Past this many characters beyond the shortest, a finite language has ended.
        while length <= len(self._regexes) + 1:
            for char in firsts:
                after = self.step(state, char)
                if after in distance and distance[after] < length:
                    for rest in self._of_length(after, length - 1, distance):
                        yield text + chr(char) + rest
            length += 1

    def _of_length(self, state: int, length: int, distance: dict[int, int]) -> Iterator[str]:
        if length == 0:
            if nullable(self._regexes[state]):
                yield ""
            return
        for char in self._samples:
            after = self.step(state, char)
            if after in distance and distance[after] < length:
                for rest in self._of_length(after, length - 1, distance):
                    yield chr(char) + rest

    def _distance(self, start: int) -> dict[int, int]:
        """How many characters are missing at least, for each state from which something can match."""
        if start not in self._distances:
            edges: dict[int, set[int]] = {}
            queue = [start]
            for state in queue:
                edges[state] = {self.step(state, char) for char in self._samples}
                queue += sorted(edges[state] - set(queue))
            found = {state: 0 for state in queue if nullable(self._regexes[state])}
            changed = True
            while changed:
                changed = False
                for state in queue:
                    best = min((found[after] + 1 for after in edges[state] if after in found), default=None)
                    if best is not None and best < found.get(state, best + 1):
                        found[state], changed = best, True
            self._distances |= found
        return self._distances


def split(data: bytes) -> tuple[str, bytes]:
    """The characters of a text and the bytes of one that has not ended. Raises `UnicodeDecodeError`."""
    try:
        return data.decode(), b""
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data":
            raise
        return data[: error.start].decode(), data[error.start :]


def _spelled_by(broken: bytes) -> tuple[int, int]:
    """The code points whose UTF-8 begins with these bytes, as a range."""
    lead = broken[0]
    width = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    code = lead & (0x7F >> width)
    for byte in broken[1:]:
        code = code << 6 | byte & 0x3F
    left = 6 * (width - len(broken))
    low, high = code << left, (code + 1 << left) - 1
    return max(low, (0x80, 0x800, 0x10000)[width - 2]), min(high, 0x10FFFF)
