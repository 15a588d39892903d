"""Compiles one production with its rule into slots: all that can be unified at load time is unified here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from aufbau.earley.machine import NO_SLOT, Binding, Lookup, Position, Production
from aufbau.errors import GrammarError, Span
from aufbau.grammar.analysis import near
from aufbau.grammar.model import (
    Alternative,
    AmbientMembership,
    Definition,
    Equality,
    Extension,
    Judgement,
    Membership,
    Premise,
    Rule,
    Symbol,
    SymbolKind,
    TypeText,
    space_prefix,
    split_name,
)
from aufbau.typesystem.syntax import LOOKUP, TypeReadError, TypeSyntax, type_production
from aufbau.typesystem.terms import Term, Terms
from aufbau.typesystem.unify import Substitution

_AMBIENT = re.compile(r"(?:Γ|Gamma)\(\s*(?:'([^']*)'|\"([^\"]*)\")\s*\)")


@dataclass(frozen=True, slots=True)
class TokenChild:
    """A child that is one lexeme: the bits of the terminals it may be."""

    mask: int


def _type_texts(rule: Rule) -> Iterator[TypeText]:
    for premise in rule.premises:
        if isinstance(premise, Judgement):
            yield premise.type
            yield from (extension.type for extension in premise.extensions)
        elif isinstance(premise, Equality):
            yield premise.left
            yield premise.right
    yield rule.conclusion.type
    yield from (extension.type for extension in rule.conclusion.effects)


def names_used(rule: Rule) -> Iterator[str]:
    """The names, as written, under which a rule asks or extends Γ."""
    yield from (premise.name for premise in rule.premises if isinstance(premise, Membership))
    yield from names_bound(rule)
    for text in _type_texts(rule):
        for match in LOOKUP.finditer(text.text):
            if match[1][0] not in "'\"":
                yield match[1]


def names_bound(rule: Rule) -> Iterator[str]:
    """The names, as written, with which a rule extends Γ."""
    extensions: list[Extension] = list(rule.conclusion.effects)
    for premise in rule.premises:
        if isinstance(premise, Judgement):
            extensions += premise.extensions
    yield from (extension.name for extension in extensions if not extension.ambient)


def ambient_reads(rule: Rule) -> Iterator[tuple[str, Span]]:
    """Ambient keys that a rule needs, with where it says so."""
    for premise in rule.premises:
        if isinstance(premise, AmbientMembership):
            yield premise.key, premise.span
    for text in _type_texts(rule):
        for match in _AMBIENT.finditer(text.text):
            yield match[1] or match[2], text.span


def ambient_writes(rule: Rule) -> set[str]:
    """Ambient keys that a rule sets for a child or exports."""
    extensions: list[Extension] = list(rule.conclusion.effects)
    for premise in rule.premises:
        if isinstance(premise, Judgement):
            extensions += premise.extensions
    return {extension.name for extension in extensions if extension.ambient}


class ProductionBuilder:
    """Builds one `Production`; used once."""

    def __init__(
        self,
        *,
        definition: Definition,
        alternative: Alternative,
        rule: Rule | None,
        terms: Terms,
        syntax: TypeSyntax,
        fragment: frozenset[str],
        labels: frozenset[str],
        child: Callable[[Symbol], TokenChild | int],
    ) -> None:
        self.definition, self.alternative, self.rule = definition, alternative, rule
        self.terms, self.syntax, self.fragment, self.labels = terms, syntax, fragment, labels
        self.children = [child(symbol) for symbol in alternative.symbols]
        self.solved = Substitution(terms)
        self.next_variable = 0
        self.result = self._variable()
        self.evidence: list[Term | None] = [None] * len(self.children)  # type of a child, or text of a lexeme
        self.where: dict[str, int] = {}
        self.holes: dict[str, Term] = {}
        self.lookups: list[tuple[int, bool, str, Term, Premise | None]] = []
        self.extensions: list[tuple[int, Extension, Term]] = []
        self.effects: list[tuple[Extension, Term]] = []
        self.compared: set[str] = set()  # bindings whose very text an equality compares

    def build(self, index: int, nonterminal: int) -> Production:
        self._bind_children()
        if self.rule is not None:
            self._rule(self.rule)
        else:
            self._plain()
        return self._assemble(index, nonterminal)

    # Evidence

    def _variable(self) -> Term:
        self.next_variable += 1
        return self.terms.var(self.next_variable - 1)

    def _bind_children(self) -> None:
        for i, symbol in enumerate(self.alternative.symbols):
            if symbol.binding is None:
                continue
            if symbol.binding in self.where:
                raise GrammarError(
                    f"{self.definition.name} binds {symbol.binding} twice in one alternative",
                    symbol.span,
                    "give each position its own name",
                )
            self.where[symbol.binding] = i
            self.evidence[i] = self._variable()

    def _plain(self) -> None:
        """A production without a rule: a constructor, a leaf, a pass-through, or a node without value."""
        symbols = self.alternative.symbols
        nonterminals = [i for i, symbol in enumerate(symbols) if symbol.kind is SymbolKind.NONTERMINAL]
        if self.definition.name in self.fragment:
            shape = type_production(self.definition, self.alternative, self.labels)
            args = tuple(self._evidence(i) for i in shape.children)
            if shape.head is not None:
                self._unify(self.result, self.terms.con(shape.head, args))
            elif args:
                self._unify(self.result, args[0])
        elif len(nonterminals) == 1 and not isinstance(self.children[nonterminals[0]], TokenChild):
            self._unify(self.result, self._evidence(nonterminals[0]))
        else:
            self._unify(self.result, self.terms.top)

    def _evidence(self, i: int) -> Term:
        found = self.evidence[i]
        if found is None:
            found = self.evidence[i] = self._variable()
        return found

    def _unify(self, left: Term, right: Term) -> bool:
        return self.solved.unify(left, right)

    # Rules

    def _rule(self, rule: Rule) -> None:
        for premise in rule.premises:
            if isinstance(premise, Judgement):
                self._judgement(rule, premise)
            elif isinstance(premise, Equality):
                left, right = self._type(premise.left, premise), self._type(premise.right, premise)
                self._demand(rule, left, right, premise.span)
            elif isinstance(premise, Membership):
                self._name(rule, premise.name, premise.span)
        conclusion = rule.conclusion
        for extension in conclusion.effects:
            if not extension.ambient:
                self._name(rule, extension.name, extension.span)
            self.effects.append((extension, self._type(extension.type, None)))
        self._demand(rule, self.result, self._type(conclusion.type, None), conclusion.span)

    def _judgement(self, rule: Rule, premise: Judgement) -> None:
        i = self._position(rule, premise.child, premise.span)
        if isinstance(self.children[i], TokenChild):
            raise GrammarError(
                f"rule {rule.name} judges {premise.child}, which is a lexeme without a type",
                premise.span,
                f"look it up with Γ({premise.child}), or give its nonterminal a rule of its own",
            )
        for extension in premise.extensions:
            if not extension.ambient:
                at = self._name(rule, extension.name, extension.span)
                if at > i:
                    raise GrammarError(
                        f"rule {rule.name} puts {extension.name} in scope of {premise.child}, which stands before it",
                        extension.span,
                        "constraints flow from left to right: a name reaches only what follows it",
                    )
            self.extensions.append((i, extension, self._type(extension.type, premise)))
        if not premise.type.is_top:
            self._demand(rule, self._evidence(i), self._type(premise.type, premise), premise.span)

    def _demand(self, rule: Rule, left: Term, right: Term, span: Span) -> None:
        shown = [self.syntax.render(self.solved.resolve(term)) for term in (left, right)]
        if not self._unify(left, right):
            raise GrammarError(
                f"rule {rule.name} can never hold: {shown[0]} is not {shown[1]}", span, "check the types it equates"
            )

    def _position(self, rule: Rule, name: str, span: Span) -> int:
        i = self.where.get(name)
        if i is None:
            raise GrammarError(
                f"rule {rule.name} uses the binding {name}, which this alternative of {self.definition.name} "
                f"(line {self.alternative.span.line}) lacks",
                span,
                near(name, self.where) or f"bind it in every alternative: Symbol[{name}]",
            )
        return i

    def _name(self, rule: Rule, name: str, span: Span) -> int:
        """The position of a binding whose text is used as a name, `x` or `space.x`."""
        if "." in name and not all(name.split(".")):
            raise GrammarError(f"{name} is no name of a name space", span, "write  space.x  or  x")
        name = split_name(name)[1]
        i = self._position(rule, name, span)
        if not isinstance(self.children[i], TokenChild):
            raise GrammarError(
                f"rule {rule.name} uses {name} as a name, but it is not a single lexeme",
                span,
                f"bind a terminal, or a nonterminal whose alternatives are terminals: Name[{name}]",
            )
        return i

    def _type(self, text: TypeText, premise: Premise | None) -> Term:
        if text.is_top:
            return self.terms.top
        at = self.where.get(text.text)
        if at is not None and isinstance(premise, Equality) and self._compares_texts(premise):
            self.compared.add(text.text)
            return self._evidence(at)  # the texts of two lexemes are compared
        rule = self.rule
        assert rule is not None

        def hole(name: str) -> Term:
            if name not in self.holes:
                self.holes[name] = self._variable()
            return self.holes[name]

        def lookup(name: str, ambient: bool) -> Term:
            at = -1 if ambient else self._name(rule, name, text.span)
            for _, known_ambient, known, term, _ in self.lookups:
                if (known_ambient, known) == (ambient, name):
                    return term
            term = self._variable()
            self.lookups.append((at, ambient, name, term, premise))
            return term

        types = {
            name: self._evidence(i)
            for name, i in self.where.items()
            if self.alternative.symbols[i].value in self.fragment
        }
        try:
            return self.syntax.read(
                text.written or text.text, terms=self.terms, hole=hole, lookup=lookup, bindings=types
            )
        except TypeReadError as error:
            raise GrammarError(
                f"in rule {rule.name}: {error.message}",
                text.at(error.offset),
                self._type_hint(text, types) or error.hint,
            ) from error

    def _compares_texts(self, premise: Equality) -> bool:
        """Whether an equality has a lexeme on both sides."""
        sides = [self.where.get(side.text) for side in (premise.left, premise.right)]
        return all(at is not None and isinstance(self.children[at], TokenChild) for at in sides)

    def _type_hint(self, text: TypeText, types: dict[str, Term]) -> str:
        words = re.findall(r"(?<![?\w'])[^\W\d]\w*", text.text)
        for word in words:
            if word in self.where and word not in types:
                return f"{word} is bound, but not to a type; look names up with Γ({word})"
        return near(words[0], types) if words else ""

    # Assembly

    def _assemble(self, index: int, nonterminal: int) -> Production:
        slots: dict[Term, int] = {}
        names: dict[int, int] = {}

        def slot(term: Term) -> int:
            solved = self.terms.rename(self.solved.resolve(term), names)
            return slots.setdefault(solved, len(slots))

        slot(self.result)
        named = {split_name(e.name)[1] for _, e, _ in self.extensions if not e.ambient}
        named |= {split_name(e.name)[1] for e, _ in self.effects if not e.ambient}
        child_slots = []
        for i in range(len(self.children)):
            term, symbol = self.evidence[i], self.alternative.symbols[i]
            typed = term is not None and (
                not isinstance(self.children[i], TokenChild)
                or symbol.binding in named | self.compared
                or self.rule is None
                or symbol.value in self.fragment
            )
            child_slots.append(slot(term) if typed and term is not None else NO_SLOT)
        lookups = [
            (at, Lookup(ambient=a, name=n, prefix=_prefix(n, a), slot=slot(t), premise=p))
            for at, a, n, t, p in self.lookups
        ]
        for extension, term in (*((e, t) for _, e, t in self.extensions), *self.effects):
            if extension.generalises and self.solved.resolve(term).ground:
                raise GrammarError(
                    f"∀ has nothing to generalise: the type of {extension.name} has no hole",
                    extension.span,
                    f"write [{extension.name}:{extension.type.text}]",
                )
        extensions = [(i, self._binding(e, slot(t), child_slots)) for i, e, t in self.extensions]
        effects = [self._binding(e, slot(t), child_slots) for e, t in self.effects]
        template = tuple(slots)
        production = Production(
            index=index,
            nonterminal=nonterminal,
            name=self.definition.name,
            label=self.definition.label,
            positions=tuple(self._positions(child_slots, template)),
            template=template,
        )
        production.composes = self.rule is None
        production.keeps = self.rule is None or self.rule.conclusion.keeps
        production.effects = effects
        for at, found in lookups:
            (production.entry_lookups if at < 0 else production.positions[at].lookups).append(found)
        for i, binding in extensions:
            production.positions[i].extensions.append(binding)
        self._attach_premises(production)
        return production

    def _binding(self, extension: Extension, type_slot: int, child_slots: list[int]) -> Binding:
        name_slot = NO_SLOT if extension.ambient else child_slots[self.where[split_name(extension.name)[1]]]
        return Binding(
            ambient=extension.ambient,
            key=extension.name,
            prefix=_prefix(extension.name, extension.ambient),
            name_slot=name_slot,
            type_slot=type_slot,
            generalises=extension.generalises,
        )

    def _positions(self, child_slots: list[int], template: tuple[Term, ...]) -> Iterator[Position]:
        for symbol, child, slot in zip(self.alternative.symbols, self.children, child_slots, strict=True):
            terminal = isinstance(child, TokenChild)
            yield Position(
                nonterminal=-1 if isinstance(child, TokenChild) else child,
                mask=child.mask if isinstance(child, TokenChild) else 0,
                slot=slot,
                binding=symbol.binding,
                symbol=symbol.value,
                shape=None if terminal or slot < 0 else self.terms.rename(template[slot], {}),
            )

    def _attach_premises(self, production: Production) -> None:
        if self.rule is None:
            return
        for premise in self.rule.premises:
            if isinstance(premise, AmbientMembership):
                production.conditions.append(premise.key)
            elif isinstance(premise, Membership):
                space, binding = split_name(premise.name)
                position = production.positions[self.where[binding]]
                if position.fresh if premise.fresh else position.member:
                    raise GrammarError(
                        f"rule {self.rule.name} asks Γ twice about {binding}",
                        premise.span,
                        "a lexeme is looked for in one name space and scope; split the production if both matter",
                    )
                position.premises.append(premise)
                if premise.fresh:
                    position.fresh, position.fresh_inside = True, premise.innermost
                    position.fresh_prefix = space_prefix(space)
                else:
                    position.member, position.member_prefix = True, space_prefix(space)
            elif isinstance(premise, Judgement):
                position = production.positions[self.where[premise.child]]
                if any(isinstance(other, Judgement) for other in position.premises):
                    raise GrammarError(
                        f"rule {self.rule.name} judges {premise.child} twice",
                        premise.span,
                        "say all of it in one premise; types are compared by an equality  τ = σ",
                    )
                position.premises.append(premise)
                position.opens = position.opens or premise.opens
                position.initial = position.initial or premise.initial


def _prefix(name: str, ambient: bool) -> str:
    return "" if ambient else space_prefix(split_name(name)[0])
