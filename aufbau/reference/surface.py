"""What a grammar's text says of itself: its terminals, its tokens, and the fragment that spells types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TypeAlias

from aufbau.grammar.model import Alternative, Definition, GrammarModel, Symbol, SymbolKind
from aufbau.reference.regular import Language
from aufbau.regex.parse import parse_regex
from aufbau.regex.syntax import literal_regex

# How many longer lexemes are looked at for one that no literal reserves, and that is fresh.
_TRIED = 300
Terminal: TypeAlias = tuple[SymbolKind, str]


@dataclass(frozen=True)
class Terminals:
    """A set of terminals that are read together: a literal reserves its text."""

    languages: dict[Terminal, Language]
    contextual: frozenset[str]
    _known: dict[str, frozenset[Terminal]] = field(default_factory=dict)

    def classes(self, text: str) -> frozenset[Terminal]:
        """The terminals that a whole text is, after reservation."""
        if text not in self._known:
            found = {terminal for terminal, language in self.languages.items() if language.accepts(text)}
            literals = {terminal for terminal in found if terminal[0] is SymbolKind.LITERAL}
            reserved = any(value not in self.contextual for _, value in literals)
            self._known[text] = frozenset(literals if reserved else found)
        return self._known[text]

    def longest(self, text: str, start: int) -> int | None:
        """The end of the longest lexeme that begins at `start`."""
        end = max(language.longest(text, start) for language in self.languages.values())
        return end if end > start else None

    def longer(self, piece: bytes, terminal: Terminal) -> Iterator[str]:
        """Lexemes of a terminal that properly begin with `piece`, shortest first."""
        candidates = islice(self.languages[terminal].longer(piece), _TRIED)
        return (text for text in candidates if terminal in self.classes(text))


def terminals(symbols: Iterable[Symbol], patterns: Iterable[str], contextual: Iterable[str]) -> Terminals:
    """The terminals among these symbols, and these patterns."""
    found: dict[Terminal, Language] = {}
    for symbol in symbols:
        if symbol.kind is SymbolKind.LITERAL:
            found.setdefault((symbol.kind, symbol.value), Language(literal_regex(symbol.value)))
        elif symbol.kind is SymbolKind.REGEX:
            found.setdefault((symbol.kind, symbol.value), Language(parse_regex(symbol.value)))
    for pattern in patterns:
        found.setdefault((SymbolKind.REGEX, pattern), Language(parse_regex(pattern)))
    return Terminals(found, frozenset(contextual))


@dataclass(frozen=True)
class Surface:
    """A grammar seen from one start symbol."""

    model: GrammarModel
    start: str

    @cached_property
    def definitions(self) -> dict[str, Definition]:
        """Every nonterminal by its name."""
        return {definition.name: definition for definition in self.model.definitions}

    @cached_property
    def terminals(self) -> Terminals:
        """All that a lexeme can be: what the start symbol reaches, and what is ignored."""
        symbols = [symbol for name in self.reached([self.start]) for symbol in self.symbols(name)]
        return terminals(symbols, [ignore.pattern for ignore in self.model.ignores], self.model.contextual)

    @cached_property
    def type_roots(self) -> list[str]:
        """The sorts of types."""
        starred = [definition.name for definition in self.model.definitions if definition.starred]
        return starred or [name for name in self.definitions if name == "Type"]

    @cached_property
    def fragment(self) -> list[str]:
        """The nonterminals of the type fragment."""
        return self.reached(self.type_roots)

    @cached_property
    def rules(self) -> frozenset[str]:
        """The names of rules."""
        return frozenset(rule.name for rule in self.model.rules)

    def symbols(self, name: str) -> list[Symbol]:
        """All symbols on the right-hand sides of a nonterminal."""
        return [symbol for alternative in self.definitions[name].alternatives for symbol in alternative.symbols]

    def reached(self, roots: list[str]) -> list[str]:
        """The nonterminals that occur in derivations from the roots."""
        found = list(dict.fromkeys(roots))
        for name in found:
            for symbol in self.symbols(name):
                if symbol.kind is SymbolKind.NONTERMINAL and symbol.value not in found:
                    found.append(symbol.value)
        return found

    @cached_property
    def neighbours(self) -> tuple[frozenset[Terminal], dict[Terminal, frozenset[Terminal]]]:
        """The terminals that a text can begin with, and for each terminal those that can come next."""
        names = self.reached([self.start])
        empty: set[str] = set()
        first: dict[str, set[Terminal]] = {name: set() for name in names}
        last: dict[str, set[Terminal]] = {name: set() for name in names}

        def edge(symbols: Iterable[Symbol], edges: dict[str, set[Terminal]]) -> set[Terminal]:
            found: set[Terminal] = set()
            for symbol in symbols:
                if symbol.kind is not SymbolKind.NONTERMINAL:
                    return found | {(symbol.kind, symbol.value)}
                found |= edges[symbol.value]
                if symbol.value not in empty:
                    return found
            return found

        def size() -> int:
            return len(empty) + sum(len(edges) for edges in (*first.values(), *last.values()))

        rows = [(name, alternative.symbols) for name in names for alternative in self.definitions[name].alternatives]
        before = -1
        while before < size():
            before = size()
            for name, symbols in rows:
                if all(symbol.kind is SymbolKind.NONTERMINAL and symbol.value in empty for symbol in symbols):
                    empty.add(name)
                first[name] |= edge(symbols, first)
                last[name] |= edge(reversed(symbols), last)
        following: dict[Terminal, set[Terminal]] = {}
        for _, symbols in rows:
            for i in range(1, len(symbols)):
                for terminal in edge(reversed(symbols[:i]), last):
                    following.setdefault(terminal, set()).update(edge(symbols[i:], first))
        return frozenset(first[self.start]), {terminal: frozenset(found) for terminal, found in following.items()}

    def lexemes(self, symbol: Symbol) -> frozenset[Terminal] | None:
        """The terminals that a symbol is one lexeme of; None for a nonterminal that has structure."""
        if symbol.kind is not SymbolKind.NONTERMINAL:
            return frozenset([(symbol.kind, symbol.value)])
        definition = self.definitions[symbol.value]
        single = all(len(a.symbols) == 1 and a.symbols[0].binding is None for a in definition.alternatives)
        if definition.label is not None or not single:
            return None
        found: frozenset[Terminal] = frozenset()
        for alternative in definition.alternatives:
            if alternative.symbols[0].value == symbol.value:
                return None
            inner = self.lexemes(alternative.symbols[0])
            if inner is None:
                return None
            found |= inner
        return found

    def constructor(self, definition: Definition, alternative: Alternative) -> tuple[str | None, list[int]]:
        """The head of the types that an alternative of the fragment spells, and where their parts stand.

        No head: the type is that of the only part.
        """
        parts = [i for i, symbol in enumerate(alternative.symbols) if symbol.kind is not SymbolKind.LITERAL]
        spelled = " ".join(s.value if s.kind is SymbolKind.LITERAL else "_" for s in alternative.symbols)
        if not parts:
            return spelled, parts
        if definition.label is not None and definition.label not in self.rules:
            return definition.label, parts
        return (spelled if len(parts) > 1 else None), parts
