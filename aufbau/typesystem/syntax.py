"""The type fragment as a language of its own: reads types (with holes) into terms and renders terms back.

The fragment is everything reachable from the starred nonterminals (`Type* ::= …`), or from one named `Type` when none
is starred. A production that has children is a constructor when it carries a label or has two of them or more; with a
single child it passes that through (parentheses, precedence levels). Literals alone, and regex terminals, are leaves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, final

from aufbau.grammar.model import Alternative, Definition, GrammarModel, SymbolKind
from aufbau.lexer.automaton import LexerAutomaton, TerminalSpec, build
from aufbau.regex.parse import parse_regex
from aufbau.regex.positions import bits
from aufbau.regex.syntax import literal_regex
from aufbau.typesystem.terms import SCHEME_HEAD, Term, Terms

_HOLE = re.compile(r"\?[^\W\d]\w*")
LOOKUP = re.compile(r"(?:Γ|Gamma)\(\s*([^()]+?)\s*\)")
_WORD = re.compile(r"[^\W\d][\w']*")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)+)'|\"((?:[^\"\\]|\\.)+)\"")
_ARROWS: Final = {"→": "->", "->": "→"}


class TypeReadError(ValueError):
    """A type text that the fragment does not spell, or spells in several ways."""

    def __init__(self, message: str, offset: int, hint: str = "") -> None:
        self.message, self.offset, self.hint = message, offset, hint
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Token:
    """A lexeme of type text: a variable that stands for a whole type, or text with the terminals it matches."""

    text: str
    offset: int
    term: Term | None  # the variable of a hole, a look-up or a binding
    mask: int = 0


@dataclass(frozen=True, slots=True)
class TypeProduction:
    """An alternative of the fragment with the head of the terms it builds; no head means it passes its child on."""

    nonterminal: str
    alternative: Alternative
    head: str | None
    children: tuple[int, ...]  # positions of nonterminals and regex terminals


def type_fragment(model: GrammarModel) -> frozenset[str]:
    """Names of the nonterminals of the type fragment."""
    by_name = {definition.name: definition for definition in model.definitions}
    stack = type_roots(model)
    found: set[str] = set()
    while stack:
        name = stack.pop()
        if name in found or name not in by_name:
            continue
        found.add(name)
        for alternative in by_name[name].alternatives:
            stack += [s.value for s in alternative.symbols if s.kind is SymbolKind.NONTERMINAL]
    return frozenset(found)


def type_roots(model: GrammarModel) -> list[str]:
    """The starred nonterminals, or the one named `Type`."""
    starred = [definition.name for definition in model.definitions if definition.starred]
    return starred or [definition.name for definition in model.definitions if definition.name == "Type"]


def type_production(definition: Definition, alternative: Alternative, labels: frozenset[str]) -> TypeProduction:
    """Classify one alternative of the fragment; `labels` are the names of rules."""
    symbols = alternative.symbols
    children = tuple(i for i, symbol in enumerate(symbols) if symbol.kind is not SymbolKind.LITERAL)
    head: str | None = None
    if not children:
        head = " ".join(symbol.value for symbol in symbols)  # also under a label, or 'int' and 'bool' would be one type
    elif definition.label is not None and definition.label not in labels:
        head = definition.label
    elif len(children) > 1:
        head = " ".join(s.value if s.kind is SymbolKind.LITERAL else "_" for s in symbols)
    return TypeProduction(definition.name, alternative, head, children)


@final
class TypeSyntax:
    """Reads and renders the types of one grammar."""

    __slots__ = (
        "_automaton",
        "_by_head",
        "_corners",
        "_productions",
        "_rows",
        "_rows_in",
        "_terminals",
        "_wraps",
        "roots",
    )

    def __init__(self, model: GrammarModel) -> None:
        labels = frozenset(rule.name for rule in model.rules)
        fragment = type_fragment(model)
        self.roots: Final = tuple(type_roots(model))
        self._productions: dict[str, list[TypeProduction]] = {}
        for definition in model.definitions:
            if definition.name in fragment:
                self._productions[definition.name] = [
                    type_production(definition, alternative, labels) for alternative in definition.alternatives
                ]
        self._by_head: dict[str, TypeProduction] = {}
        self._terminals: dict[tuple[SymbolKind, str], int] = {}
        for production in (p for productions in self._productions.values() for p in productions):
            if production.head is not None:
                self._by_head.setdefault(production.head, production)
            for symbol in production.alternative.symbols:
                if symbol.kind is not SymbolKind.NONTERMINAL:
                    self._terminals.setdefault((symbol.kind, symbol.value), len(self._terminals))
        self._automaton: LexerAutomaton = build(
            [
                TerminalSpec(
                    regex=literal_regex(value) if kind is SymbolKind.LITERAL else parse_regex(value),
                    literal=kind is SymbolKind.LITERAL,
                    contextual=value in model.contextual,
                )
                for kind, value in self._terminals
            ]
        )
        self._rows: dict[tuple[str | int, ...], Term] = {}  # what was read in the table that was first read in
        self._rows_in: Terms | None = None
        self._wraps: dict[tuple[str, str], tuple[tuple[str, ...], tuple[str, ...]] | None] = {}
        self._corners: Final = _Corners(self._productions, self._terminals)

    # Reading

    def read(
        self,
        text: str,
        *,
        terms: Terms,
        hole: Callable[[str], Term],
        lookup: Callable[[str, bool], Term] | None = None,
        bindings: Mapping[str, Term] | None = None,
    ) -> Term:
        """The term that a type text spells, built in `terms`, the table of those it will be compared with.

        `hole` gives the variable of `?A`; `lookup` that of `Γ(x)` (name, ambient); `bindings` maps names of bound type
        children to variables. Raises `TypeReadError` when there is no reading, or more than one.
        """
        if not self.roots:
            raise TypeReadError("the grammar has no type fragment", 0, "mark the sort of types: Type* ::= …")
        tokens = self._tokens(text, hole, lookup, bindings or {})
        if not tokens:
            raise TypeReadError("an empty type", 0)
        if self._rows_in is None:
            self._rows_in = terms
        if terms is not self._rows_in:
            return self._only(tokens, terms, text)
        # Rules write the same few types with other variables: reading each of the 289 in ml.auf once, not 1,286 times,
        # takes a quarter off the time to load it.
        variables: dict[Term, int] = {}
        row = tuple(
            [one.text if one.term is None else variables.setdefault(one.term, len(variables)) for one in tokens]
        )
        known = self._rows.get(row)
        if known is None:
            numbered = [
                one if one.term is None else Token(one.text, one.offset, terms.var(variables[one.term]))
                for one in tokens
            ]
            known = self._rows[row] = self._only(numbered, terms, text)
        return terms.instance(known, tuple(variables))

    def _only(self, tokens: list[Token], terms: Terms, text: str) -> Term:
        """The one reading of a row of tokens."""
        chart = _Chart(self._corners, terms, tokens)
        found: dict[Term, None] = {}
        for root in self.roots:
            found |= dict.fromkeys(chart.spanning(root))
        if len(found) > 1:
            shown = " or ".join(sorted(repr(term) for term in found))
            raise TypeReadError(f"the type {text!r} can be read in {len(found)} ways: {shown}", 0, "add parentheses")
        if not found:
            at = chart.longest(self.roots) or chart.furthest
            what = f"at {tokens[at].text!r}" if at < len(tokens) else "at its end"
            raise TypeReadError(
                f"{text!r} is not a type of this grammar ({what})",
                tokens[at].offset if at < len(tokens) else len(text),
                f"types are spelled by {', '.join(self.roots)}; quote a type literal as 'int', write a hole as ?A",
            )
        return next(iter(found))

    def _tokens(
        self,
        text: str,
        hole: Callable[[str], Term],
        lookup: Callable[[str, bool], Term] | None,
        bindings: Mapping[str, Term],
    ) -> list[Token]:
        tokens: list[Token] = []
        at = 0
        while at < len(text):
            if text[at].isspace():
                at += 1
                continue
            if match := _HOLE.match(text, at):
                tokens.append(Token(match.group(), at, hole(match.group()[1:])))
            elif lookup is not None and (match := LOOKUP.match(text, at)):
                name = match[1]
                ambient = name[0] in "'\""
                tokens.append(Token(match.group(), at, lookup(name[1:-1] if ambient else name, ambient)))
            elif match := _QUOTED.match(text, at):
                inner, start = re.sub(r"\\(.)", r"\1", match[1] or match[2]), at + 1
                whole = self._automaton.classify(inner.encode())
                if whole:
                    tokens.append(Token(inner, start, None, whole))
                else:
                    tokens += [self._lexeme(inner, i, start) for i in self._lexeme_starts(inner, start)]
            elif (match := _WORD.match(text, at)) and match.group() in bindings:
                tokens.append(Token(match.group(), at, bindings[match.group()]))
            else:
                token = self._lexeme(text, at, 0)
                tokens.append(token)
                # An arrow may be written in its other spelling, so advance by what stands in the text.
                at += len(token.text) if text.startswith(token.text, at) else len(_ARROWS[token.text])
                continue
            at = match.end()
        return tokens

    def _lexeme_starts(self, text: str, base: int) -> list[int]:
        starts, at = [], 0
        while at < len(text):
            if text[at].isspace():
                at += 1
            else:
                starts.append(at)
                at += len(self._lexeme(text, at, base).text)
        return starts

    def _lexeme(self, text: str, at: int, base: int) -> Token:
        """The longest lexeme of the fragment that begins here."""
        data = text[at:].encode()
        state, best, mask = self._automaton.start, 0, 0
        for position, byte in enumerate(data):
            state = self._automaton.step(state, byte)
            if state < 0:
                break
            if self._automaton.accepts[state]:
                best, mask = position + 1, self._automaton.accepts[state]
        if best:
            return Token(data[:best].decode(), base + at, None, mask)
        for spelling, other in _ARROWS.items():
            known = self._automaton.classify(other.encode())
            if text.startswith(spelling, at) and known:
                return Token(other, base + at, None, known)
        raise TypeReadError(
            f"{text[at:].split()[0]!r} begins no type of this grammar",
            base + at,
            f"types are spelled by {', '.join(self.roots)}; holes are written ?A",
        )

    # Rendering

    def render(self, term: Term, names: dict[int, str] | None = None) -> str:
        """The type in the grammar's own spelling; variables become ?A, ?B, … in order of appearance."""
        if names is None:
            names = {}
        if term.head == SCHEME_HEAD:
            term = term.args[0]
        out: list[str] = []
        root = self.roots[0] if self.roots else ""
        stack: list[tuple[Term | None, str]] = [(term, root)]
        while stack:
            current, where = stack.pop()
            if current is None:
                out.append(where)
            elif current.index >= 0:
                out.append("?" + names.setdefault(current.index, _letter(len(names))))
            elif current.head.startswith(SCHEME_HEAD):
                quantified = -1 - int(current.head[len(SCHEME_HEAD) :])
                out.append("?" + names.setdefault(quantified, _letter(len(names))))
            else:
                stack.extend(reversed(self._pieces(current, where)))
        return _spaced(out)

    def _pieces(self, term: Term, where: str) -> list[tuple[Term | None, str]]:
        """The texts and subterms that spell a term at a nonterminal."""
        production = self._by_head.get(term.head)
        if production is None or (not term.args and production.children):
            return [(None, term.head)]
        before, after = self._wrap(where, production.nonterminal) or ((), ())
        pieces: list[tuple[Term | None, str]] = [(None, text) for text in before]
        symbols = production.alternative.symbols
        for i, symbol in enumerate(symbols):
            if symbol.kind is SymbolKind.LITERAL:
                pieces.append((None, symbol.value))
                continue
            arg = term.args[production.children.index(i)]
            inner: list[tuple[Term | None, str]] = [(arg, symbol.value)]
            ambiguous = (
                i < len(symbols) - 1
                and symbol.value == production.nonterminal == symbols[-1].value
                and len(arg.args) > 0
            )
            wrap = self._wrap_strict(symbol.value) if ambiguous else None
            if wrap is not None:
                inner = [*((None, text) for text in wrap[0]), *inner, *((None, text) for text in wrap[1])]
            pieces += inner
        return pieces + [(None, text) for text in after]

    def _wrap(self, where: str, target: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """The fewest literals (parentheses) with which `where` passes a `target` through."""
        key = (where, target)
        if key not in self._wraps:
            best: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {where: ((), ())}
            queue = [where]
            while queue:
                name = queue.pop(0)
                before, after = best[name]
                for child, left, right in self._passing(name):
                    candidate = (before + left, right + after)
                    known = best.get(child)
                    if known is None or sum(map(len, candidate)) < sum(map(len, known)):
                        best[child] = candidate
                        queue.append(child)
            self._wraps[key] = best.get(target)
        return self._wraps[key]

    def _wrap_strict(self, name: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """Literals with which a nonterminal passes itself through, so that a nested type can't be read otherwise."""
        for child, left, right in self._passing(name):
            if left and child == name:
                return left, right
        return None

    def _passing(self, name: str) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
        found = []
        for production in self._productions.get(name, ()):
            if production.head is None and len(production.children) == 1:
                symbols, at = production.alternative.symbols, production.children[0]
                if symbols[at].kind is SymbolKind.NONTERMINAL:
                    left = tuple(s.value for s in symbols[:at])
                    found.append((symbols[at].value, left, tuple(s.value for s in symbols[at + 1 :])))
        return found


@final
class _Reads:
    """A production as the chart follows it: a step for each symbol."""

    __slots__ = ("head", "nonterminal", "steps")

    def __init__(self, production: TypeProduction, terminals: Mapping[tuple[SymbolKind, str], int]) -> None:
        self.nonterminal: Final = production.nonterminal
        self.head: Final = production.head
        # A nonterminal, or none with the bit of a terminal; whether the terminal is a leaf of the type.
        self.steps: Final = tuple(
            (symbol.value, 0, False)
            if symbol.kind is SymbolKind.NONTERMINAL
            else ("", 1 << terminals[symbol.kind, symbol.value], symbol.kind is SymbolKind.REGEX)
            for symbol in production.alternative.symbols
        )


@final
class _Corners:
    """The productions of the type fragment by what they begin with."""

    __slots__ = ("after", "empty", "names", "terminal")

    def __init__(
        self, productions: Mapping[str, list[TypeProduction]], terminals: Mapping[tuple[SymbolKind, str], int]
    ) -> None:
        self.names: Final = tuple(productions)
        self.empty: Final[list[_Reads]] = []
        self.terminal: Final[list[list[_Reads]]] = [[] for _ in terminals]
        self.after: Final[dict[str, list[_Reads]]] = {name: [] for name in productions}  # a nonterminal
        everything = [production for alternatives in productions.values() for production in alternatives]
        # Behind what may be empty, a later nonterminal begins where the production does.
        deep = any(not production.alternative.symbols for production in everything)
        for production in everything:
            symbols = production.alternative.symbols
            reads = _Reads(production, terminals)
            corners = [s.value for s in (symbols if deep else symbols[:1]) if s.kind is SymbolKind.NONTERMINAL]
            for name in dict.fromkeys(corners):
                self.after[name].append(reads)
            if not symbols:
                self.empty.append(reads)
            elif symbols[0].kind is not SymbolKind.NONTERMINAL:
                self.terminal[terminals[symbols[0].kind, symbols[0].value]].append(reads)


class _Chart:
    """All readings of a short row of tokens, by fixed point: type texts are short and ambiguity must be seen."""

    def __init__(self, corners: _Corners, terms: Terms, tokens: list[Token]) -> None:
        self._terms, self._tokens = terms, tokens
        self.furthest = 0  # that some production comes from the first token
        # By position and nonterminal: readings and where they end.
        self._found: list[dict[str, dict[tuple[int, Term], None]]] = [{} for _ in range(len(tokens) + 1)]
        # A reading that begins at i needs others that begin at i or later, so positions are done from the right.
        for i in range(len(tokens) - 1, -1, -1):
            term, mask, found = tokens[i].term, tokens[i].mask, self._found[i]
            pending = list(corners.empty)
            if term is None:
                for number in bits(mask):
                    pending += corners.terminal[number]
            else:
                for name in corners.names:
                    found[name] = {(i + 1, term): None}
                    pending += corners.after[name]
            for production in pending:
                readings = self._readings(production, i)
                if readings:
                    known = found.setdefault(production.nonterminal, {})
                    size = len(known)
                    known |= dict.fromkeys(readings)
                    if len(known) > size:
                        pending += corners.after[production.nonterminal]

    def spanning(self, name: str) -> list[Term]:
        """Readings of the whole row."""
        return [term for end, term in self._found[0].get(name, ()) if end == len(self._tokens)]

    def longest(self, names: Iterable[str]) -> int:
        """How many tokens the longest reading from the first one takes."""
        return max((end for name in names for end, _ in self._found[0].get(name, ())), default=0)

    def _readings(self, production: _Reads, start: int) -> list[tuple[int, Term]]:
        tokens, found, terms = self._tokens, self._found, self._terms
        partial: list[tuple[int, tuple[Term, ...]]] = [(start, ())]
        for name, bit, leaf in production.steps:
            following: list[tuple[int, tuple[Term, ...]]] = []
            for at, args in partial:
                if start == 0 and at > self.furthest:
                    self.furthest = at
                if name:
                    following += [(end, (*args, term)) for end, term in found[at].get(name, ())]
                elif at < len(tokens) and tokens[at].mask & bit:
                    following.append((at + 1, (*args, terms.con(tokens[at].text)) if leaf else args))
            if not following:
                return []
            partial = following
        if production.head is not None:
            return [(end, terms.con(production.head, args)) for end, args in partial]
        return [(end, args[0]) for end, args in partial if args]


def _letter(number: int) -> str:
    return chr(ord("A") + number % 26) + (str(number // 26) if number >= 26 else "")


def _spaced(parts: list[str]) -> str:
    """Join lexemes as people write them."""
    out = ""
    for part in parts:
        if out and part[0] not in ")],;" and out[-1] not in "([" and not (part[0] == "[" and out[-1].isalnum()):
            out += " "
        out += part
    return out
