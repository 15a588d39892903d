"""Compiles a grammar for one start symbol, refusing every rule that could silently mean nothing."""

from __future__ import annotations

from aufbau.earley.machine import RESULT, Machine, Production
from aufbau.errors import GrammarError, Span
from aufbau.grammar.analysis import near, nullable, reachable
from aufbau.grammar.model import (
    Given,
    GrammarModel,
    Judgement,
    Rule,
    Symbol,
    SymbolKind,
    space_prefix,
    split_name,
)
from aufbau.grammar.production import (
    ProductionBuilder,
    TokenChild,
    ambient_reads,
    ambient_writes,
    names_bound,
    names_used,
)
from aufbau.lexer.automaton import LexerAutomaton, TerminalSpec, build
from aufbau.regex.errors import RegexError
from aufbau.regex.parse import parse_regex
from aufbau.regex.syntax import Regex, is_empty, literal_regex
from aufbau.regex.syntax import nullable as regex_nullable
from aufbau.typesystem.syntax import TypeReadError, TypeSyntax, type_fragment
from aufbau.typesystem.terms import Term, Terms


def compile_grammar(model: GrammarModel, start: str) -> Machine:
    """Compile the part of a grammar that is reachable from `start`. Raises `GrammarError`."""
    return _Compiler(model, start).machine()


def spaces(model: GrammarModel) -> frozenset[str]:
    """The name spaces that rules use."""
    return frozenset(split_name(name)[0] for rule in model.rules for name in names_used(rule))


def check_rules(model: GrammarModel) -> None:
    """Refuse rules, labels and ambient keys that attach to nothing. Raises `GrammarError`."""
    rules: dict[str, Rule] = {}
    for rule in model.rules:
        if rule.name in rules:
            raise GrammarError(f"rule {rule.name} is defined twice", rule.span, "rename or remove one")
        rules[rule.name] = rule
    fragment = type_fragment(model)
    labels = {definition.label for definition in model.definitions if definition.label}
    for rule in model.rules:
        if rule.name not in labels:
            raise GrammarError(
                f"rule {rule.name} is attached to no production",
                rule.span,
                near(rule.name, labels) or f"label a nonterminal with it: Name({rule.name}) ::= …",
            )
    for definition in model.definitions:
        if definition.label and definition.label not in rules and definition.name not in fragment:
            raise GrammarError(
                f"{definition.name} is labelled {definition.label}, but there is no such rule",
                definition.span,
                near(definition.label, rules)
                or "write the rule; only types may carry a label without one (it names a constructor)",
            )
    _check_ambient(model)
    _check_spaces(model)
    _check_given(model)


def _check_given(model: GrammarModel) -> None:
    seen: set[str] = set()
    for given in model.given:
        if given.name in seen:
            raise GrammarError(f"%given {given.name} is declared twice", given.span, "remove one")
        seen.add(given.name)


def _check_spaces(model: GrammarModel) -> None:
    """A name space that rules ask must get names somewhere, or every program that uses it would silently be lost."""
    written = {split_name(name)[0] for rule in model.rules for name in names_bound(rule)} | {""}
    written |= {split_name(given.name)[0] for given in model.given}
    for rule in model.rules:
        for name in names_used(rule):
            space = split_name(name)[0]
            if space not in written:
                raise GrammarError(
                    f"rule {rule.name} asks the name space {space}, in which nothing puts names",
                    rule.span,
                    near(space, written - {""}) or f"bind names there: Γ[{name}:τ], or %given {space}.name : type",
                )


def _check_ambient(model: GrammarModel) -> None:
    """An ambient key that is read must be set somewhere, or every program would silently be lost."""
    written = set(model.ambient)
    for rule in model.rules:
        written |= ambient_writes(rule)
    for rule in model.rules:
        for key, span in ambient_reads(rule):
            if key not in written:
                raise GrammarError(
                    f"rule {rule.name} reads the ambient key '{key}', which nothing sets",
                    span,
                    near(key, written)
                    or f"set it with Γ['{key}': …] in a premise or conclusion, or declare that the caller does: "
                    f"%ambient '{key}'",
                )


class _Compiler:
    def __init__(self, model: GrammarModel, start: str) -> None:
        self.model = model
        self.by_name = {definition.name: definition for definition in model.definitions}
        reached = reachable(self.by_name, [start])
        self.names = tuple(d.name for d in model.definitions if d.name in reached)
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self.start = start
        self.terms = Terms()
        self.rules = {rule.name: rule for rule in model.rules}
        self.fragment = type_fragment(model)
        self.terminals: dict[tuple[SymbolKind, str], int] = {}
        self.spans: dict[tuple[SymbolKind, str], Span] = {}
        self.empty = nullable(model.definitions)
        self.spaces = spaces(model)

    def machine(self) -> Machine:
        for ignore in self.model.ignores:
            self._terminal(SymbolKind.REGEX, ignore.pattern, ignore.span)
        for name in self.names:
            for alternative in self.by_name[name].alternatives:
                for symbol in alternative.symbols:
                    if symbol.kind is not SymbolKind.NONTERMINAL:
                        self._terminal(symbol.kind, symbol.value, symbol.span)
        automaton = self._automaton()
        self._check_regexes_of_types()
        self.syntax = TypeSyntax(self.model)
        tokens = {name: mask for name in self.names if (mask := self._token_mask(name, set()))}
        productions = self._productions(tokens)
        machine = Machine(
            names=self.names,
            productions=productions,
            start=self.numbers[self.start],
            terms=self.terms,
            syntax=self.syntax,
            automaton=automaton,
            terminals=tuple(value for _, value in self.terminals),
            terminal_is_literal=tuple(kind is SymbolKind.LITERAL for kind, _ in self.terminals),
            ignore_mask=self._ignore_mask(once=None),
            ignore_once_mask=self._ignore_mask(once=True),
        )
        for given in self.model.given:
            machine.initial = machine.initial.bind(*self._given(given, machine))
        machine.initial = machine.initial.open_scope()
        self._bottom_up(machine)
        self._corners(machine)
        self._observers(machine)
        return machine

    def _given(self, given: Given, machine: Machine) -> tuple[str, Term]:
        """A name that is in scope from the start, as Γ keeps it, with its type or scheme."""
        space, name = split_name(given.name)
        if space not in self.spaces:
            space, name = "", given.name
        holes: dict[str, Term] = {}
        try:
            bound = self.syntax.read(
                given.type.written or given.type.text,
                terms=self.terms,
                hole=lambda name: holes.setdefault(name, self.terms.var(len(holes))),
            )
        except TypeReadError as error:
            raise GrammarError(
                f"in the type of {given.name}: {error.message}", given.type.at(error.offset), error.hint
            ) from error
        spelled = machine.automaton.classify(name.encode())
        if machine.name_mask and not spelled & machine.name_mask:
            raise GrammarError(
                f"no terminal for names spells {given.name}, so nothing can refer to it",
                given.span,
                "a reserved word can't be a name in scope",
            )
        return space_prefix(space) + name, self.terms.generalise(bound)

    # Terminals

    def _terminal(self, kind: SymbolKind, value: str, span: Span) -> int:
        key = (kind, value)
        self.spans.setdefault(key, span)
        return self.terminals.setdefault(key, len(self.terminals))

    def _ignore_mask(self, once: bool | None) -> int:
        mask = 0
        for ignore in self.model.ignores:
            if once is None or ignore.once == once:
                mask |= 1 << self.terminals[SymbolKind.REGEX, ignore.pattern]
        return mask

    def _automaton(self) -> LexerAutomaton:
        specs = []
        for (kind, value), span in ((key, self.spans[key]) for key in self.terminals):
            literal = kind is SymbolKind.LITERAL
            regex = literal_regex(value) if literal else read_regex(value, span)
            specs.append(
                TerminalSpec(regex=regex, literal=literal, contextual=literal and value in self.model.contextual)
            )
        literals = {v for (k, v) in self.terminals if k is SymbolKind.LITERAL}
        everywhere = {
            s.value
            for d in self.model.definitions
            for a in d.alternatives
            for s in a.symbols
            if s.kind is SymbolKind.LITERAL
        }
        for word in self.model.contextual:
            if word not in literals | everywhere:
                raise GrammarError(
                    f"%contextual '{word}' names no literal of the grammar",
                    self.model.declared.get(word, Span()),
                    near(word, everywhere) or "name a literal that a production uses",
                )
        try:
            return build(specs)
        except RegexError as error:
            raise GrammarError(f"the terminals together: {error.message}", Span(), error.hint) from error

    def _check_regexes_of_types(self) -> None:
        """The type fragment may hold regexes that no text reaches; they are read when rules are."""
        for name in self.fragment:
            for alternative in self.by_name[name].alternatives:
                for symbol in alternative.symbols:
                    if symbol.kind is SymbolKind.REGEX:
                        read_regex(symbol.value, symbol.span)

    def _token_mask(self, name: str, seen: set[str]) -> int:
        """Terminals that a nonterminal stands for when each alternative is one terminal and nothing else; else 0."""
        definition = self.by_name[name]
        if definition.label is not None or name in seen:
            return 0
        mask = 0
        for alternative in definition.alternatives:
            if len(alternative.symbols) != 1 or alternative.symbols[0].binding is not None:
                return 0
            symbol = alternative.symbols[0]
            if symbol.kind is SymbolKind.NONTERMINAL:
                inner = self._token_mask(symbol.value, seen | {name})
                if not inner:
                    return 0
                mask |= inner
            else:
                mask |= 1 << self.terminals[symbol.kind, symbol.value]
        return mask

    # Productions

    def _productions(self, tokens: dict[str, int]) -> tuple[tuple[Production, ...], ...]:
        index = 0
        result = []
        for name in self.names:
            definition = self.by_name[name]
            built = []
            for alternative in definition.alternatives:
                builder = ProductionBuilder(
                    definition=definition,
                    alternative=alternative,
                    rule=self.rules.get(definition.label or ""),
                    terms=self.terms,
                    syntax=self.syntax,
                    fragment=self.fragment,
                    labels=frozenset(self.rules),
                    child=lambda symbol: self._child(symbol, tokens),
                )
                built.append(builder.build(index, self.numbers[name]))
                index += 1
            result.append(tuple(built))
        return tuple(result)

    def _child(self, symbol: Symbol, tokens: dict[str, int]) -> TokenChild | int:
        """A terminal with its mask, or the number of a nonterminal."""
        if symbol.kind is SymbolKind.NONTERMINAL:
            mask = tokens.get(symbol.value, 0)
            return TokenChild(mask) if mask else self.numbers[symbol.value]
        return TokenChild(1 << self.terminals[symbol.kind, symbol.value])

    # What the parser asks about nonterminals

    def _bottom_up(self, machine: Machine) -> None:
        """Mark the children that are called without a demand."""
        marked = {self.numbers[name] for name in self.model.bottom_up if name in self.numbers}
        for production in (p for group in machine.productions for p in group):
            for position in production.positions:
                position.bottom_up = position.nonterminal in marked

    def _corners(self, machine: Machine) -> None:
        """Left corners without consumption, and which of them are recursive."""
        empty = {self.numbers[name] for name in self.empty if name in self.numbers}
        corners: list[set[int]] = [set() for _ in self.names]
        upward: list[list[tuple[Production, int]]] = [[] for _ in self.names]
        for production in (p for group in machine.productions for p in group):
            for i, position in enumerate(production.positions):
                position.zero_prefix = True
                if position.nonterminal < 0:
                    break
                corners[production.nonterminal].add(position.nonterminal)
                upward[position.nonterminal].append((production, i))
                if position.nonterminal not in empty:
                    break
        closure = [_closure(corners, n) for n in range(len(self.names))]
        for production in (p for group in machine.productions for p in group):
            for position in production.positions:
                if position.zero_prefix and position.nonterminal >= 0:
                    position.recursive = production.nonterminal in closure[position.nonterminal]
        machine.corners = tuple(frozenset(found) for found in closure)
        machine.upward = tuple(tuple(edges) for edges in upward)
        lifted = [{p.nonterminal for p, i in edges if p.positions[i].slot == RESULT} for edges in upward]
        machine.lifts = tuple(frozenset(_closure(lifted, n)) for n in range(len(self.names)))

    def _observers(self, machine: Machine) -> None:
        """Which nonterminals read Γ."""
        sensitive = [False] * len(self.names)
        changed = True
        while changed:
            changed = False
            for production in (p for group in machine.productions for p in group):
                below = any(p.nonterminal >= 0 and sensitive[p.nonterminal] for p in production.positions)
                own = bool(production.conditions or production.entry_lookups) or any(
                    p.member or p.fresh or p.lookups for p in production.positions
                )
                # … and one that generalises asks which holes Γ has.
                own = own or any(binding.generalises for binding in production.effects)
                if (below or own) and not production.sensitive:
                    production.sensitive = True
                    sensitive[production.nonterminal] = True
                    changed = True
        machine.sensitive = tuple(sensitive)
        machine.reads = _read_below(machine)
        machine.nullable = tuple(name in self.empty for name in self.names)
        self._check_values(machine)

    def _check_values(self, machine: Machine) -> None:
        """Refuse premises that demand a type of what never has one. Raises `GrammarError`."""
        valued = [False] * len(self.names)
        changed = True
        while changed:
            changed = False
            for production in (p for group in machine.productions for p in group):
                passed = [p.nonterminal for p in production.positions if p.nonterminal >= 0 and p.slot == RESULT]
                own = production.template[RESULT] is not self.terms.top
                if production.composes and passed:
                    own = any(valued[child] for child in passed)
                if own and not valued[production.nonterminal]:
                    valued[production.nonterminal] = True
                    changed = True
        for production in (p for group in machine.productions for p in group):
            for position in production.positions:
                for premise in position.premises:
                    if not isinstance(premise, Judgement) or premise.type.is_top or position.nonterminal < 0:
                        continue
                    if not valued[position.nonterminal] and position.shape is not None and position.shape.index < 0:
                        raise GrammarError(
                            f"rule {production.label} can never hold: {premise.child} is never valued (⊤)",
                            premise.span,
                            f"demand ⊤ of it, or give {self.names[position.nonterminal]} a rule that concludes a type",
                        )


def _closure(edges: list[set[int]], start: int) -> set[int]:
    """Nodes reached in one or more steps, and the node itself."""
    found, stack = {start}, [start]
    while stack:
        for node in edges[stack.pop()]:
            if node not in found:
                found.add(node)
                stack.append(node)
    return found


def _read_below(machine: Machine) -> tuple[frozenset[str], ...]:
    """For each nonterminal, the ambient keys that its productions ask for, and those below it."""
    own: list[set[str]] = []
    below: list[set[int]] = []
    for group in machine.productions:
        own.append({key for p in group for key in (*p.conditions, *(lookup.name for lookup in p.entry_lookups))})
        below.append({at.nonterminal for p in group for at in p.positions if at.nonterminal >= 0})
    numbers = range(len(own))
    return tuple(frozenset[str]().union(*(own[n] for n in _closure(below, number))) for number in numbers)


def read_regex(pattern: str, span: Span) -> Regex:
    """Parse a terminal's pattern; refuse those that match nothing or the empty text. Raises `GrammarError`."""
    try:
        regex = parse_regex(pattern)
    except RegexError as error:
        raise GrammarError(
            f"in the regex /{pattern}/: {error.message}",
            Span(span.line, span.column + 1 + error.offset),
            error.hint,
        ) from error
    if regex_nullable(regex):
        raise GrammarError(
            f"the regex /{pattern}/ matches the empty text",
            span,
            "a terminal must consume something; make the position optional with an ε alternative instead",
        )
    if is_empty(regex):
        raise GrammarError(f"the regex /{pattern}/ matches nothing", span, "no text can ever be this terminal")
    return regex
