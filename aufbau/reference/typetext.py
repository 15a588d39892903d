"""Reads the types of rules, goals and contexts: all readings of a text in the grammar's own type syntax."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property

from aufbau.grammar.model import Alternative, Definition, SymbolKind, TypeText
from aufbau.reference.surface import Surface, Terminal, Terminals, terminals
from aufbau.reference.terms import TOP, Term, leaf

_HOLE = re.compile(r"\?([^\W\d]\w*)")
_LOOKUP = re.compile(r"(?:Γ|Gamma)\(\s*([^()]+?)\s*\)")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)+)'|\"((?:[^\"\\]|\\.)+)\"")
_NAME = re.compile(r"[^\W\d][\w']*")
_ARROWS = (("→", "->"), ("->", "→"))


class UnreadableType(ValueError):
    """A text that spells no type, or several."""


@dataclass(frozen=True)
class _Token:
    text: str
    classes: frozenset[Terminal]
    term: Term | None = None  # of a hole, a look-up or a binding, which stand for any type


@dataclass(frozen=True)
class TypeReader:
    """The type syntax of a grammar. Holes become the strings `?A`, look-ups `Γ(x)`, bindings what `bound` says."""

    surface: Surface
    _known: dict[object, set[Term]] = field(default_factory=dict)

    @cached_property
    def _terminals(self) -> Terminals:
        symbols = [symbol for name in self.surface.fragment for symbol in self.surface.symbols(name)]
        return terminals(symbols, (), self.surface.model.contextual)

    def of_rule(self, text: TypeText, bound: dict[str, str]) -> Term:
        """The type that a rule writes; `bound` gives the holes of bindings. Raises `UnreadableType`."""
        return TOP if text.is_top else self.read(text.written or text.text, bound)

    def read(self, text: str, bound: dict[str, str] | None = None) -> Term:
        """The one type that a text spells. Raises `UnreadableType`."""
        found = self.readings(text, bound or {})
        if len(found) != 1:
            raise UnreadableType(f"{text!r} spells {len(found)} types")
        return found.pop()

    def readings(self, text: str, bound: dict[str, str]) -> set[Term]:
        """Every type that a text spells. Raises `UnreadableType` for what is no row of its lexemes."""
        key = (text, *sorted(bound.items()))
        if key not in self._known:
            tokens = self._tokens(text, bound)
            self._known[key] = {term for root in self.surface.type_roots for term in self._readings(tokens, root)}
        return set(self._known[key])

    def _tokens(self, text: str, bound: dict[str, str]) -> list[_Token]:
        tokens: list[_Token] = []
        at = 0
        while at < len(text):
            if text[at].isspace():
                at += 1
            elif match := _HOLE.match(text, at):
                tokens.append(_Token(match[0], frozenset(), match[0]))
                at = match.end()
            elif match := _LOOKUP.match(text, at):
                tokens.append(_Token(match[0], frozenset(), f"Γ({match[1]})"))
                at = match.end()
            elif match := _QUOTED.match(text, at):
                inner = re.sub(r"\\(.)", r"\1", match[1] or match[2])
                whole = self._terminals.classes(inner)
                tokens += [_Token(inner, whole)] if whole else self._tokens(inner, {})
                at = match.end()
            elif (match := _NAME.match(text, at)) and match[0] in bound:
                tokens.append(_Token(match[0], frozenset(), bound[match[0]]))
                at = match.end()
            else:
                token, at = self._lexeme(text, at)
                tokens.append(token)
        return tokens

    def _lexeme(self, text: str, at: int) -> tuple[_Token, int]:
        end = self._terminals.longest(text, at)
        if end is not None:
            return _Token(text[at:end], self._terminals.classes(text[at:end])), end
        for written, other in _ARROWS:
            classes = self._terminals.classes(other)
            if text.startswith(written, at) and classes:
                return _Token(other, classes), at + len(written)
        raise UnreadableType(f"{text[at:]!r} begins no type")

    def _readings(self, tokens: list[_Token], root: str) -> set[Term]:
        surface = self.surface

        @cache
        def whole(name: str, start: int, end: int) -> set[Term]:
            term = tokens[start].term
            if term is not None and end == start + 1:
                return {term}
            definition = surface.definitions[name]
            return {term for a in definition.alternatives for term in self._built(definition, a, start, end, row)}

        def row(alternative: Alternative, i: int, start: int, end: int) -> list[tuple[Term, ...]]:
            """The parts of an alternative's symbols from the i-th on."""
            if i == len(alternative.symbols):
                return [()] if start == end else []
            symbol = alternative.symbols[i]
            last = end - (len(alternative.symbols) - i - 1)
            found: list[tuple[Term, ...]] = []
            for middle in range(start + 1, last + 1):
                if symbol.kind is SymbolKind.NONTERMINAL:
                    heads = [(term,) for term in whole(symbol.value, start, middle)]
                elif middle == start + 1 and (symbol.kind, symbol.value) in tokens[start].classes:
                    heads = [(leaf(tokens[start].text),)]
                else:
                    continue
                if heads:
                    found += [head + rest for head in heads for rest in row(alternative, i + 1, middle, end)]
            return found

        return whole(root, 0, len(tokens)) if tokens else set()

    def _built(
        self,
        definition: Definition,
        alternative: Alternative,
        start: int,
        end: int,
        row: Callable[[Alternative, int, int, int], list[tuple[Term, ...]]],
    ) -> list[Term]:
        head, parts = self.surface.constructor(definition, alternative)
        found: list[Term] = []
        for children in row(alternative, 0, start, end):
            arguments = tuple(children[i] for i in parts)
            found.append(arguments[0] if head is None else (head, arguments))
        return found
