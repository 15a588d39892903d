"""Which constructors can stand where: an upper bound on the types of each nonterminal, by merging what may be unified.

Rules unify the types of children, results, names in Γ and parts of constructors. What some rule unifies is put into one
class, and a class holds the heads of all terms that get into it (as Steensgaard's points-to analysis does, 1996). So
a list of parameters is no type of an expression, although both are terms. A caller's types are taken to be of the first
starred sort (others are internal): they get wherever a look-up takes any type of Γ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, final

from aufbau.earley.machine import NO_SLOT, RESULT, Binding, Lookup, Machine, Position, Production
from aufbau.grammar.model import GrammarModel, Symbol, SymbolKind
from aufbau.surface import bits
from aufbau.typesystem.syntax import TypeProduction, type_fragment, type_production, type_roots
from aufbau.typesystem.terms import SCHEME_HEAD, TOP_HEAD, Term, Terms

OTHER: Final = "\0other"  # before a pattern: a leaf for all its texts that no rule names

Head = tuple[str, int]  # a constructor and how many parts it has
_Node = tuple[object, ...]


@final
class Sorts:
    """The classes of one machine."""

    def __init__(self, model: GrammarModel, machine: Machine, terms: Terms) -> None:
        self._machine: Final = machine
        self._terms: Final = terms
        self._parents: Final[dict[_Node, _Node]] = {}
        self._heads: Final[dict[_Node, dict[Head, None]]] = {}
        productions = [production for group in machine.productions for production in group]
        self._leaves: Final = tuple(_leaves(term for production in productions for term in production.template))
        self._written(model, productions)
        for number, (name, bound) in enumerate(machine.initial.names()):
            whole = terms.open(bound) if bound.head == SCHEME_HEAD else bound
            self._flow(whole, ("Γ", _space(name)), ("given", number))
        for production in productions:
            self._rule(production)

    def of(self, nonterminal: int) -> tuple[Head, ...]:
        """The heads that a type of a nonterminal can have."""
        return tuple(self._heads.get(self._find(("type", nonterminal)), ()))

    def parts(self, head: str, arity: int, at: int) -> tuple[Head, ...]:
        """The heads that a part of a constructor can have."""
        return tuple(self._heads.get(self._find(("part", (head, arity), at)), ()))

    # Merging

    def _find(self, node: _Node) -> _Node:
        root = node
        while root in self._parents:
            root = self._parents[root]
        while node != root:
            self._parents[node], node = root, self._parents[node]
        return root

    def _merge(self, left: _Node, right: _Node) -> None:
        left, right = self._find(left), self._find(right)
        if left != right:
            self._parents[right] = left
            self._heads.setdefault(left, {}).update(self._heads.pop(right, {}))

    def _add(self, node: _Node, heads: Iterable[Head]) -> None:
        self._heads.setdefault(self._find(node), {}).update(dict.fromkeys(heads))

    def _flow(self, term: Term, node: _Node, owner: _Node) -> None:
        """A term, whose variables are those of `owner`, gets to a node."""
        stack = [(term, node)]
        while stack:
            current, place = stack.pop()
            if current.index >= 0:
                self._merge((*owner, current.index), place)
            elif current.head != TOP_HEAD:
                head = (current.head, len(current.args))
                self._add(place, (head,))
                stack += [(arg, ("part", head, i)) for i, arg in enumerate(current.args)]

    # What a grammar says

    def _rule(self, production: Production) -> None:
        owner = ("rule", production.index)
        template = production.template
        self._flow(template[RESULT], ("type", production.nonterminal), owner)
        for position in production.positions:
            if position.slot == NO_SLOT:
                continue
            if position.nonterminal >= 0:
                self._flow(template[position.slot], ("type", position.nonterminal), owner)
            elif template[position.slot].index >= 0:
                self._add((*owner, template[position.slot].index), self._texts(position))
        for lookup in self._lookups(production):
            self._flow(template[lookup.slot], _entry(lookup.ambient, lookup.name, lookup.prefix), owner)
        for binding in self._bindings(production):
            self._flow(template[binding.type_slot], _entry(binding.ambient, binding.key, binding.prefix), owner)

    def _texts(self, position: Position) -> Iterator[Head]:
        """The leaves that a lexeme can be."""
        machine = self._machine
        for terminal in bits(position.mask):
            text = machine.terminals[terminal]
            yield (text if machine.terminal_is_literal[terminal] else OTHER + text), 0
        for leaf in self._leaves:
            if machine.automaton.classify(leaf.encode()) & position.mask:
                yield leaf, 0

    @staticmethod
    def _lookups(production: Production) -> Iterator[Lookup]:
        yield from production.entry_lookups
        for position in production.positions:
            yield from position.lookups

    @staticmethod
    def _bindings(production: Production) -> Iterator[Binding]:
        yield from production.effects
        for position in production.positions:
            yield from position.extensions

    # What a caller can write

    def _written(self, model: GrammarModel, productions: list[Production]) -> None:
        """Types as the grammar's own syntax reads them: parts of constructors, and whatever a caller puts into Γ."""
        fragment, labels = type_fragment(model), frozenset(rule.name for rule in model.rules)
        shapes: dict[str, list[TypeProduction]] = {}
        for definition in model.definitions:
            if definition.name in fragment:
                shapes.setdefault(definition.name, []).extend(
                    type_production(definition, alternative, labels) for alternative in definition.alternatives
                )
        for shape in [shape for group in shapes.values() for shape in group if shape.head is not None]:
            head = (shape.head or "", len(shape.children))
            for i, child in enumerate(shape.children):
                self._add(("part", head, i), self._spelled(shapes, shape.alternative.symbols[child]))
        whole: list[Head] = []
        for root in type_roots(model)[:1]:  # others are internal
            whole += self._spelled(shapes, Symbol(kind=SymbolKind.NONTERMINAL, value=root))
        for production in productions:
            for lookup in self._lookups(production):
                if production.template[lookup.slot].index >= 0:  # a look-up that takes any type at all
                    self._add(_entry(lookup.ambient, lookup.name, lookup.prefix), whole)

    def _spelled(self, shapes: dict[str, list[TypeProduction]], symbol: Symbol) -> Iterator[Head]:
        """The heads of the types that a symbol of the type fragment derives."""
        stack, seen = [symbol], set()
        while stack:
            current = stack.pop()
            if current in seen:
                continue
            seen.add(current)
            if current.kind is SymbolKind.REGEX:
                yield OTHER + current.value, 0
                yield from ((leaf, 0) for leaf in self._leaves)  # some of which it may match
            elif current.kind is SymbolKind.NONTERMINAL:
                for shape in shapes.get(current.value, ()):
                    if shape.head is not None:
                        yield shape.head, len(shape.children)
                    else:
                        stack.append(shape.alternative.symbols[shape.children[0]])


def _entry(ambient: bool, key: str, prefix: str) -> _Node:
    return ("key", key) if ambient else ("Γ", prefix)


def _space(name: str) -> str:
    """The prefix of the name space that an entry of Γ lies in."""
    return name[: name.rindex("\0") + 1] if name.startswith("\0") else ""


def _leaves(terms: Iterable[Term]) -> dict[str, None]:
    """The texts that rules name."""
    found: dict[str, None] = {}
    stack = list(terms)
    while stack:
        term = stack.pop()
        stack += term.args
        if term.index < 0 and not term.args and term.head != TOP_HEAD:
            found.setdefault(term.head)
    return found
