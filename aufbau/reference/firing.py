"""Rules as they fire: the unification edges, look-ups and effects that a production has by its rule.

Holes are written as strings until a node is made: `·` is the node's own type, `·i` the evidence of its i-th child,
`?A` a hole of the rule, `Γ(x)` what a look-up finds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from aufbau.grammar.model import (
    Alternative,
    AmbientMembership,
    Definition,
    Equality,
    Extension,
    Judgement,
    Membership,
    Rule,
    Symbol,
    SymbolKind,
    TypeText,
    split_name,
)
from aufbau.reference.surface import Surface, Terminal
from aufbau.reference.terms import TOP, Bound, Term
from aufbau.reference.typetext import TypeReader

OWN: Term = "·"
Key: TypeAlias = tuple[str, str]  # name space and name; the ambient keys have the name space AMBIENT
AMBIENT = "'"


def evidence(child: int) -> str:
    """The hole of a child's type, or of a lexeme's text."""
    return f"·{child}"


@dataclass(frozen=True, slots=True)
class Entry:
    """An extension of Γ; the name is a key, or the text of a child."""

    space: str
    name: str | int
    type: Term
    generalises: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """What a rule asks of Γ for the lexeme of a child."""

    space: str
    found: Term | None = None  # a look-up; None: membership alone
    fresh: bool = False
    innermost: bool = False


@dataclass(slots=True)
class Child:
    """One symbol, with what the rule says of it."""

    symbol: Symbol
    lexemes: frozenset[Terminal] | None  # None: a nonterminal with structure
    asked: list[Asked] = field(default_factory=list)
    extensions: list[Entry] = field(default_factory=list)
    opens: bool = False
    initial: bool = False


@dataclass(slots=True)
class Firing:
    """A production with its rule."""

    name: str
    children: list[Child]
    equations: list[tuple[Term, Term]] = field(default_factory=list)
    keys: list[tuple[str, Term | None]] = field(default_factory=list)  # ambient keys asked, with their look-ups
    effects: list[Entry] = field(default_factory=list)
    keeps: bool = True  # whether it exports what its children export


class Firings:
    """The firings of all productions that a start symbol reaches."""

    def __init__(self, surface: Surface) -> None:
        self.surface = surface
        self.reader = TypeReader(surface)
        self._rules = {rule.name: rule for rule in surface.model.rules}
        self.of = {
            name: [self._firing(surface.definitions[name], a) for a in surface.definitions[name].alternatives]
            for name in surface.reached([surface.start])
        }

        self._shortest = dict.fromkeys(self.of, 1 << 30)
        changed = True
        while changed:
            changed = False
            for name, firings in self.of.items():
                least = min(self.shortest(firing.children) for firing in firings)
                if least < self._shortest[name]:
                    self._shortest[name], changed = least, True

    def shortest(self, children: Sequence[Child]) -> int:
        """The least number of lexemes that some children derive."""
        return sum(1 if c.lexemes is not None else self._shortest[c.symbol.value] for c in children)

    def given(self) -> list[tuple[Key, Bound]]:
        """The names in scope from the start."""
        spaces = {split_name(name)[0] for rule in self.surface.model.rules for name in _names(rule)}
        found: list[tuple[Key, Bound]] = []
        for given in self.surface.model.given:
            space, name = split_name(given.name)
            key = (space, name) if space in spaces else ("", given.name)
            found.append((key, self.reader.of_rule(given.type, {})))
        return found

    def _firing(self, definition: Definition, alternative: Alternative) -> Firing:
        children = [Child(symbol, self.surface.lexemes(symbol)) for symbol in alternative.symbols]
        firing = Firing(definition.name, children)
        rule = self._rules.get(definition.label or "")
        if rule is None:
            self._without_rule(firing, definition, alternative)
        else:
            _Reading(firing, rule, self).read()
        return firing

    def _without_rule(self, firing: Firing, definition: Definition, alternative: Alternative) -> None:
        """A constructor of types, a node that passes its only child through, or one without a value."""
        nonterminals = [i for i, s in enumerate(alternative.symbols) if s.kind is SymbolKind.NONTERMINAL]
        own = TOP
        if definition.name in self.surface.fragment:
            head, parts = self.surface.constructor(definition, alternative)
            arguments = tuple(evidence(i) for i in parts)
            own = arguments[0] if head is None else (head, arguments)
        elif len(nonterminals) == 1 and firing.children[nonterminals[0]].lexemes is None:
            own = evidence(nonterminals[0])
        firing.equations.append((OWN, own))


class _Reading:
    """Reads one rule into the firing of one production."""

    def __init__(self, firing: Firing, rule: Rule, firings: Firings) -> None:
        self.firing, self.rule, self.reader = firing, rule, firings.reader
        self.where = {c.symbol.binding: i for i, c in enumerate(firing.children) if c.symbol.binding is not None}
        fragment = firings.surface.fragment
        self.types = {
            name: evidence(i) for name, i in self.where.items() if firing.children[i].symbol.value in fragment
        }

    def read(self) -> None:
        firing, conclusion = self.firing, self.rule.conclusion
        for premise in self.rule.premises:
            if isinstance(premise, AmbientMembership):
                firing.keys.append((premise.key, None))
            elif isinstance(premise, Membership):
                space, name = split_name(premise.name)
                asked = Asked(space, fresh=premise.fresh, innermost=premise.innermost)
                firing.children[self.where[name]].asked.append(asked)
            elif isinstance(premise, Equality):
                firing.equations.append(self._equality(premise))
            else:
                self._judgement(premise)
        firing.effects = [self._entry(extension) for extension in conclusion.effects]
        firing.keeps = conclusion.keeps
        firing.equations.append((OWN, self._type(conclusion.type)))

    def _judgement(self, premise: Judgement) -> None:
        child = self.firing.children[self.where[premise.child]]
        child.opens = child.opens or premise.opens
        child.initial = child.initial or premise.initial
        child.extensions += [self._entry(extension) for extension in premise.extensions]
        if not premise.type.is_top:
            self.firing.equations.append((evidence(self.where[premise.child]), self._type(premise.type)))

    def _equality(self, premise: Equality) -> tuple[Term, Term]:
        sides = [self.where.get(side.text, -1) for side in (premise.left, premise.right)]
        if all(i >= 0 and self.firing.children[i].lexemes is not None for i in sides):
            return evidence(sides[0]), evidence(sides[1])  # two lexemes have the same text
        return self._type(premise.left), self._type(premise.right)

    def _entry(self, extension: Extension) -> Entry:
        found = self._type(extension.type)
        if extension.ambient:
            return Entry(AMBIENT, extension.name, found, extension.generalises)
        space, name = split_name(extension.name)
        return Entry(space, self.where[name], found, extension.generalises)

    def _type(self, text: TypeText) -> Term:
        found = self.reader.of_rule(text, self.types)
        for hole in _strings(found):
            if hole.startswith("Γ("):
                self._look_up(hole)
        return found

    def _look_up(self, hole: str) -> None:
        """Attach a look-up to the lexeme that it names, or to the entry of the node; once for each name."""
        name = hole[2:-1]
        if name[0] in "'\"":
            known = [found for _, found in self.firing.keys]
            if hole not in known:
                self.firing.keys.append((name[1:-1], hole))
            return
        space, binding = split_name(name)
        asked = self.firing.children[self.where[binding]].asked
        if all(one.found != hole for one in asked):
            asked.append(Asked(space, hole))


def _strings(term: Term) -> list[str]:
    if isinstance(term, tuple):
        return [hole for part in term[1] for hole in _strings(part)]
    return [term] if isinstance(term, str) else []


def _names(rule: Rule) -> list[str]:
    """The names, as written, under which a rule asks or extends Γ."""
    found = [premise.name for premise in rule.premises if isinstance(premise, Membership)]
    extensions = list(rule.conclusion.effects)
    texts = [rule.conclusion.type.text]
    for premise in rule.premises:
        if isinstance(premise, Judgement):
            extensions += premise.extensions
            texts.append(premise.type.text)
        elif isinstance(premise, Equality):
            texts += [premise.left.text, premise.right.text]
    texts += [extension.type.text for extension in extensions]
    found += [extension.name for extension in extensions if not extension.ambient]
    return found + [name for text in texts for name in re.findall(r"Γ\(\s*([^()'\"\s]+)\s*\)", text)]
