"""Type coverage, condition (T) of the paper's Definition 2.5: is every demand met by a closed text, whatever Γ is?

Two kinds of proof are sought. *Closed schemes* are types for all of whose instances a nonterminal has a text (`assert
false` has one of every type), found bottom-up. Where they don't reach, *induction over types*: for every head that a
type can have (each base type, each constructor), a production that needs only this very type and smaller ones, of
nonterminals that are covered themselves. A demand that is not proved to be met is a gap; nothing is claimed of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

from aufbau.earley.machine import NO_SLOT, RESULT, Machine, Position, Production
from aufbau.grammar.grammar import Grammar
from aufbau.grammar.model import GrammarModel, SymbolKind
from aufbau.typesystem.syntax import type_fragment, type_production
from aufbau.typesystem.terms import APART, SCHEME_HEAD, TOP_HEAD, Term, variables
from aufbau.typesystem.unify import Substitution

_SCHEMES: Final = 24  # closed schemes kept for one nonterminal
_DEPTH: Final = 3  # of their types
_RIGID: Final = "\0rigid"  # stands for any type at all in a proof
_OTHER: Final = "\0other"  # before a pattern: stands for its texts that no rule names


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

    def __init__(self, grammar: Grammar, root: str) -> None:
        self.root = root
        self.machine: Machine = grammar.machine(root)
        self.terms = self.machine.terms.fork()
        self.syntax = self.machine.syntax
        self.caller: Final = frozenset(grammar.model.ambient)
        self.productions = [production for group in self.machine.productions for production in group]
        self.schemes: list[list[Term]] = [[] for _ in self.machine.names]
        self.by: dict[tuple[int, Term], Production] = {}  # which production yields a scheme, or a case
        self._close_schemes()
        self.cases = self._universe(grammar.model)
        self.demanded = self._demanded()
        self.covered: set[int] = set()
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
        return self.caller.issuperset(production.conditions) and not production.entry_lookups

    def _read(
        self, production: Production, position: Position, state: Substitution, apart: int
    ) -> Iterator[Substitution]:
        slot = None if position.slot == NO_SLOT else production.template[position.slot]
        if position.nonterminal >= 0:
            for scheme in self.schemes[position.nonterminal]:
                after = self._copy(state)
                if slot is None or after.unify(slot, self.terms.shift(scheme, apart)):
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
                found.append(text if literal else _OTHER + text)
        return found

    def _spells(self, mask: int, head: str) -> bool:
        """Whether a lexeme of `mask` can be this text."""
        if head.startswith(_OTHER):
            same = (t for t, text in enumerate(self.machine.terminals) if text == head[len(_OTHER) :])
            return any(mask >> t & 1 and not self.machine.terminal_is_literal[t] for t in same)
        return bool(self.machine.automaton.classify(head.encode()) & mask)

    def _copy(self, state: Substitution) -> Substitution:
        after = Substitution(self.terms)
        after.bindings.update(state.bindings)
        return after

    def _instance(self, term: Term, scheme: Term) -> bool:
        """Whether every instance of `term` is one of `scheme`."""
        rigid = self.terms.substitute(term, lambda index: self.terms.con(f"{_RIGID}{index}"))
        return Substitution(self.terms).unify(rigid, self.terms.shift(scheme, APART))

    def absolute(self, nonterminal: int) -> bool:
        """Whether a nonterminal has a closed text of every type."""
        return any(scheme.index >= 0 for scheme in self.schemes[nonterminal])

    # Induction over types

    def _universe(self, model: GrammarModel) -> list[Term]:
        """A case for each head that a type can have: leaves, other texts, constructors of any arguments."""
        heads: dict[tuple[str, int], None] = {}
        stack = [term for production in self.productions for term in production.template]
        stack += [bound for _, bound in self.machine.initial.names()]
        while stack:
            term = stack.pop()
            stack += term.args
            if term.index < 0 and not term.head.startswith(SCHEME_HEAD) and term.head != TOP_HEAD:
                heads.setdefault((term.head, len(term.args)))
        fragment, labels = type_fragment(model), frozenset(rule.name for rule in model.rules)
        for definition in model.definitions:
            for alternative in definition.alternatives if definition.name in fragment else ():
                shape = type_production(definition, alternative, labels)
                if shape.head is not None:
                    heads.setdefault((shape.head, len(shape.children)))
                for symbol in alternative.symbols:
                    if symbol.kind is SymbolKind.REGEX:
                        heads.setdefault((_OTHER + symbol.value, 0))
        return [
            self.terms.con(head, tuple([self.terms.con(f"{_RIGID}{i}") for i in range(arity)])) for head, arity in heads
        ]

    def _induction(self) -> None:
        """The greatest set of nonterminals that cover every case, if smaller types are covered by the set."""
        self.covered = set(range(len(self.machine.names)))
        while True:
            self._close_cases()
            failing = {
                n
                for n in self.covered
                if not self.absolute(n) and not all((n, case) in self.met for case in self.cases)
            }
            if not failing:
                return
            self.covered -= failing

    def _close_cases(self) -> None:
        self.met = {
            (n, case)
            for n in range(len(self.machine.names))
            for case in self.cases
            if any(self._instance(case, scheme) for scheme in self.schemes[n])
        }
        changed = True
        while changed:
            changed = False
            for production in self.productions:
                for case in self.cases:
                    if (production.nonterminal, case) not in self.met and self._meets(production, case):
                        self.met.add((production.nonterminal, case))
                        self.by[production.nonterminal, case] = production
                        changed = True

    def _meets(self, production: Production, case: Term) -> bool:
        """Whether a production yields a type, from this very type and smaller ones of covered nonterminals."""
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
                if child >= 0 and slot is not None and slot.ground and self._smaller(child, slot, case):
                    following.append(current)
                else:
                    following += self._read(production, position, current, (at + 1) * APART)
            states = following[:_SCHEMES]
        return bool(states)

    def _smaller(self, nonterminal: int, demand: Term, case: Term) -> bool:
        return (
            (nonterminal, demand) in self.met
            if demand is case
            else (demand in case.args and nonterminal in self.covered)
        )

    # Demands

    def _demanded(self) -> set[int]:
        """Nonterminals of which a type may be demanded that is settled before they begin."""
        found: set[int] = set()
        changed = True
        while changed:
            changed = False
            for production in self.productions:
                for at, position in enumerate(production.positions):
                    child = position.nonterminal
                    if child < 0 or child in found or position.slot == NO_SLOT or position.bottom_up:
                        continue
                    slot = production.template[position.slot]
                    if slot.index < 0 or slot.index in self._settled(production, at, found):
                        found.add(child)
                        changed = True
        return found

    def _settled(self, production: Production, at: int, demanded: set[int]) -> set[int]:
        """Variables of a rule that have a type before the child at a position begins."""
        template = production.template
        terms = [template[p.slot] for p in production.positions[:at] if p.slot != NO_SLOT]
        terms += [template[lookup.slot] for p in production.positions[:at] for lookup in p.lookups]
        terms += [template[lookup.slot] for lookup in production.entry_lookups]
        if production.nonterminal in demanded:
            terms.append(template[RESULT])
        return set(variables(terms))

    def _gaps(self) -> Iterator[Gap]:
        """The positions after something read (and the root) whose demands are not met for sure."""
        root = self.machine.start
        if not self.schemes[root] and not any((root, case) in self.met for case in self.cases):
            production = self.machine.productions[root][0]
            yield Gap(production=production, dot=0, place=f"{self.root}: no closed text is known", types=())
        for production in self.productions:
            for at, position in enumerate(production.positions):
                if position.zero_prefix:
                    continue  # nothing of this production was read, so others may be taken
                name = f"{production.name}, at {position.binding or position.symbol}"
                if position.nonterminal < 0:
                    if not self._sure(production, at):
                        yield Gap(
                            production=production, dot=at, place=f"{name}: whether a name fits is up to Γ", types=()
                        )
                    continue
                types = self._unmet(production, at, position)
                if types is not None:
                    yield Gap(production=production, dot=at, place=name, types=types)

    def _sure(self, production: Production, at: int) -> bool:
        """Whether a lexeme can be read for sure once all before it is read."""
        position = production.positions[at]
        automaton = self.machine.automaton
        if position.member or position.lookups:
            # Right after its first lexeme, an item counts only when some name fits. Later it is too late.
            return at == 1 and production.positions[0].nonterminal < 0
        if position.fresh and not automaton.infinite[automaton.start] & position.mask:
            return False
        if position.slot == NO_SLOT:
            return True
        slot = production.template[position.slot]
        if slot.index < 0:
            return not slot.args and self._spells(position.mask, slot.head)
        same = [p for p in production.positions[:at] if p.slot != NO_SLOT and production.template[p.slot] is slot]
        if same:  # the same text again
            return all(p.nonterminal < 0 and not p.mask & ~position.mask for p in same)
        return slot.index not in self._settled(production, at, self.demanded)

    def _unmet(self, production: Production, at: int, position: Position) -> tuple[str, ...] | None:
        """What of a child's demand is not met for sure; None when all of it is."""
        child = position.nonterminal
        if position.slot == NO_SLOT or self.absolute(child):
            return None if self.schemes[child] else ("(any)",)
        slot = production.template[position.slot]
        settled = self._settled(production, at, self.demanded)
        if slot.index >= 0:
            if slot.index not in settled:
                return None if self.schemes[child] else ("(any)",)
            missing = [case for case in self.cases if (child, case) not in self.met]
            leaves = [case for case in missing if not case.args]
            return (
                None if child in self.covered else tuple(self._shown(case) for case in leaves or missing) or ("(any)",)
            )
        rigid = self.terms.substitute(
            slot, lambda index: self.terms.con(f"{_RIGID}{index}") if index in settled else None
        )
        if any(Substitution(self.terms).unify(self.terms.shift(s, APART), rigid) for s in self.schemes[child]):
            return None
        general = self.terms.con(rigid.head, tuple([self.terms.con(f"{_RIGID}{i}") for i in range(len(rigid.args))]))
        return None if (child, general) in self.met else (self._shown(slot),)

    def _shown(self, term: Term) -> str:
        names: dict[str, Term] = {}
        stack = [term]
        while stack:
            current = stack.pop()
            stack += current.args
            if current.head.startswith(_RIGID):
                names.setdefault(current.head, self.terms.var(len(names) + APART))
        shown = self.syntax.render(self._plain(term, names))
        return shown.replace(_OTHER, "any other ")

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
                shown = ", ".join(f"{self._shown(case)} ({self._source(nonterminal, case)})" for case in self.cases)
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
