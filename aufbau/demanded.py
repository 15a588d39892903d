"""What can be demanded of each nonterminal: patterns of types, in which some parts are settled and others still open.

A demand is settled in so far as what stands to the left, the parent's demand or Γ has given it a type. Here that is a
*rigid* leaf, which stands for any type at all; a part that nothing has decided yet is a variable.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Final, final

from aufbau.earley.machine import NO_SLOT, RESULT, Machine, Production
from aufbau.typesystem.terms import APART, Term, Terms, variables
from aufbau.typesystem.unify import Substitution

RIGID: Final = "\0rigid"
_DEPTH: Final = 3  # of a pattern; what lies deeper is taken to be settled
_PATTERNS: Final = 12  # of one nonterminal; where there are more, all of a demand is taken to be settled


@final
class Demands:
    """The demands that can be made below a start symbol without a goal."""

    def __init__(self, machine: Machine, terms: Terms) -> None:
        self._terms: Final = terms
        self._any: Final = terms.con(f"{RIGID}0")
        self._of: Final[list[dict[Term, None]]] = [{} for _ in machine.names]
        waiting = [(machine.start, terms.var(0))]
        self._of[machine.start][terms.var(0)] = None
        while waiting:
            nonterminal, pattern = waiting.pop()
            for production in machine.productions[nonterminal]:
                for at, demand in enumerate(self.walk(production, pattern)):
                    child = production.positions[at].nonterminal
                    if child < 0:
                        continue
                    asked = terms.var(0) if demand is None or production.positions[at].bottom_up else demand
                    asked = self._canonical(asked)
                    known = self._of[child]
                    if asked not in known and len(known) >= _PATTERNS:
                        asked = self._any
                    if asked not in known and self._any not in known:
                        known[asked] = None
                        waiting.append((child, asked))

    def of(self, nonterminal: int) -> tuple[Term, ...]:
        """The patterns that are demanded of a nonterminal; where all of a demand may be settled, that one alone."""
        known = self._of[nonterminal]
        return (self._any,) if self._any in known else tuple(known)

    def typed(self, nonterminal: int) -> bool:
        """Whether anything is ever demanded of a nonterminal."""
        return any(pattern.index < 0 for pattern in self._of[nonterminal])

    def walk(self, production: Production, pattern: Term) -> Iterator[Term | None]:
        """What is demanded at each position in turn, if this is demanded of the whole; nothing where that clashes."""
        template, state = production.template, Substitution(self._terms)
        settled: dict[str, Term] = {}
        if not state.unify(template[RESULT], self._freed(pattern, settled)):
            return
        rigid = count()
        for term in settled.values():
            self._settle(state, term, rigid)
        for lookup in production.entry_lookups:
            self._settle(state, template[lookup.slot], rigid)
        for position in production.positions:
            slot = None if position.slot == NO_SLOT else template[position.slot]
            yield None if slot is None else state.resolve(slot)
            if slot is not None:
                self._settle(state, slot, rigid)
            for lookup in position.lookups:
                self._settle(state, template[lookup.slot], rigid)

    def _freed(self, pattern: Term, settled: dict[str, Term]) -> Term:
        """A pattern whose rigid leaves are variables again, to meet a rule, and apart from the rule's own."""
        if pattern.index >= 0:
            return self._terms.var(pattern.index + APART)
        if pattern.head.startswith(RIGID):
            return settled.setdefault(pattern.head, self._terms.var(2 * APART + len(settled)))
        return self._terms.con(pattern.head, tuple([self._freed(arg, settled) for arg in pattern.args]))

    def _settle(self, state: Substitution, term: Term, rigid: Iterator[int]) -> None:
        for index in variables([state.resolve(term)]):
            state.bindings[index] = self._terms.con(f"{RIGID}{next(rigid)}")

    def _canonical(self, pattern: Term) -> Term:
        """Variables and rigid leaves numbered by first appearance, and nothing too deep."""
        names: dict[Term, Term] = {}

        def renamed(term: Term, depth: int) -> Term:
            if term.index >= 0:
                return names.setdefault(term, self._terms.var(len(names)))
            if term.head.startswith(RIGID) or (depth == 0 and term.args):
                return names.setdefault(term, self._terms.con(f"{RIGID}{len(names)}"))
            return self._terms.con(term.head, tuple([renamed(arg, depth - 1) for arg in term.args]))

        return renamed(pattern, _DEPTH)
