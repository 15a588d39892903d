"""Type coverage, condition (T) of the paper's Definition 2.5: is every demand met by a closed text, whatever Γ is?

Two kinds of proof are sought. *Closed schemes* are types for all of whose instances a nonterminal has a text (`assert
false` has one of every type), found bottom-up. Where they don't reach, *induction over types*: for every head that a
type of the nonterminal can have (`aufbau.sorts`), a production that needs only types of this size and smaller ones, of
nonterminals that are covered themselves. A position whose demand (`aufbau.demanded`) is not proved to be met is a gap;
nothing is claimed of it. Names in Γ are never counted on, since programs may lack or shadow them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final, final

from aufbau.demanded import RIGID, Demands
from aufbau.earley.machine import NO_SLOT, RESULT, Machine, Position, Production
from aufbau.grammar.model import GrammarModel
from aufbau.sorts import OTHER, Sorts
from aufbau.typesystem.terms import APART, Term
from aufbau.typesystem.unify import Substitution

_SCHEMES: Final = 24  # closed schemes kept for one nonterminal
_DEPTH: Final = 3  # of their types
_LEAVES: Final = 8  # leaves that a part of a constructor can be, for each of which a case is written out


@dataclass(frozen=True, kw_only=True, slots=True)
class Gap:
    """A position whose demand was not proved to be met."""

    production: Production
    dot: int
    place: str
    types: tuple[str, ...]

    @property
    def symbol(self) -> str:
        """What stands there."""
        return self.production.positions[self.dot].symbol if self.production.positions else ""

    def __str__(self) -> str:
        what = ", ".join(self.types)
        return f"{self.place}: no closed text was proved to have the type {what}" if what else self.place


@final
class Proof:
    """The search for a proof of (T) for one start symbol, its root without a goal."""

    def __init__(self, model: GrammarModel, machine: Machine, ambient: frozenset[str] = frozenset()) -> None:
        """`ambient` are keys that the caller is taken to set; without them, the proof holds whichever are set."""
        self.machine: Final = machine
        self.terms = self.machine.terms.fork()
        self.syntax = self.machine.syntax
        self.ambient: Final = ambient
        self.productions = [production for group in self.machine.productions for production in group]
        self.schemes: list[list[Term]] = [[] for _ in self.machine.names]
        self.by: dict[tuple[int, Term], Production] = {}  # which production yields a scheme, or a case
        self._shifted: dict[tuple[Term, int], Term] = {}
        self._close_schemes()
        self.sorts: Final = Sorts(model, machine, self.terms)
        # For each nonterminal, a case for each head that its types can have.
        self.cases = [
            [case for head in self.sorts.of(n) for case in self.written(*head)] for n in range(len(machine.names))
        ]
        self._alike: list[dict[tuple[str, int], list[Term]]] = []  # for each nonterminal, its cases by their heads
        for cases in self.cases:
            alike: dict[tuple[str, int], list[Term]] = {}
            for case in cases:
                alike.setdefault((case.head, len(case.args)), []).append(case)
            self._alike.append(alike)
        self._measures: dict[Term, tuple[Counter[str], int]] = {}
        self._closed = {  # cases that are met by a closed scheme
            (n, case)
            for n, cases in enumerate(self.cases)
            for case in cases
            if any(self._instance(case, scheme) for scheme in self.schemes[n])
        }
        self.demands = Demands(machine, self.terms)
        self.demanded = {n for n in range(len(self.machine.names)) if self.demands.typed(n)}
        self.covered: set[int] = set()
        self.proved = {n for n in range(len(self.machine.names)) if self.absolute(n)}  # so of types of any size
        self.met: set[tuple[int, Term]] = set()
        self._induction()
        self.gaps = list(self._gaps())

    # Closed schemes, bottom-up

    def _close_schemes(self) -> None:
        seen: dict[Production, int] = {}  # how many schemes of its children a production was built from
        changed = True
        while changed:
            changed = False
            for production in self.productions:
                known = self.schemes[production.nonterminal]
                size = sum(len(self.schemes[p.nonterminal]) for p in production.positions if p.nonterminal >= 0)
                if seen.get(production) == size or self.absolute(production.nonterminal):
                    continue
                seen[production] = size
                for scheme in self._built(production):
                    if (
                        len(known) < _SCHEMES
                        and scheme.depth <= _DEPTH
                        and not any(self._instance(scheme, other) for other in known)
                    ):
                        known.append(scheme)
                        self.by[production.nonterminal, scheme] = production
                        changed = True

    def _built(self, production: Production) -> list[Term]:
        """Types of the production for which its children have closed texts."""
        if not self._may_begin(production):
            return []
        states = [Substitution(self.terms)]
        for at, position in enumerate(production.positions):
            following: list[Substitution] = []
            for state in states:
                following += self._read(production, position, state, (at + 1) * APART)
            states = following[:_SCHEMES]
        results = [state.resolve(production.template[RESULT]) for state in states]
        return [self.terms.canonical(result)[0] for result in results]

    def _may_begin(self, production: Production) -> bool:
        """Whether a production needs nothing of the ambient part of Γ that the caller doesn't set."""
        return self.ambient.issuperset(production.conditions) and not production.entry_lookups

    def _read(
        self, production: Production, position: Position, state: Substitution, apart: int
    ) -> Iterator[Substitution]:
        slot = None if position.slot == NO_SLOT else production.template[position.slot]
        if position.nonterminal >= 0:
            for scheme in self.schemes[position.nonterminal]:
                after = self._copy(state)
                if slot is None or after.unify(slot, self._apart(scheme, apart)):
                    yield after
                    if slot is None:
                        return
            return
        for text in self._texts(position, None if slot is None else state.resolve(slot)):
            after = self._copy(state)
            if slot is None or after.unify(slot, self.terms.con(text)):
                yield after

    def _texts(self, position: Position, required: Term | None) -> list[str]:
        """Texts that a lexeme may have whatever Γ is; one for all that no rule tells apart."""
        automaton, found = self.machine.automaton, []
        if position.member or position.lookups:
            return []
        if position.fresh and not automaton.infinite[automaton.start] & position.mask:
            return []
        if required is not None and required.index < 0:
            head = required.head
            return [head] if not required.args and self._spells(position.mask, head) else []
        for terminal, text in enumerate(self.machine.terminals):
            if position.mask >> terminal & 1:
                literal = self.machine.terminal_is_literal[terminal]
                found.append(text if literal else OTHER + text)
        return found

    def _spells(self, mask: int, head: str) -> bool:
        """Whether a lexeme of `mask` can be this text."""
        if head.startswith(OTHER):
            same = (t for t, text in enumerate(self.machine.terminals) if text == head[len(OTHER) :])
            return any(mask >> t & 1 and not self.machine.terminal_is_literal[t] for t in same)
        return bool(self.machine.automaton.classify(head.encode()) & mask)

    def _copy(self, state: Substitution) -> Substitution:
        after = Substitution(self.terms)
        after.bindings.update(state.bindings)
        return after

    def _instance(self, term: Term, scheme: Term) -> bool:
        """Whether every instance of `term` is one of `scheme`."""
        rigid = self.terms.substitute(term, lambda index: self.terms.con(f"{RIGID}{index}"))
        return Substitution(self.terms).unify(rigid, self._apart(scheme, APART))

    def _apart(self, scheme: Term, by: int) -> Term:
        """A scheme with variables of its own; remembered, since each meets many types."""
        found = self._shifted.get((scheme, by))
        if found is None:
            found = self._shifted[scheme, by] = self.terms.shift(scheme, by)
        return found

    def absolute(self, nonterminal: int) -> bool:
        """Whether a nonterminal has a closed text of every type."""
        return any(scheme.index >= 0 for scheme in self.schemes[nonterminal])

    # Induction over types

    def written(self, head: str, arity: int) -> Iterator[Term]:
        """A constructor with rigid parts, which stand for any type; written out where they are a few leaves."""
        parts = []
        for i in range(arity):
            leaves = [leaf for leaf, inner in self.sorts.parts(head, arity, i) if not inner and leaf[0] != "\0"]
            finite = len(leaves) == len(self.sorts.parts(head, arity, i)) <= _LEAVES
            parts.append([self.terms.con(leaf) for leaf in leaves if finite] or [self.terms.con(f"{RIGID}{i}")])
        for args in product(*parts):
            yield self.terms.con(head, args)

    def _induction(self) -> None:
        """Nonterminals that cover every case, in rounds: each is an induction on types, given what earlier ones proved.

        In a round it is the greatest set whose nonterminals cover every case, if the set covers smaller types.
        """
        while True:
            known = len(self.proved)
            assumed = self.covered = set(range(len(self.machine.names)))
            while True:
                self._close_cases()
                failing = {n for n in assumed - self.proved if not all((n, case) in self.met for case in self.cases[n])}
                if not failing:
                    break
                assumed -= failing
            self.proved = set(assumed)
            if len(assumed) == known:
                return

    def _close_cases(self) -> None:
        self.met = self._closed | {(n, case) for n in self.proved for case in self.cases[n]}
        # A production is tried again when more is known of one of its children.
        waiting = [production for production in self.productions if production.nonterminal not in self.proved]
        while waiting:
            grown: set[int] = set()
            for production in waiting:
                nonterminal = production.nonterminal
                for case in self.cases[nonterminal]:
                    if (nonterminal, case) not in self.met and self._meets(production, case):
                        self.met.add((nonterminal, case))
                        self.by[nonterminal, case] = production
                        grown.add(nonterminal)
            waiting = [
                production
                for production in self.productions
                if production.nonterminal not in self.proved
                and any(position.nonterminal in grown for position in production.positions)
            ]

    def _meets(self, production: Production, case: Term) -> bool:
        """Whether a production yields a type, its children having texts of the types that they then need."""
        state = Substitution(self.terms)
        result = production.template[RESULT]
        if result.index < 0 and result.head != case.head:
            return False
        if not self._may_begin(production) or not state.unify(result, case):
            return False
        states = [state]
        for at, position in enumerate(production.positions):
            following: list[Substitution] = []
            for current in states:
                slot = None if position.slot == NO_SLOT else current.resolve(production.template[position.slot])
                child = position.nonterminal
                if child >= 0 and slot is not None and slot.ground and self._granted(child, slot, case):
                    following.append(current)
                else:
                    following += self._read(production, position, current, (at + 1) * APART)
            states = following[:_SCHEMES]
        return bool(states)

    def _granted(self, nonterminal: int, demand: Term, case: Term) -> bool:
        """Whether a nonterminal has a text of a type, when types smaller than `case` are covered."""
        if nonterminal in self.proved or (nonterminal in self.covered and self._size(demand, case, strictly=True)):
            return True
        return self._size(demand, case, strictly=False) and self._generally(nonterminal, demand)

    def _generally(self, nonterminal: int, demand: Term) -> bool:
        """Whether every case that a type is an instance of is met."""
        if demand.head.startswith(RIGID):
            cases = self.cases[nonterminal]
        else:
            alike = self._alike[nonterminal].get((demand.head, len(demand.args)), [])
            cases = [case for case in alike if self._overlap(case, demand)]
        return bool(cases) and all((nonterminal, case) in self.met for case in cases)

    def _overlap(self, case: Term, demand: Term) -> bool:
        """Whether a type may be one of a case; the demand's rigid parts are unknown, and so are the case's."""
        if demand.index >= 0 or demand.head.startswith(RIGID) or case.head.startswith(RIGID):
            return True
        return (case.head, len(case.args)) == (demand.head, len(demand.args)) and all(
            map(self._overlap, case.args, demand.args)
        )

    def _size(self, demand: Term, case: Term, *, strictly: bool) -> bool:
        """Whether all instances of a type are smaller than those of a case (or as large)."""
        if demand is case:
            return not strictly
        (mine, nodes), (its, others) = self._measure(demand), self._measure(case)
        return not mine - its and (nodes + strictly) <= others + (its - mine).total()

    def _measure(self, term: Term) -> tuple[Counter[str], int]:
        """The rigid parts of a type, and how many other nodes it has."""
        found = self._measures.get(term)
        if found is None:
            rigid: Counter[str] = Counter()
            nodes = 0
            stack = [term]
            while stack:
                current = stack.pop()
                stack += current.args
                if current.head.startswith(RIGID):
                    rigid[current.head] += 1
                else:
                    nodes += 1
            found = self._measures[term] = (rigid, nodes)
        return found

    # Demands

    def _gaps(self) -> Iterator[Gap]:
        """The positions after something read (and the root) whose demands are not met for sure."""
        root = self.machine.start
        if not self.schemes[root] and not any((root, case) in self.met for case in self.cases[root]):
            production = self.machine.productions[root][0]
            yield Gap(
                production=production, dot=0, place=f"{self.machine.names[root]}: no closed text is known", types=()
            )
        for production in self.productions:
            for at, position in enumerate(production.positions):
                if position.zero_prefix:
                    continue  # nothing of this production was read, so others may be taken
                name = f"{production.name}, at {position.binding or position.symbol}"
                asked = [
                    demands[at]
                    for pattern in self.demands.of(production.nonterminal)
                    if (demands := list(self.demands.walk(production, pattern)))
                ]
                if position.nonterminal < 0:
                    if not all(self._sure(production, at, demand) for demand in asked):
                        place = f"{name}: whether a name fits is up to Γ"
                        yield Gap(production=production, dot=at, place=place, types=())
                    continue
                types = dict.fromkeys(shown for demand in asked for shown in self._unmet(position.nonterminal, demand))
                if types:
                    yield Gap(production=production, dot=at, place=name, types=tuple(types))

    def _sure(self, production: Production, at: int, demand: Term | None) -> bool:
        """Whether a lexeme can be read for sure once all before it is read."""
        position = production.positions[at]
        automaton = self.machine.automaton
        if position.member or position.lookups:
            return False
        if position.fresh and not automaton.infinite[automaton.start] & position.mask:
            return False
        if demand is None or demand.index >= 0:
            return True
        if not demand.head.startswith(RIGID):
            return not demand.args and self._spells(position.mask, demand.head)
        # A text that is settled already: it is sure where it was read before as one that this position takes too.
        slot = production.template[position.slot]
        same = [p for p in production.positions[:at] if p.slot != NO_SLOT and production.template[p.slot] is slot]
        return bool(same) and all(p.nonterminal < 0 and not p.mask & ~position.mask for p in same)

    def _unmet(self, child: int, demand: Term | None) -> tuple[str, ...]:
        """What of a demand on a nonterminal is not met for sure."""
        some = bool(self.schemes[child]) or (child in self.covered and bool(self.cases[child]))
        if demand is None or demand.index >= 0 or self.absolute(child):
            return () if some else ("(any)",)
        if child in self.covered and self.cases[child]:
            return ()
        if demand.head.startswith(RIGID):
            missing = [case for case in self.cases[child] if (child, case) not in self.met]
            leaves = [case for case in missing if not case.args]
            return tuple(self._shown(case) for case in leaves or missing) or ("(any)",)
        if any(Substitution(self.terms).unify(self.terms.shift(s, APART), demand) for s in self.schemes[child]):
            return ()
        return () if self._generally(child, demand) else (self._shown(demand),)

    def _shown(self, term: Term) -> str:
        names: dict[str, Term] = {}
        stack = [term]
        while stack:
            current = stack.pop()
            stack += current.args
            if current.head.startswith(RIGID):
                names.setdefault(current.head, self.terms.var(len(names) + APART))
        shown = self.syntax.render(self._plain(term, names))
        return shown.replace(OTHER, "any other ")

    def _plain(self, term: Term, names: dict[str, Term]) -> Term:
        if not term.args:
            return names.get(term.head, term)
        return self.terms.con(term.head, tuple([self._plain(arg, names) for arg in term.args]))

    def evidence(self) -> Iterator[str]:
        """Why the demands are met, each reason once."""
        reasons: dict[str, list[str]] = {}
        for nonterminal, name in enumerate(self.machine.names):
            if nonterminal not in self.demanded:
                continue
            if self.absolute(nonterminal):
                scheme = next(scheme for scheme in self.schemes[nonterminal] if scheme.index >= 0)
                shown = f"every type ({self._source(nonterminal, scheme)})"
            elif nonterminal in self.covered:
                shown = ", ".join(
                    f"{self._shown(case)} ({self._source(nonterminal, case)})" for case in self.cases[nonterminal]
                )
            else:
                continue
            reasons.setdefault(shown, []).append(name)
        for shown, names in sorted(reasons.items(), key=lambda reason: -len(reason[1])):
            yield f"{', '.join(names)}: {shown}"

    def _source(self, nonterminal: int, what: Term) -> str:
        """The production that yields a type, below those that pass it on."""
        while True:
            if (nonterminal, what) not in self.by:
                what = next((s for s in self.schemes[nonterminal] if self._instance(what, s)), what)
            production = self.by[nonterminal, what]
            passed = [p.nonterminal for p in production.positions if p.slot == RESULT and p.nonterminal >= 0]
            if production.label is not None or len(production.positions) != 1 or not passed:
                return production.name
            nonterminal = passed[0]
