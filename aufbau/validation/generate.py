"""Samples programs from a grammar's own mask: every byte is tried on the oracle first, so what ends is valid."""

from __future__ import annotations

import heapq
import math
import random
from collections import Counter
from typing import Final, final

from aufbau.lexer.automaton import LexerAutomaton
from aufbau.oracle import Oracle, Prefix
from aufbau.validation.guide import Choice, Guide, Taken
from aufbau.verdict import Verdict

_PRESSURE = (0.3, 1.5)  # how strongly a choice that leaves more to write is avoided while a draft grows: the range
_WEAR = 0.3  # lexemes that each use of a terminal makes it dearer
_STOP = 0.55  # of ending a lexeme that may end
_SHORTEN = 0.15  # at each byte: of going for the end of the lexeme the shortest way
_LONGEST = 64  # bytes of a lexeme
_BARE, _ODD = 0.2, 0.03  # of no white space after a lexeme, and of any ignorable text (comments, tabs) instead
_TRIES = 12  # terminals tried at a place before some lexemes are taken back
_RETREATS = 30  # times that a draft may take lexemes back
_SEARCH = 80  # steps of the search for an end
# What a lexeme still to be written counts in that search, one that is written being 1. With 1 the shortest end is
# found, which is not asked for; with 2 the search takes half the time and fails half as often.
_HASTE = 2
_SEARCHES = 2  # searches for an end before a draft is given up
_DRAFTS = 40
# Samples that share a start: what is remembered of items (`Taken`) holds for the contexts of one start. Then both are
# dropped, since they hold what the samples put in scope.
_SHARED = 25


@final
class Generator:
    """Draws programs; the same seed and grammar give the same program, whatever was drawn before."""

    def __init__(self, oracle: Oracle, *, length: int = 40) -> None:
        """`length` is the greatest number of lexemes after which a program starts to close."""
        self._oracle: Final = oracle
        self._space: Final = _space(oracle)
        self._length: Final = length
        self._orders: Final[dict[tuple[int, int], list[tuple[int, float]]]] = {}
        self._distances: Final[dict[int, dict[int, int]]] = {}
        self._random = random.Random()
        self._samples = 0
        self._start, self._taken = oracle.start(), Taken()

    def sample(self, seed: str) -> bytes | None:
        """A program whose verdict is SATISFIED; None when no draft came to an end."""
        if self._samples and self._samples % _SHARED == 0:
            self._start, self._taken = self._oracle.start(), Taken()
        self._samples += 1
        self._random = random.Random(seed)
        for _ in range(_DRAFTS):
            found = self._draft(self._random.randint(1, self._length))
            if found is not None:
                return found
        return None

    def _draft(self, length: int) -> bytes | None:
        prefix = self._start
        guide = Guide(prefix, self._taken)
        pressure = self._random.uniform(*_PRESSURE)
        worn: Counter[int] = Counter()  # how often each terminal was chosen
        written: list[Prefix] = []  # what stood before each lexeme
        retreats, searches = _RETREATS, _SEARCHES
        while len(written) < length or prefix.verdict is not Verdict.SATISFIED:
            if len(written) >= length:
                searches -= 1
                following = self._closed(guide, prefix)
            else:
                following = self._grown(guide, prefix, pressure, worn) if prefix.extensible else None
            if following is not None:
                written.append(prefix)
                prefix = following
                continue
            # Nothing can follow: the text is whole before its time, or the oracle says LOST late. Go back some lexemes.
            if not written or not retreats or not searches:
                break
            retreats -= 1
            back = self._random.randint(1, min(len(written), 10))
            prefix = written[-back]
            del written[-back:]
        return prefix.text if prefix.verdict is Verdict.SATISFIED else None

    def _grown(self, guide: Guide, prefix: Prefix, pressure: float, worn: Counter[int]) -> Prefix | None:
        """The prefix after one more lexeme, drawn from all that may follow, what came often less likely."""
        choices = guide.choices(prefix)
        prices = [choice.cost + _WEAR * worn[choice.terminal] for choice in choices]
        least = min(prices, default=0.0)
        if prefix.verdict is Verdict.SATISFIED:
            pressure = 0.0  # nothing is open, so a short item is no better than a long one
        keyed = [
            (self._key(math.exp(-pressure * min(price - least, 100))), choice)
            for price, choice in zip(prices, choices, strict=True)
        ]
        for _, choice in sorted(keyed, key=lambda pair: -pair[0])[:_TRIES]:
            following = self._written(guide, prefix, choice)
            if following is not None:
                worn[choice.terminal] += 1
                return following
        return None

    def _closed(self, guide: Guide, prefix: Prefix) -> Prefix | None:
        """A satisfied prefix a few lexemes on: A* by the guide's counts, in haste.

        Types may forbid the cheapest way again and again (parentheses around what has no short value), so
        following the counts greedily would not end.
        """
        drawn = self._random.random
        # A prefix with the lexemes that may follow it, or with the one to be tried.
        queue: list[tuple[int, int, float, Prefix, list[Choice] | Choice]] = []
        queue.append((0, 0, drawn(), prefix, guide.choices(prefix)))
        for _ in range(_SEARCH):
            if not queue:
                return None
            _, depth, _, reached, choice = heapq.heappop(queue)  # depth is negative: of equals the deepest first
            if isinstance(choice, list):
                for one in choice:
                    heapq.heappush(queue, (1 - depth + _HASTE * one.cost, depth, drawn(), reached, one))
                continue
            following = self._written(guide, reached, choice)
            if following is None:
                continue
            if following.verdict is Verdict.SATISFIED:
                return following
            choices = guide.choices(following)
            left = min((after.cost for after in choices), default=None)
            if left is not None:
                heapq.heappush(queue, (1 - depth + _HASTE * (left + 1), depth - 1, drawn(), following, choices))
        return None

    def _written(self, guide: Guide, prefix: Prefix, choice: Choice) -> Prefix | None:
        """The prefix after ignorable text or none, and a lexeme of the terminal."""
        spaced = self._separated(guide, prefix)
        found = self._whole(guide, spaced, choice.terminal)
        if found is None and spaced is prefix:
            # With nothing between, the text may only go on with its last lexeme.
            spaced = prefix.feed(self._space)
            found = None if spaced.verdict is Verdict.LOST else self._whole(guide, spaced, choice.terminal)
        return found

    def _whole(self, guide: Guide, prefix: Prefix, terminal: int) -> Prefix | None:
        spelled = self._spell(guide, prefix, terminal)
        # A lexeme that the oracle keeps only because it may grow does not survive the end put to it.
        return None if spelled is None or spelled.try_feed(self._space) is Verdict.LOST else spelled

    def _key(self, weight: float) -> float:
        """Sorting by this key in descending order draws without replacement (Efraimidis and Spirakis 2006)."""
        return self._random.random() ** (1 / weight) if weight > 1e-12 else 0.0

    def _spell(self, guide: Guide, prefix: Prefix, terminal: int) -> Prefix | None:
        """The prefix after some text of a terminal; None when the oracle lets none through, or none that is short."""
        automaton = guide.machine.automaton
        state = automaton.start
        closing = False
        for _ in range(_LONGEST):
            ends = bool(automaton.accepts[state] >> terminal & 1)
            if ends and not automaton.more[state] >> terminal & 1:
                return prefix
            # Where a name begins like one in scope, it may have to go on.
            if ends and self._random.random() < _STOP and prefix.try_feed(self._space) is not Verdict.LOST:
                return prefix
            closing = closing or self._random.random() < _SHORTEN
            for byte in self._bytes(guide, state, terminal, closing):
                following = prefix.feed(bytes((byte,)))
                if following.verdict is not Verdict.LOST:
                    prefix, state = following, automaton.step(state, byte)
                    break
            else:
                return prefix if ends else None
        return None

    def _bytes(self, guide: Guide, state: int, terminal: int, closing: bool) -> list[int]:
        """The bytes that lead on to a terminal, in random order, the readable ones more likely first.

        In closing only those on a shortest way to its end, or strings and comments would not end.
        """
        automaton = guide.machine.automaton
        found = self._orders.get((state, terminal))
        if found is None:
            leading = [b for b in range(256) if automaton.live[automaton.step(state, b)] >> terminal & 1]
            found = self._orders[state, terminal] = [(byte, 1 / _readability(byte)) for byte in leading]
        if len(found) == 1:
            return [found[0][0]]
        drawn = self._random.random
        order = [byte for _, byte in sorted([(-(drawn() ** power), byte) for byte, power in found])]
        if closing:
            left = self._distances.setdefault(terminal, {})
            if not left:
                left.update(_distances(automaton, terminal))
            if left[state]:
                order = [byte for byte in order if left[automaton.step(state, byte)] < left[state]]
        return order

    def _separated(self, guide: Guide, prefix: Prefix) -> Prefix:
        """The prefix after white space, a comment, or nothing."""
        drawn = self._random.random()
        if drawn < _ODD and guide.machine.ignore_mask:
            ignorables = guide.machine.ignore_mask
            terminal = self._random.choice([t for t in range(ignorables.bit_length()) if ignorables >> t & 1])
            return self._spell(guide, prefix, terminal) or prefix
        if drawn < _ODD + _BARE or not prefix.text:
            return prefix
        space = prefix.feed(b"\n" if drawn > 0.9 else self._space)
        return prefix if space.verdict is Verdict.LOST else space


def _space(oracle: Oracle) -> bytes:
    """A blank if the grammar ignores it, else the shortest text that it does; nothing where it ignores nothing."""
    machine = oracle.grammar.machine(oracle.grammar.model.start)
    automaton, ignored = machine.automaton, machine.ignore_mask
    if automaton.classify(b" ") & ignored:
        return b" "
    terminals = [t for t in range(ignored.bit_length()) if ignored >> t & 1]
    texts = (text for t in terminals for text in automaton.extensions(automaton.start, t, 1))
    return min(texts, key=len, default=b"")


def _readability(byte: int) -> float:
    """The weight of a byte: letters of small case, then digits and visible signs, hardly anything else."""
    if 0x61 <= byte <= 0x7A:
        return 8.0
    if 0x30 <= byte <= 0x39:
        return 6.0
    if 0x20 <= byte <= 0x7E:
        return 1.0
    return 0.05


def _distances(automaton: LexerAutomaton, terminal: int) -> dict[int, int]:
    """For each state from which a terminal can be reached, the least number of bytes to its end."""
    before: dict[int, set[int]] = {}
    for state in range(automaton.size):
        for target in set(automaton.transitions[state]):
            before.setdefault(target, set()).add(state)
    found = {state: 0 for state in range(automaton.size) if automaton.accepts[state] >> terminal & 1}
    queue = list(found)
    for state in queue:
        for earlier in before.get(state, ()):
            if earlier not in found:
                found[earlier] = found[state] + 1
                queue.append(earlier)
    return found
