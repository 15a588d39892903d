"""What the lexemes of a tree are for, read off the grammar's rules: names used, names bound, values, results."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, final

from aufbau.grammar.model import AmbientMembership, Equality, GrammarModel, Judgement, Membership, Rule
from aufbau.tree import Node

_LOOKUP = re.compile(r"(?:Γ|Gamma)\(\s*(\w+)\s*\)")
_AMBIENT_LOOKUP = re.compile(r"(?:Γ|Gamma)\(\s*['\"]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Occurrence:
    """A name in the text."""

    name: str
    start: int  # byte offsets
    end: int


@final
class Roles:
    """The roles that the rules of one grammar give to bindings."""

    def __init__(self, model: GrammarModel) -> None:
        self._uses: Final[dict[str, set[str]]] = {}
        self._binders: Final[dict[str, set[str]]] = {}
        self._results: Final[dict[str, str]] = {}  # rule -> the child that is checked against a declared result
        for rule in model.rules:
            self._read(rule)

    def _read(self, rule: Rule) -> None:
        uses = self._uses.setdefault(rule.name, set())
        binders = self._binders.setdefault(rule.name, set())
        judged: list[str] = []
        ambient = extends = False
        texts = [rule.conclusion.type.text]
        binders.update(e.name for e in rule.conclusion.effects if not e.ambient)
        for premise in rule.premises:
            if isinstance(premise, Membership):
                (binders if premise.fresh else uses).add(premise.name)
            elif isinstance(premise, Judgement):
                judged.append(premise.child)
                texts.append(premise.type.text)
                binders.update(e.name for e in premise.extensions if not e.ambient)
                extends = extends or bool(premise.extensions)
            elif isinstance(premise, Equality):
                texts += [premise.left.text, premise.right.text]
            elif isinstance(premise, AmbientMembership):
                ambient = True
        for text in texts:
            uses.update(_LOOKUP.findall(text))
            ambient = ambient or _AMBIENT_LOOKUP.search(text) is not None
        if judged and (ambient or extends):
            self._results[rule.name] = judged[-1]

    def used(self, nodes: list[Node]) -> list[Occurrence]:
        """The names that are looked up, in the order of the text."""
        return self._occurrences(nodes, self._uses)

    def bound(self, nodes: list[Node]) -> list[Occurrence]:
        """The names that are bound, in the order of the text."""
        return self._occurrences(nodes, self._binders)

    def _occurrences(self, nodes: list[Node], table: dict[str, set[str]]) -> list[Occurrence]:
        found = {
            Occurrence(name=child.text, start=child.start, end=child.end)
            for node in nodes
            for child in node.children
            if child.binding is not None and child.binding in table.get(node.rule or "", ())
        }
        return sorted(found, key=lambda occurrence: occurrence.start)

    def results(self, nodes: list[Node]) -> list[Node]:
        """The expressions that are checked against a result declared elsewhere: of `return`, of a function's body."""
        found = [node.find(self._results[node.rule]) for node in nodes if node.rule in self._results]
        return [child for child in found if child is not None]


def type_symbols(model: GrammarModel) -> frozenset[str]:
    """The nonterminals of the type fragment: the starred ones and all that they are made of."""
    definitions = {definition.name: definition for definition in model.definitions}
    pending = [definition.name for definition in model.definitions if definition.starred]
    found: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in found and name in definitions:
            found.add(name)
            pending += [s.value for a in definitions[name].alternatives for s in a.symbols]
    return frozenset(found)
