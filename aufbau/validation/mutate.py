"""Changes a program by one small, named fault, found in its tree and in the rules of the grammar, whatever that is."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import combinations
from typing import Final, final

from aufbau.oracle import Oracle
from aufbau.tree import Node
from aufbau.validation.roles import Occurrence, Roles, type_symbols

Edit = tuple[int, int, bytes]  # what stands between two offsets, and what replaces it


class Mutation(Enum):
    """What is changed. None of them need make a program wrong: that is for the compiler to say."""

    RENAMED = "renamed variable"  # a use names another variable of the program
    UNBOUND = "unbound variable"  # a use names nothing
    LITERAL = "changed literal"  # a literal becomes another, often of another type
    SWAPPED = "swapped operands"  # two parts of one node change places
    DROPPED = "dropped argument"  # the last argument, operand or element is left out
    ADDED = "added argument"  # the last argument, operand or element is written twice
    RESULT = "wrong result"  # what is returned becomes an expression of another type
    SHADOWED = "shadowing"  # a binder takes the name of another
    EARLY = "use before definition"  # a use names what is bound only later


@dataclass(frozen=True, kw_only=True, slots=True)
class Mutant:
    """A changed program."""

    mutation: Mutation
    text: bytes
    at: int  # byte offset of the first change


@dataclass(frozen=True, kw_only=True, slots=True)
class _Subject:
    """A program laid out for changing."""

    text: bytes
    nodes: list[Node]
    uses: list[Occurrence]
    binders: list[Occurrence]
    symbols: dict[tuple[int, int], set[str]]  # nonterminals that span exactly this


@final
class Mutator:
    """Makes mutants of programs that satisfy a grammar."""

    def __init__(self, oracle: Oracle) -> None:
        model = oracle.grammar.model
        self._oracle: Final = oracle
        self._roles: Final = Roles(model)
        self._types: Final = type_symbols(model)
        self._literals: Final = _literals(oracle)
        self._finders: Final[dict[Mutation, Callable[[_Subject], Iterator[list[Edit]]]]] = {
            Mutation.RENAMED: self._renamed,
            Mutation.UNBOUND: self._unbound,
            Mutation.LITERAL: self._changed,
            Mutation.SWAPPED: self._swapped,
            Mutation.DROPPED: self._dropped,
            Mutation.ADDED: self._added,
            Mutation.RESULT: self._result,
            Mutation.SHADOWED: self._shadowed,
            Mutation.EARLY: self._early,
        }

    def mutants(self, text: bytes, *, count: int, seed: str) -> list[Mutant]:
        """At most `count` different mutants, of different kinds as far as there are; none of a text not satisfied."""
        tree = self._oracle.start().feed(text).tree()
        if tree is None:
            return []
        subject = self._subject(text, tree)
        drawn = random.Random(seed)
        found: dict[bytes, Mutant] = {}
        pools = {mutation: list(finder(subject)) for mutation, finder in self._finders.items()}
        while len(found) < count and any(pools.values()):
            kinds = [mutation for mutation, pool in pools.items() if pool]
            drawn.shuffle(kinds)
            for mutation in kinds[: count - len(found)]:
                edits = pools[mutation].pop(drawn.randrange(len(pools[mutation])))
                changed = edited(text, edits)
                if changed != text and changed not in found:
                    found[changed] = Mutant(mutation=mutation, text=changed, at=min(edit[0] for edit in edits))
        return list(found.values())

    def _subject(self, text: bytes, tree: Node) -> _Subject:
        nodes = tree.postorder()
        symbols: dict[tuple[int, int], set[str]] = {}
        for node in nodes:
            if not node.is_lexeme:
                symbols.setdefault((node.start, node.end), set()).add(node.symbol)
        uses, binders = self._roles.used(nodes), self._roles.bound(nodes)
        return _Subject(text=text, nodes=nodes, uses=uses, binders=binders, symbols=symbols)

    # Names

    def _renamed(self, subject: _Subject) -> Iterator[list[Edit]]:
        names = sorted({binder.name for binder in subject.binders})
        for use in subject.uses:
            yield from ([(use.start, use.end, name.encode())] for name in names if name != use.name)

    def _unbound(self, subject: _Subject) -> Iterator[list[Edit]]:
        known = {o.name for o in (*subject.uses, *subject.binders)}
        for use in subject.uses:
            name = use.name + use.name[-1]
            if name not in known:
                yield [(use.start, use.end, name.encode())]

    def _shadowed(self, subject: _Subject) -> Iterator[list[Edit]]:
        for one, other in combinations(subject.binders, 2):
            if one.name != other.name:
                yield [(other.start, other.end, one.name.encode())]

    def _early(self, subject: _Subject) -> Iterator[list[Edit]]:
        first: dict[str, int] = {}
        for binder in subject.binders:
            first.setdefault(binder.name, binder.start)
        for use in subject.uses:
            later = (name for name, start in first.items() if start > use.start and name != use.name)
            yield from ([(use.start, use.end, name.encode())] for name in later)

    # Expressions

    def _changed(self, subject: _Subject) -> Iterator[list[Edit]]:
        names = {(o.start, o.end) for o in (*subject.uses, *subject.binders)}
        lexemes = {(node.start, node.end) for node in subject.nodes if node.is_lexeme}
        leaves = {
            (node.start, node.end): node.text.encode()
            for node in self._expressions(subject)
            if (node.start, node.end) in lexemes - names
        }
        pool = sorted({*leaves.values(), *self._literals})
        for (start, end), own in leaves.items():
            yield from ([(start, end, other)] for other in pool if other != own)

    def _swapped(self, subject: _Subject) -> Iterator[list[Edit]]:
        for node in subject.nodes:
            parts = [child for child in node.children if self._is_expression(child)]
            for one, other in combinations(parts, 2):
                if one.text != other.text:
                    yield [
                        (one.start, one.end, other.text.encode()),
                        (other.start, other.end, one.text.encode()),
                    ]

    def _dropped(self, subject: _Subject) -> Iterator[list[Edit]]:
        for node, kept in self._recursive(subject):
            yield [(node.start, node.end, kept.text.encode())]

    def _added(self, subject: _Subject) -> Iterator[list[Edit]]:
        for node, kept in self._recursive(subject):
            if kept.start == node.start:
                yield [(node.end, node.end, subject.text[kept.end : node.end])]

    def _result(self, subject: _Subject) -> Iterator[list[Edit]]:
        expressions = {(node.text, node.type): node for node in self._expressions(subject)}
        for old in self._roles.results(subject.nodes):
            if self._is_expression(old):
                allowed = subject.symbols[old.start, old.end]
                for new in expressions.values():
                    if new.type != old.type and allowed & subject.symbols[new.start, new.end]:
                        yield [(old.start, old.end, new.text.encode())]

    def _recursive(self, subject: _Subject) -> Iterator[tuple[Node, Node]]:
        """Nodes that hold, beside something else of substance, a part that can stand in their place."""
        for node in subject.nodes:
            if node.symbol in self._types or sum(map(_has_substance, node.children)) < 2:
                continue
            allowed = subject.symbols.get((node.start, node.end), set())
            for child in node.children:
                if child.end > child.start and allowed & subject.symbols.get((child.start, child.end), set()):
                    yield node, child

    def _expressions(self, subject: _Subject) -> Iterator[Node]:
        return (node for node in subject.nodes if self._is_expression(node))

    def _is_expression(self, node: Node) -> bool:
        return not node.is_lexeme and node.type is not None and node.symbol not in self._types


def _has_substance(node: Node) -> bool:
    """Whether a node says something of its own, as words and signs of the grammar do not."""
    return node.end > node.start and not (node.is_lexeme and node.symbol.startswith(("'", '"')))


def _literals(oracle: Oracle) -> list[bytes]:
    """Some short texts of each terminal that is neither a literal, nor a name, nor left out."""
    machine = oracle.grammar.machine(oracle.grammar.model.start)
    automaton = machine.automaton
    found: list[bytes] = []
    for terminal, literal in enumerate(machine.terminal_is_literal):
        if not literal and not (machine.name_mask | machine.ignore_mask) >> terminal & 1:
            found += automaton.extensions(automaton.start, terminal, 2)
    return found


def edited(text: bytes, edits: list[Edit]) -> bytes:
    """The text with some parts replaced, spaced so that no lexeme grows together with a neighbour."""
    for start, end, new in sorted(edits, reverse=True):
        left, right = text[:start], text[end:]
        if new and left and _joins(left[-1], new[0]):
            new = b" " + new
        if new and right and _joins(new[-1], right[0]):
            new = new + b" "
        text = left + new + right
    return text


def _joins(left: int, right: int) -> bool:
    apart = b" \t\r\n()[]{},;"
    return left not in apart and right not in apart
