"""The union automaton: all terminals of a grammar as one deterministic automaton over bytes.

Sets of terminals are ints, bit t standing for terminal t. Reservation happens here: where a literal matches
that is not contextual, no regex terminal matches (keyword beats identifier).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

from aufbau.lexer.reach import Reach, Region, analyse, region_of, residuals
from aufbau.regex import DEAD, DEFAULT_LIMITS, ByteAutomaton, Regex, RegexLimits, compile_regexes


@dataclass(frozen=True, kw_only=True, slots=True)
class TerminalSpec:
    """A terminal as the automaton sees it; a literal's regex comes from `literal_regex`."""

    regex: Regex
    literal: bool = False
    contextual: bool = False


@final
class LexerAutomaton:
    """Minimal, immutable, and trimmed: a state from which nothing can be accepted does not exist, it is DEAD.

    Tables have one row more than there are states, so that row DEAD (-1, the last one) is there and says
    "nothing": stepping from DEAD stays DEAD, and its masks are 0.
    """

    __slots__ = ("_regions", "_runs", "accepts", "infinite", "live", "more", "size", "start", "transitions")

    def __init__(self, automaton: ByteAutomaton) -> None:
        self._runs = automaton.runs
        self._regions: dict[tuple[int, int], Region] = {}
        self.start: int = automaton.start
        self.size: int = len(automaton.runs)
        reach: Reach = analyse(automaton)
        # transitions[state][byte] is the next state or DEAD. 42 ns a step; one flat list took 84 ns.
        self.transitions: list[list[int]] = [_row(runs) for runs in automaton.runs] + [[DEAD] * 256]
        # Terminals that match exactly here, after reservation.
        self.accepts: list[int] = [*automaton.accepts, 0]
        # Terminals that match here or after more bytes.
        self.live: list[int] = [*reach.live, 0]
        # Terminals that match after at least one more byte.
        self.more: list[int] = [*reach.more, 0]
        # Terminals that match after infinitely many different continuations.
        self.infinite: list[int] = [*reach.infinite, 0]

    @staticmethod
    def blank() -> LexerAutomaton:
        """One without states, which a snapshot fills."""
        return LexerAutomaton(ByteAutomaton(DEAD, [], []))

    def step(self, state: int, byte: int) -> int:
        """The state after one more byte; DEAD when no terminal goes on like this."""
        return self.transitions[state][byte]

    def run(self, text: Iterable[int], state: int | None = None) -> int:
        """The state after these bytes, from `state` or the start."""
        transitions = self.transitions
        at = self.start if state is None else state
        for byte in text:
            at = transitions[at][byte]
            if at == DEAD:
                break
        return at

    def classify(self, text: bytes) -> int:
        """The terminals that match the whole text."""
        return self.accepts[self.run(text)]

    def extensions(self, state: int, terminal: int, limit: int) -> Iterator[bytes]:
        """At most `limit` strings after which `terminal` matches, shortest first, the empty one included.

        Among strings of one length those come first that begin with lower-case letters, then upper-case
        letters, digits, other visible characters, and the rest.
        """
        if not self.live[state] >> terminal & 1:
            return iter(())
        bit = 1 << terminal
        # Searches for completions ask for the same few over and over: in core ML these were half of their time.
        region = self._regions.get((state, bit))
        if region is None:
            region = self._regions[state, bit] = region_of(self._runs, self.live, state, bit)
        return residuals(region, self.accepts, state, bit, limit)


def build(terminals: Sequence[TerminalSpec], limits: RegexLimits = DEFAULT_LIMITS) -> LexerAutomaton:
    """The automaton of these terminals; bit t of every mask is `terminals[t]`.

    Raises RegexError when it would go past a limit.
    """
    regexes = reserving = 0
    for number, terminal in enumerate(terminals):
        if not terminal.literal:
            regexes |= 1 << number
        elif not terminal.contextual:
            reserving |= 1 << number

    def reserve(mask: int) -> int:
        return mask & ~regexes if mask & reserving else mask

    expressions = [terminal.regex for terminal in terminals]
    return LexerAutomaton(compile_regexes(expressions, reserve, limits))


def _row(runs: Sequence[tuple[int, int, int]]) -> list[int]:
    row = [DEAD] * 256
    for low, high, target in runs:
        row[low : high + 1] = [target] * (high + 1 - low)
    return row
