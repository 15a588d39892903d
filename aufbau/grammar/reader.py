"""Reads the surface of `.auf` text: directives, blocks and productions; rules go to `aufbau.grammar.rules`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from aufbau.errors import GrammarError, Span
from aufbau.grammar.model import (
    DEFAULT_IGNORES,
    Alternative,
    Definition,
    Given,
    GrammarModel,
    Ignore,
    Rule,
    Symbol,
    SymbolKind,
)
from aufbau.grammar.rules import DASHES, Line, read_given, read_rule

_NAME = re.compile(r"[^\W\d]\w*")
_HEAD = re.compile(r"\s*(?P<name>[^\W\d]\w*)(?P<star1>\*)?\s*(?:\(\s*(?P<label>[^\s()]+)\s*\))?\s*(?P<star2>\*)?\s*::=")
_BINDING = re.compile(r"\[\s*([^\s\[\]]+)\s*\]")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_EPSILON = ("ε", "epsilon")


@dataclass
class _Parts:
    """What has been read so far."""

    definitions: list[Definition] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    starts: list[str] = field(default_factory=list)
    ambient: list[str] = field(default_factory=list)
    ignores: list[Ignore] = field(default_factory=list)
    contextual: list[str] = field(default_factory=list)
    given: list[Given] = field(default_factory=list)
    bottom_up: list[str] = field(default_factory=list)
    declared: dict[str, Span] = field(default_factory=dict)


def read_grammar(text: str, source_name: str = "") -> GrammarModel:
    """Read `.auf` text into a model.

    Raises `GrammarError` for the first fault of notation; faults of meaning are found by `aufbau.grammar.compile`.
    """
    parts = _Parts()
    try:
        for block in _blocks(text):
            _read_block(block, parts)
        _check_defined_once(parts.definitions)
    except GrammarError as error:
        error.source = source_name
        raise
    if not parts.definitions:
        raise GrammarError(
            "the grammar defines no nonterminal",
            Span(),
            "write at least one production, such as  Start ::= 'x'",
            source_name,
        )
    names = [definition.name for definition in parts.definitions]
    start = parts.starts[0] if parts.starts else "start" if "start" in names else names[-1]
    return GrammarModel(
        definitions=tuple(parts.definitions),
        rules=tuple(parts.rules),
        start=start,
        roots=tuple(parts.starts[1:]),
        ambient=tuple(parts.ambient),
        ignores=tuple(parts.ignores) or DEFAULT_IGNORES,
        contextual=tuple(parts.contextual),
        given=tuple(parts.given),
        bottom_up=tuple(parts.bottom_up),
        declared=parts.declared,
        source_name=source_name,
    )


def _check_defined_once(definitions: list[Definition]) -> None:
    """Check that no nonterminal is defined twice: the second would silently hide or extend the first."""
    seen: dict[str, Definition] = {}
    for definition in definitions:
        first = seen.get(definition.name)
        if first is not None:
            raise GrammarError(
                f"nonterminal {definition.name} is defined twice (first at line {first.span.line})",
                definition.span,
                "join the alternatives with | in one definition",
            )
        seen[definition.name] = definition


def _blocks(text: str) -> list[list[Line]]:
    """Blocks of lines between blank lines, without comment lines."""
    blocks: list[list[Line]] = []
    block: list[Line] = []
    for number, raw in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        if raw.lstrip().startswith("//"):
            continue
        if raw.strip():
            block.append(Line(raw, number))
        elif block:
            blocks.append(block)
            block = []
    if block:
        blocks.append(block)
    return blocks


def _read_block(block: list[Line], parts: _Parts) -> None:
    while block and block[0].text.lstrip().startswith("%"):
        _read_directive(block[0], parts)
        block = block[1:]
    if not block:
        return
    defines = any(_HEAD.match(line.text) for line in block)
    dashes = [line for line in block if DASHES.match(line.text)]
    if defines and dashes:
        raise GrammarError(
            "a block holds both productions and a rule",
            dashes[0].span(),
            "separate productions and rules by a blank line",
        )
    if defines:
        _read_productions(block, parts)
    elif dashes:
        parts.rules.append(read_rule(block))
    elif "⇝" in " ".join(line.text for line in block):
        raise GrammarError(
            "rewrite rules (⇝) are not supported",
            block[0].span(),
            "they lie outside Proposition 2.2: declared rewrites need proofs of termination and confluence",
        )
    else:
        raise GrammarError(
            "this block is neither productions nor a rule",
            block[0].span(),
            "productions contain ::= ; a rule has a line of dashes with its (name)",
        )


def _read_directive(line: Line, parts: _Parts) -> None:
    text = line.text.strip()
    word, rest = (*text.split(None, 1), "")[:2]
    offset = line.text.index(rest) if rest else len(line.text)
    if word in ("%start", "%bottom-up"):
        names = rest.split()
        if not names or not all(_NAME.fullmatch(name) for name in names):
            raise GrammarError(
                f"{word} needs the name of a nonterminal", line.span(offset), f"for example  {word} Program"
            )
        (parts.starts if word == "%start" else parts.bottom_up).extend(names)
        for name in names:
            parts.declared.setdefault(name, line.span(line.text.index(name, offset)))
    elif word in ("%ignore", "%ignore-once"):
        scanner = _Scanner(line, offset)
        symbols = scanner.symbols()
        if len(symbols) != 1 or symbols[0].kind is not SymbolKind.REGEX or symbols[0].binding:
            raise GrammarError(f"{word} needs one regex", line.span(offset), f"for example  {word} /[ \\n]+/")
        parts.ignores.append(Ignore(pattern=symbols[0].value, once=word == "%ignore-once", span=symbols[0].span))
    elif word == "%given":
        parts.given.append(read_given(line, offset))
    elif word in ("%contextual", "%ambient"):
        symbols = _Scanner(line, offset).symbols()
        if not symbols or any(s.kind is not SymbolKind.LITERAL or s.binding for s in symbols):
            raise GrammarError(f"{word} needs quoted words", line.span(offset), f"for example  {word} 'get'")
        (parts.contextual if word == "%contextual" else parts.ambient).extend(s.value for s in symbols)
        parts.declared |= {s.value: s.span for s in symbols}
    else:
        raise GrammarError(
            f"unknown directive {word}",
            line.span(line.text.index(word)),
            "known: %start Name, %ignore /regex/, %ignore-once /regex/, %contextual 'word', %ambient 'key', "
            "%given name : type, %bottom-up Name",
        )


def _read_productions(block: list[Line], parts: _Parts) -> None:
    pending: list[tuple[re.Match[str], Line, list[Alternative]]] = []
    for line in block:
        head = _HEAD.match(line.text)
        if head:
            pending.append((head, line, _Scanner(line, head.end()).alternatives()))
        elif line.text.lstrip().startswith("|") and pending:
            start = line.text.index("|") + 1
            pending[-1][2].extend(_Scanner(line, start).alternatives())
        else:
            raise GrammarError(
                "expected a definition or a line that begins with |",
                line.span(len(line.text) - len(line.text.lstrip())),
                "write  Name ::= …  or continue the alternatives with |",
            )
    for head, line, alternatives in pending:
        parts.definitions.append(
            Definition(
                name=head["name"],
                label=head["label"],
                starred=bool(head["star1"] or head["star2"]),
                alternatives=tuple(alternatives),
                span=line.span(head.start("name")),
            )
        )


class _Scanner:
    """Reads the symbols of one line from a column on."""

    def __init__(self, line: Line, position: int) -> None:
        self._line = line
        self._text = line.text
        self._at = position

    def alternatives(self) -> list[Alternative]:
        """Alternatives up to the end of the line, separated by |; an empty one is ε."""
        found: list[Alternative] = []
        while True:
            span = self._line.span(self._at)
            symbols = self.symbols()
            found.append(Alternative(symbols=tuple(symbols), span=symbols[0].span if symbols else span))
            if self._at >= len(self._text):
                return found
            self._at += 1  # the bar

    def symbols(self) -> list[Symbol]:
        """Symbols up to a bar or the end of the line."""
        found: list[Symbol] = []
        while True:
            self._skip_space()
            if self._at >= len(self._text) or self._text[self._at] == "|":
                return found
            symbol = self._symbol()
            if symbol is not None:
                found.append(symbol)

    def _skip_space(self) -> None:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1

    def _symbol(self) -> Symbol | None:
        span = self._line.span(self._at)
        char = self._text[self._at]
        if char in "'\"":
            kind, value = SymbolKind.LITERAL, self._quoted(char, span)
            if not value:
                raise GrammarError("an empty literal", span, "write ε (or epsilon) for the empty text")
        elif char == "/":
            kind, value = SymbolKind.REGEX, self._regex(span)
        else:
            name = _NAME.match(self._text, self._at)
            if name is None:
                if char == "ε":
                    self._at += 1
                    return None
                raise GrammarError(
                    f"unexpected {char!r} in a production",
                    span,
                    "symbols are Name, Name[binding], 'literal', /regex/, /regex/[binding] and ε",
                )
            kind, value = SymbolKind.NONTERMINAL, name.group()
            self._at = name.end()
            if value in _EPSILON:
                return None
        binding = _BINDING.match(self._text, self._at)
        if binding is None and self._at < len(self._text) and self._text[self._at] == "[":
            raise GrammarError("a binding that does not end", self._line.span(self._at), "write Name[binding]")
        if binding is not None:
            self._at = binding.end()
        return Symbol(kind=kind, value=value, binding=binding[1] if binding else None, span=span)

    def _quoted(self, quote: str, span: Span) -> str:
        out: list[str] = []
        self._at += 1
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == quote:
                self._at += 1
                return "".join(out)
            if char == "\\":
                self._at += 1
                if self._at >= len(self._text):
                    break
                char = self._text[self._at]
                char = _ESCAPES.get(char, char)
            out.append(char)
            self._at += 1
        raise GrammarError("a literal that does not end on its line", span, f"close it with {quote}")

    def _regex(self, span: Span) -> str:
        start = self._at + 1
        in_class = False
        at = start
        while at < len(self._text):
            char = self._text[at]
            if char == "\\":
                at += 1
            elif char == "[":
                in_class = True
            elif char == "]":
                in_class = False
            elif char == "/" and not in_class:
                self._at = at + 1
                if at == start:
                    raise GrammarError("an empty regex", span, "a terminal must match at least one character")
                return self._text[start:at]
            at += 1
        raise GrammarError("a regex that does not end on its line", span, "close it with / (write \\/ inside)")
