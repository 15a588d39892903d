"""Samples programs from a grammar's own mask: every byte is tried on the oracle first, so what ends is valid."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Final, final

from aufbau.oracle import Oracle, Prefix
from aufbau.validation.guide import Choice, Guide
from aufbau.verdict import Verdict

# How strongly a choice that leaves more to write is avoided: while the program grows, and once it is long enough.
_GROWING, _CLOSING = 0.25, 2.0
_STOP = 0.55  # of ending a lexeme that may end
_BARE, _ODD = 0.2, 0.03  # of no white space after a lexeme, and of any ignorable text (comments, tabs) instead
_TRIES = 12  # terminals tried at a place before the draft is given up
_WASTE = 3  # lexemes written, for each lexeme of the length, before a draft is given up
_RETREATS = 30  # dead ends that a draft may back out of
_DRAFTS = 40


@final
class _Course:
    """How a draft fares."""

    __slots__ = ("chosen", "closing", "guide", "worn")

    def __init__(self, guide: Guide) -> None:
        self.guide: Final = guide
        self.closing = False
        self.chosen: Choice | None = None  # the last choice
        self.worn: Final[Counter[int]] = Counter()  # what terminals proved to cost beyond what the guide said

    def learn(self, left: int) -> None:
        """Hear how many lexemes are left after the last choice.

        The guide knows no types: where a function is wanted it finds parentheses cheapest, again and again. What a
        choice promised and did not hold is laid on its terminal.
        """
        if self.closing and self.chosen is not None and left > self.chosen.cost:
            self.worn[self.chosen.terminal] += left - self.chosen.cost


@final
class Generator:
    """Draws programs; the same seed and grammar give the same programs."""

    def __init__(self, oracle: Oracle, *, seed: str, length: int = 60) -> None:
        """`length` is the greatest number of lexemes after which a program starts to close."""
        self._oracle: Final = oracle
        self._random: Final = random.Random(seed)
        self._length: Final = length
        self._orders: Final[dict[tuple[int, int], list[tuple[int, float]]]] = {}

    def sample(self) -> bytes | None:
        """A program whose verdict is SATISFIED; None when no draft came to an end."""
        for _ in range(_DRAFTS):
            found = self._draft(self._random.randint(1, self._length))
            if found is not None:
                return found
        return None

    def _draft(self, length: int) -> bytes | None:
        prefix = self._oracle.start()
        course = _Course(Guide(prefix))
        written: list[Prefix] = []  # what stood before each lexeme
        retreats = _RETREATS
        for _ in range(_WASTE * length + 100):
            course.closing = len(written) >= length
            if course.closing and prefix.verdict is Verdict.SATISFIED:
                break
            following = self._advance(course, prefix) if prefix.extensible else None
            if following is not None:
                written.append(prefix)
                prefix = following
                continue
            # Where the oracle says LOST late, a draft can be without a way on: go back some lexemes.
            if prefix.verdict is Verdict.SATISFIED or not written or not retreats:
                break
            retreats -= 1
            back = self._random.randint(1, min(len(written), 10))
            prefix = written[-back]
            del written[-back:]
            course.chosen = None
        return prefix.text if prefix.verdict is Verdict.SATISFIED else None

    def _advance(self, course: _Course, prefix: Prefix) -> Prefix | None:
        """The prefix after some ignorable text or none, and one more lexeme."""
        spaced = self._separated(course.guide, prefix)
        found = self._lexeme(course, spaced)
        if found is None and spaced is prefix:
            # With nothing between, the text may only go on with its last lexeme.
            spaced = prefix.feed(b" ")
            found = None if spaced.verdict is Verdict.LOST else self._lexeme(course, spaced)
        return found

    def _lexeme(self, course: _Course, prefix: Prefix) -> Prefix | None:
        choices = course.guide.choices(prefix)
        if not choices:
            return None
        course.learn(min(choice.cost for choice in choices) + 1)
        pressure = _CLOSING if course.closing else _GROWING
        prices = [choice.cost + course.worn[choice.terminal] for choice in choices]
        least = min(prices)
        keyed = [
            (self._key(math.exp(-pressure * min(price - least, 100))), choice)
            for price, choice in zip(prices, choices, strict=True)
        ]
        for _, choice in sorted(keyed, key=lambda pair: -pair[0])[:_TRIES]:
            spelled = self._spell(course.guide, prefix, choice.terminal)
            # A lexeme that the oracle keeps only because it may grow does not survive the end put to it.
            if spelled is not None and spelled.try_feed(b" ") is not Verdict.LOST:
                course.chosen = choice
                return spelled
        return None

    def _key(self, weight: float) -> float:
        """Sorting by this key in descending order draws without replacement (Efraimidis and Spirakis 2006)."""
        return self._random.random() ** (1 / weight) if weight > 1e-12 else 0.0

    def _spell(self, guide: Guide, prefix: Prefix, terminal: int) -> Prefix | None:
        """The prefix after some text of a terminal; None when the oracle lets none through."""
        automaton = guide.machine.automaton
        state = automaton.start
        while True:
            ends = bool(automaton.accepts[state] >> terminal & 1)
            if ends and (not automaton.more[state] >> terminal & 1 or self._random.random() < _STOP):
                return prefix
            for byte in self._bytes(guide, state, terminal):
                following = prefix.feed(bytes((byte,)))
                if following.verdict is not Verdict.LOST:
                    prefix, state = following, automaton.step(state, byte)
                    break
            else:
                return prefix if ends else None

    def _bytes(self, guide: Guide, state: int, terminal: int) -> list[int]:
        """The bytes that lead on to a terminal, in random order, the readable ones more likely first."""
        found = self._orders.get((state, terminal))
        if found is None:
            automaton = guide.machine.automaton
            leading = [b for b in range(256) if automaton.live[automaton.step(state, b)] >> terminal & 1]
            found = self._orders[state, terminal] = [(byte, 1 / _readability(byte)) for byte in leading]
        if len(found) == 1:
            return [found[0][0]]
        drawn = self._random.random
        return [byte for _, byte in sorted([(-(drawn() ** power), byte) for byte, power in found])]

    def _separated(self, guide: Guide, prefix: Prefix) -> Prefix:
        """The prefix after white space, a comment, or nothing."""
        drawn = self._random.random()
        if drawn < _ODD and guide.machine.ignore_mask:
            ignorables = guide.machine.ignore_mask
            terminal = self._random.choice([t for t in range(ignorables.bit_length()) if ignorables >> t & 1])
            return self._spell(guide, prefix, terminal) or prefix
        if drawn < _ODD + _BARE or not prefix.text:
            return prefix
        space = prefix.feed(b"\n" if drawn > 0.9 else b" ")
        return prefix if space.verdict is Verdict.LOST else space


def _readability(byte: int) -> float:
    """The weight of a byte: letters of small case, then digits and visible signs, hardly anything else."""
    if 0x61 <= byte <= 0x7A:
        return 8.0
    if 0x30 <= byte <= 0x39:
        return 6.0
    if 0x20 <= byte <= 0x7E:
        return 1.0
    return 0.05
