"""Enumerates the compatible parses of a row of lexemes and solves their evidence graphs (paper, section 2.2).

A parse is built from the root down and from left to right. A node emits all its unification edges when it is made:
what its child or its lexeme will contribute is a hole until then. A contradiction is stable, so a parse that has one
is left at once. *Exact* nodes cover a given stretch of lexemes; an *open* node covers the rest of them, and what of it
lies beyond the last lexeme is pending: its edges are there, its evidence is not.

Open nodes can be left recursive without end, so a chain of open nodes that begin at one lexeme is at most `depth` long.
Longer chains differ from those by more pending arguments than the types of short texts have. Exact nodes need no
bound: every level of theirs consumes text. Whether an open node is consistent depends on its nonterminal, its type and
Γ alone, since all that stands to its right is pending; so a question that was answered with no is not asked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count, islice
from typing import TypeAlias, final

from aufbau.grammar.model import SymbolKind
from aufbau.reference.firing import AMBIENT, OWN, Asked, Child, Entry, Firing, Firings, Key, evidence
from aufbau.reference.lexing import Begun, Known, Lexer, Slot
from aufbau.reference.rows import Rows
from aufbau.reference.terms import (
    Bound,
    Scheme,
    Solution,
    Term,
    canonical,
    free,
    generalise,
    instance,
    leaf,
    replace,
    unify,
    walk,
)

Effect: TypeAlias = tuple[tuple[Key, Bound], ...]


class OutOfSteps(Exception):
    """The search was given up; the reference says nothing about this text."""


@dataclass(frozen=True)
class Gamma:
    """Γ: what names and ambient keys stand for, and which names the innermost scope binds."""

    types: Mapping[Key, Bound] = field(default_factory=dict)
    innermost: frozenset[Key] = frozenset()

    def extended(self, effect: Effect) -> Gamma:
        """Γ with further entries."""
        if not effect:
            return self
        return Gamma({**self.types, **dict(effect)}, self.innermost | {key for key, _ in effect})

    def opened(self) -> Gamma:
        """Γ[]: a new innermost scope."""
        return Gamma(self.types)

    @cached_property
    def _unsolved(self) -> dict[Key, Bound]:
        return {key: bound for key, bound in self.types.items() if free(bound, {})}

    @cached_property
    def _closed(self) -> object:
        return self.innermost, frozenset(item for item in self.types.items() if item[0] not in self._unsolved)

    def free(self, solution: Solution) -> list[int]:
        """The holes that what is in scope leaves open."""
        return [hole for bound in self._unsolved.values() for hole in free(bound, solution)]

    def question(self, own: Term, solution: Solution) -> object:
        """Γ and a demanded type, the same object for all that differ by the numbers of their holes only."""
        keys = tuple(sorted(self._unsolved))
        return self._closed, keys, canonical([own, *(self._unsolved[key] for key in keys)], solution)


@dataclass(frozen=True, slots=True)
class _Node:
    """A node while it is built: its firing with numbered holes, where it begins, and Γ there."""

    firing: Firing
    numbers: dict[str, int]
    start: int
    gamma: Gamma

    def own(self, term: Term) -> Term:
        return replace(term, lambda hole: self.numbers[hole] if isinstance(hole, str) else hole)


@final
class Search:
    """The parses of one row of lexemes."""

    def __init__(self, firings: Firings, lexer: Lexer, slots: tuple[Slot, ...], *, depth: int, steps: int) -> None:
        self._firings, self._lexer, self._slots = firings, lexer, slots
        self._depth, self._steps = depth, steps
        self._numbers = count(1 << 20)
        self._rows = Rows(firings, lexer, slots)
        self._unfinished = bool(slots) and isinstance(slots[-1], Begun)
        self._refuted: dict[object, int] = {}  # questions answered with no, and the depth to which they were asked
        self.chosen: dict[int, str] = {}  # the texts of the lexemes in the parse that was found last

    def fresh(self) -> int:
        """A new hole."""
        return next(self._numbers)

    def complete(self, name: str, gamma: Gamma, own: Term) -> Iterator[tuple[Solution, Effect]]:
        """The consistent parses of all lexemes, as what they solve and what they export."""
        return self._nodes(name, 0, len(self._slots), gamma, own, {})

    def partial(self, name: str, gamma: Gamma, own: Term) -> bool:
        """Whether there is a consistent partial parse: all lexemes are read, and something is pending."""
        return not self._slots or self._open(name, 0, gamma, own, {}, self._depth)

    # Nodes with evidence

    def _fired(
        self, firing: Firing, start: int, gamma: Gamma, own: Term, solution: Solution
    ) -> tuple[_Node, Solution] | None:
        """A node of the demanded type with its edges solved; None for a contradiction."""
        self._steps -= 1
        if self._steps < 0:
            raise OutOfSteps
        node = _Node(firing, _Numbers(self), start, gamma)
        edges = [(node.own(left), node.own(right)) for left, right in firing.equations]
        solved = unify([*edges, (own, node.own(OWN))], solution)
        for key, looked_up in firing.keys:
            bound = gamma.types.get((AMBIENT, key))
            if bound is None or solved is None:
                return None
            if looked_up is not None:
                solved = unify([(node.own(looked_up), instance(bound, solved, self.fresh))], solved)
        return None if solved is None else (node, solved)

    def _nodes(
        self, name: str, start: int, end: int, gamma: Gamma, own: Term, solution: Solution
    ) -> Iterator[tuple[Solution, Effect]]:
        """The consistent ways in which a nonterminal covers a stretch."""
        for firing in self._firings.of[name]:
            if self._rows.derives(firing, 0, start, end):
                fired = self._fired(firing, start, gamma, own, solution)
                if fired is not None:
                    yield from self._children(fired[0], 0, start, end, (), fired[1])

    def _children(
        self, node: _Node, i: int, at: int, end: int, effect: Effect, solution: Solution
    ) -> Iterator[tuple[Solution, Effect]]:
        """The ways in which the children from the i-th on cover what is left of the node's stretch."""
        if i == len(node.firing.children):
            yield solution, self._exported(node, effect, solution)
            return
        last = end - self._firings.shortest(node.firing.children[i + 1 :])
        for middle in self._rows.ends(node.firing, i, at, last):
            if self._rows.derives(node.firing, i + 1, middle, end):
                for solved, exported in self._child(node, i, at, middle, effect, solution):
                    yield from self._children(node, i + 1, middle, end, effect + exported, solved)

    def _child(
        self, node: _Node, i: int, at: int, end: int, effect: Effect, solution: Solution
    ) -> Iterator[tuple[Solution, Effect]]:
        """The consistent ways in which the i-th child covers a stretch."""
        child = node.firing.children[i]
        if child.lexemes is not None:
            return ((solved, ()) for solved in self._lexeme(node, i, at, effect, solution))
        gamma = self._for_child(node, child, effect, solution)
        own = self._demand(node, i, ended=end < len(self._slots) or not self._unfinished)
        return self._nodes(child.symbol.value, at, end, gamma, own, solution)

    def _demand(self, node: _Node, i: int, *, ended: bool) -> Term:
        """The evidence that the node asks of its i-th child; a bottom-up child is asked when it has ended."""
        if not ended and node.firing.children[i].symbol.value in self._firings.surface.model.bottom_up:
            return self.fresh()
        return node.own(evidence(i))

    def _open(self, name: str, start: int, gamma: Gamma, own: Term, solution: Solution, depth: int) -> bool:
        """Whether a nonterminal can consistently read all lexemes from `start` on and leave something pending."""
        question = (name, start, gamma.question(own, solution))
        if depth == 0 or self._refuted.get(question, 0) >= depth:
            return False
        for firing in self._firings.of[name]:
            if self._rows.opens(firing, 0, start):
                fired = self._fired(firing, start, gamma, own, solution)
                if fired is not None and self._open_children(fired[0], 0, start, (), fired[1], depth):
                    return True
        self._refuted[question] = depth
        return False

    def _open_children(self, node: _Node, i: int, at: int, effect: Effect, solution: Solution, depth: int) -> bool:
        """Whether the children from the i-th on can consistently read the rest and leave something pending."""
        if i == len(node.firing.children) or at == len(self._slots):
            return i < len(node.firing.children)
        child = node.firing.children[i]
        if child.lexemes is None and self._rows.can_open(child.symbol.value, at):
            name, gamma = child.symbol.value, self._for_child(node, child, effect, solution)
            own = self._demand(node, i, ended=False)
            if self._open(name, at, gamma, own, solution, depth - 1 if at == node.start else self._depth):
                return True
        return any(
            self._open_children(node, i + 1, end, effect + exported, solved, depth)
            for end in self._rows.ends(node.firing, i, at, len(self._slots))
            if self._rows.opens(node.firing, i + 1, end)
            for solved, exported in self._child(node, i, at, end, effect, solution)
        )

    # Γ

    def _for_child(self, node: _Node, child: Child, effect: Effect, solution: Solution) -> Gamma:
        """Γ of a child: that of the node, what its left siblings exported, what its premise adds."""
        gamma = node.gamma if child.initial else node.gamma.extended(effect)
        if child.opens:
            gamma = gamma.opened()
        for entry in child.extensions:
            gamma = gamma.extended((self._entry(node, entry, gamma, solution),))
        return gamma

    def _exported(self, node: _Node, effect: Effect, solution: Solution) -> Effect:
        """What a complete node exports: by its conclusion, or by its children where it has no rule."""
        exported = effect if node.firing.keeps else ()
        for entry in node.firing.effects:
            gamma = node.gamma.extended(exported)
            exported = (*exported, self._entry(node, entry, gamma, solution))
        return exported

    def _entry(self, node: _Node, entry: Entry, gamma: Gamma, solution: Solution) -> tuple[Key, Bound]:
        name = entry.name
        if isinstance(name, int):
            text = walk(node.own(evidence(name)), solution)
            assert isinstance(text, tuple), "a name is read before it is put in scope"
            name = text[0]
        bound: Bound = node.own(entry.type)
        if entry.generalises and not isinstance(bound, Scheme):
            bound = generalise(bound, gamma.free(solution), solution)
        return (entry.space, name), bound

    # Lexemes

    def _lexeme(self, node: _Node, i: int, at: int, effect: Effect, solution: Solution) -> Iterator[Solution]:
        """The solutions under which a lexeme, as one of the texts that it can be, is the i-th child."""
        gamma = node.gamma.extended(effect)
        own, asked = node.own(evidence(i)), node.firing.children[i].asked
        for text in self._texts(node.firing.children[i], at, walk(own, solution), gamma):
            solved = unify([(own, leaf(text))], solution)
            for one in asked:
                solved = None if solved is None else self._ask(node, one, text, gamma, solved)
            if solved is not None:
                self.chosen[at] = text
                yield solved

    def _ask(self, node: _Node, asked: Asked, text: str, gamma: Gamma, solution: Solution) -> Solution | None:
        key = (asked.space, text)
        bound = gamma.types.get(key)
        if asked.fresh:
            clash = bound is not None and (not asked.innermost or key in gamma.innermost)
            return None if clash else solution
        if bound is None:
            return None
        if asked.found is None:
            return solution
        return unify([(node.own(asked.found), instance(bound, solution, self.fresh))], solution)

    def _texts(self, child: Child, at: int, required: Term, gamma: Gamma) -> Iterator[str]:
        """The texts that a lexeme can have at a child; of infinitely many, enough to find one that is fresh."""
        slot, lexemes = self._slots[at], child.lexemes or frozenset()
        if isinstance(slot, Known):
            yield slot.text
            return
        if not isinstance(required, int):
            names = [required[0]] if isinstance(required, tuple) and not required[1] else []
        elif any(not one.fresh for one in child.asked):
            names = [name for space, name in gamma.types if space != AMBIENT]
        else:
            for kind, value in sorted(lexemes, key=lambda terminal: (terminal[0].value, terminal[1])):
                longer = self._lexer.terminals.longer(slot.piece, (kind, value))
                yield from islice(longer, 1 if kind is SymbolKind.LITERAL else len(gamma.types) + 1)
            return
        for name in dict.fromkeys(names):
            longer_piece = name.encode().startswith(slot.piece) and len(name.encode()) > len(slot.piece)
            if longer_piece and self._lexer.terminals.classes(name) & lexemes:
                yield name


class _Numbers(dict[str, int]):
    """Numbers the holes of one firing as they are met."""

    def __init__(self, search: Search) -> None:
        super().__init__()
        self._search = search

    def __missing__(self, hole: str) -> int:
        self[hole] = found = self._search.fresh()
        return found
