"""The reference evaluator: a prefix's verdict, types and exports, straight from the definitions (paper, 2.2 and 2.3).

Slow and obvious: every lexing, every compatible parse, its evidence graph, its solution. It shares with the engine
the grammar model, regexes as syntax trees with their reader, and the words for verdicts, nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import final

from aufbau.grammar.model import GrammarModel
from aufbau.reference.evidence import Effect, Gamma, OutOfSteps, Search
from aufbau.reference.firing import AMBIENT, Firings, Key
from aufbau.reference.lexing import Begun, Lexer, Lexing
from aufbau.reference.surface import Surface
from aufbau.reference.terms import TOP, Bound, Scheme, Solution, Term, canonical, generalise, replace
from aufbau.verdict import Verdict

DEPTH = 24  # of a chain of open nodes that begin at one lexeme
STEPS = 30_000
_SPELLED = 20  # parses of a completion that are spelled out before another length is tried


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """One complete parse: its type (None for ⊤) and the names in the innermost scope after it, holes numbered."""

    type: Term | None
    names: frozenset[tuple[str, Term]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What the reference says of a prefix."""

    verdict: Verdict
    readings: frozenset[Reading] = frozenset()

    @property
    def types(self) -> frozenset[Term]:
        """The types of the complete parses that have one."""
        return frozenset(reading.type for reading in self.readings if reading.type is not None)


@final
class Reference:
    """A grammar seen from one start symbol, with what is in scope and demanded at the start."""

    def __init__(
        self,
        model: GrammarModel,
        *,
        context: Mapping[str, str] | None = None,
        goal: str | None = None,
        symbol: str | None = None,
        ambient: Mapping[str, str] | None = None,
    ) -> None:
        self.symbol = symbol or model.start
        surface = Surface(model, self.symbol)
        self.firings = Firings(surface)
        self.lexer = Lexer(surface)
        self._holes = 0
        reader = self.firings.reader
        gamma = Gamma({key: self._quantified(bound) for key, bound in self.firings.given()}).opened()
        types: dict[Key, Bound] = {(AMBIENT, key): reader.read(text) for key, text in (ambient or {}).items()}
        types |= {("", name): self._quantified(reader.read(text)) for name, text in (context or {}).items()}
        self._gamma = gamma.extended(tuple(types.items()))
        self._goal: Term = self._hole() if goal is None else self._numbered(reader.read(goal))

    def judge(self, text: bytes, *, depth: int = DEPTH, steps: int = STEPS) -> Finding:
        """The verdict on a prefix. Raises `OutOfSteps` when there is too much to enumerate."""
        branches = [
            (lexing, Search(self.firings, self.lexer, lexing.slots, depth=depth, steps=steps))
            for lexing in self.lexer.lexings(text)
        ]
        readings = frozenset(
            self._reading(solution, effect)
            for lexing, search in branches
            if lexing.finished
            for solution, effect in search.complete(self.symbol, self._gamma, self._goal)
        )
        if readings:
            return Finding(verdict=Verdict.SATISFIED, readings=readings)
        alive = any(self._is_consistent(search) for _, search in branches)
        return Finding(verdict=Verdict.LIVE if alive else Verdict.LOST)

    def completion(self, text: bytes, *, lexemes: int, steps: int = STEPS) -> bytes | None:
        """A text that `judge` satisfies and that begins with this one, at most so many lexemes longer, if one is found.

        Lexemes are chosen by the evidence and set apart by what the grammar ignores; that the whole is satisfied is
        judged anew.
        """
        for more in range(lexemes + 1):
            for lexing in self.lexer.lexings(text):
                found = None if lexing.inside_ignorable else self._completed(text, lexing, more, steps)
                if found is not None:
                    return found
        return None

    def _completed(self, text: bytes, lexing: Lexing, more: int, steps: int) -> bytes | None:
        slots = (*lexing.slots, *(Begun() for _ in range(more)))
        search = Search(self.firings, self.lexer, slots, depth=DEPTH, steps=steps)
        last = lexing.slots[-1] if lexing.slots else None
        begun = last.piece if isinstance(last, Begun) else b""
        known = len(lexing.slots) - bool(begun)
        try:
            for _ in islice(search.complete(self.symbol, self._gamma, self._goal), _SPELLED):
                rest = [search.chosen[at].encode() for at in range(known, len(slots))]
                if begun:
                    rest[0] = rest[0][len(begun) :]
                for between in (b" ", b""):
                    whole = text + (b"" if begun else between) + between.join(rest)
                    if self.judge(whole, steps=steps).verdict is Verdict.SATISFIED:
                        return whole
        except OutOfSteps:
            pass  # nothing was found within the bound, which is all that is promised
        return None

    def _is_consistent(self, search: Search) -> bool:
        """Whether some parse that is compatible with the lexemes has no contradiction."""
        whole = search.complete(self.symbol, self._gamma, self._goal)
        return next(whole, None) is not None or search.partial(self.symbol, self._gamma, self._goal)

    def _reading(self, solution: Solution, effect: Effect) -> Reading:
        (own,) = canonical([self._goal], solution)
        gamma = self._gamma.extended(effect)
        bodies = {
            name: bound.body if isinstance(bound, Scheme) else bound
            for (space, name), bound in gamma.types.items()
            if not space and (space, name) in gamma.innermost
        }
        names = {(name, canonical([body], solution)[0]) for name, body in bodies.items()}
        return Reading(type=None if own == TOP else own, names=frozenset(names))

    # Types of the start

    def _hole(self) -> int:
        self._holes += 1
        return self._holes

    def _numbered(self, term: Term) -> Term:
        numbers: dict[int | str, int] = {}

        def number(hole: int | str) -> Term:
            if hole not in numbers:
                numbers[hole] = self._hole()
            return numbers[hole]

        return replace(term, number)

    def _quantified(self, bound: Bound) -> Bound:
        return bound if isinstance(bound, Scheme) else generalise(self._numbered(bound), (), {})
