"""The context-free part: what the children of a production can read of a row of lexemes, without any evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

from aufbau.reference.firing import Firing, Firings
from aufbau.reference.lexing import Known, Lexer, Slot
from aufbau.reference.surface import Terminal


@final
class Rows:
    """One row of lexemes. Stretches go from one lexeme up to, not including, another."""

    def __init__(self, firings: Firings, lexer: Lexer, slots: tuple[Slot, ...]) -> None:
        self._firings, self._lexer, self._slots = firings, lexer, slots
        self._exact: dict[tuple[str, int, int], bool] = {}
        self._rows: dict[tuple[int, int, int, int], bool] = {}
        self._fits: dict[tuple[int, frozenset[Terminal]], bool] = {}
        self._openable: dict[tuple[str, int], bool] = {}
        self._opening: dict[tuple[int, int, int], bool] = {}

    def derives(self, firing: Firing, i: int, start: int, end: int) -> bool:
        """Whether the children from the i-th on derive a stretch."""
        if i == len(firing.children):
            return start == end
        key = (id(firing), i, start, end)
        if key not in self._rows:
            ends = self.ends(firing, i, start, end - self._firings.shortest(firing.children[i + 1 :]))
            self._rows[key] = any(self.derives(firing, i + 1, middle, end) for middle in ends)
        return self._rows[key]

    def ends(self, firing: Firing, i: int, start: int, last: int) -> Iterator[int]:
        """Where the i-th child can end if it begins at `start`."""
        child = firing.children[i]
        if child.lexemes is None:
            yield from (at for at in range(start, last + 1) if self._spans(child.symbol.value, start, at))
        elif start < last and self.fits(start, child.lexemes):
            yield start + 1

    def _spans(self, name: str, start: int, end: int) -> bool:
        found = self._exact.get((name, start, end))
        if found is None:
            found = any(self.derives(firing, 0, start, end) for firing in self._firings.of[name])
            self._exact[name, start, end] = found
        return found

    def fits(self, at: int, terminals: frozenset[Terminal]) -> bool:
        """Whether a lexeme is, or can become, one of these terminals."""
        slot = self._slots[at]
        if isinstance(slot, Known):
            return bool(slot.classes & terminals)
        if (at, terminals) not in self._fits:
            self._fits[at, terminals] = any(self._lexer.extends(slot.piece, terminal) for terminal in terminals)
        return self._fits[at, terminals]

    def opens(self, firing: Firing, i: int, start: int) -> bool:
        """Whether the children from the i-th on can read all lexemes from `start` on and leave something pending."""
        if i == len(firing.children) or start == len(self._slots):
            return i < len(firing.children)
        key = (id(firing), i, start)
        if key not in self._opening:
            child = firing.children[i]
            self._opening[key] = (child.lexemes is None and self.can_open(child.symbol.value, start)) or any(
                self.opens(firing, i + 1, end) for end in self.ends(firing, i, start, len(self._slots))
            )
        return self._opening[key]

    def can_open(self, name: str, start: int) -> bool:
        """Whether a nonterminal can begin at a lexeme and go on past the last one."""
        if (name, start) not in self._openable:
            # All questions that this one leads to, and which of them say so of themselves.
            asked, above = [(name, start)], {(name, start): set[tuple[str, int]]()}
            sure: list[tuple[str, int]] = []
            for question in asked:
                at_end, below = self._below(*question)
                sure += [question] if at_end else []
                asked += [other for other in below if other not in above]
                for other in below:
                    above.setdefault(other, set()).add(question)
            found = set(sure)
            for question in sure:
                sure += above[question] - found
                found |= above[question]
            self._openable |= {question: question in found for question in asked}
        return self._openable[name, start]

    def _below(self, name: str, start: int) -> tuple[bool, list[tuple[str, int]]]:
        """Whether a nonterminal can end at the last lexeme with children left, and the open children it can have."""
        at_end, below = False, dict[tuple[str, int], None]()
        for firing in self._firings.of[name]:
            places = {start}
            for i, child in enumerate(firing.children):
                at_end = at_end or len(self._slots) in places
                places.discard(len(self._slots))
                if child.lexemes is None:
                    below |= {(child.symbol.value, at): None for at in places}
                places = {end for at in places for end in self.ends(firing, i, at, len(self._slots))}
        return at_end, list(below)
