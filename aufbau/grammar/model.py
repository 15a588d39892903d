"""The grammar as data: frozen, comparable, without behaviour (paper, Definition 2.1).

Spans do not take part in comparison, so a grammar equals its own rendering read back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from aufbau.errors import Span


class SymbolKind(Enum):
    """What a symbol of an alternative is."""

    NONTERMINAL = "nonterminal"  # a name defined by the grammar
    LITERAL = "literal"  # exactly this text
    REGEX = "regex"  # any text of a regular language


@dataclass(frozen=True, kw_only=True, slots=True)
class Symbol:
    """One position of an alternative, with the binding that names its evidence, if any."""

    kind: SymbolKind
    value: str  # nonterminal name, literal text, or pattern source
    binding: str | None = None
    span: Span = field(default=Span(), compare=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Alternative:
    """A right-hand side; no symbols means ε."""

    symbols: tuple[Symbol, ...]
    span: Span = field(default=Span(), compare=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Definition:
    """`Name(label)* ::= alternatives`."""

    name: str
    label: str | None = None
    starred: bool = False
    alternatives: tuple[Alternative, ...]
    span: Span = field(default=Span(), compare=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class TypeText:
    """A type as a rule writes it, white space normalised; ⊤ is the text "⊤"."""

    text: str
    written: str = field(default="", compare=False)  # as it stands in the file
    places: tuple[Span, ...] = field(default=(), compare=False, repr=False)  # of each character of `written`

    @property
    def span(self) -> Span:
        """Where the type begins."""
        return self.at(0)

    def at(self, offset: int) -> Span:
        """The place of a character of `written`."""
        if offset < len(self.places):
            return self.places[offset]
        return Span(self.places[-1].line, self.places[-1].column + 1) if self.places else Span()

    @property
    def is_top(self) -> bool:
        """Whether this is ⊤: checked, not valued."""
        return self.text == "⊤"


def split_name(name: str) -> tuple[str, str]:
    """The name space (none: "") and the binding of `x` or `space.x`."""
    space, _, binding = name.rpartition(".")
    return space, binding


def space_prefix(space: str) -> str:
    """What stands before a name's text in Γ; no lexeme begins with it, so name spaces can't meet."""
    return f"\0{space}\0" if space else ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Extension:
    """`[x:τ]` (a program name) or `['key':τ]` (an ambient key); `[x:∀τ]` generalises τ."""

    name: str
    ambient: bool
    type: TypeText
    generalises: bool = False
    span: Span = field(default=Span(), compare=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Membership:
    """`x ∈ Γ`, or `x ∉ Γ` when `fresh`; `x ∉ Γ[]` asks the innermost scope only."""

    name: str
    fresh: bool
    innermost: bool = False
    span: Span = field(default=Span(), compare=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class AmbientMembership:
    """`'key' ∈ Γ`."""

    key: str
    span: Span = field(default=Span(), compare=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """`Γ[x:τ]… ⊢ child : type`; `Γ[] ⊢ …` opens a scope; `Γ₀ ⊢ …` leaves out what left siblings exported."""

    child: str
    type: TypeText
    extensions: tuple[Extension, ...] = ()
    opens: bool = False
    initial: bool = False
    span: Span = field(default=Span(), compare=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Equality:
    """`left = right`, either of which may look a name up: `Γ(f) = ?P => ?R`."""

    left: TypeText
    right: TypeText
    span: Span = field(default=Span(), compare=False)


Premise = Membership | AmbientMembership | Judgement | Equality


@dataclass(frozen=True, kw_only=True, slots=True)
class Conclusion:
    """A type, or `Γ → Γ[x:τ]… ⊢ type` when `effects` is not empty; `Γ → Γ'… ⊢ type` keeps the children's effects."""

    type: TypeText
    effects: tuple[Extension, ...] = ()
    keeps: bool = False
    span: Span = field(default=Span(), compare=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """An inference rule, attached to the definitions that carry its name as label."""

    name: str
    premises: tuple[Premise, ...]
    conclusion: Conclusion
    span: Span = field(default=Span(), compare=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """A name that is in scope from the start; the holes of its type are universally quantified."""

    name: str
    type: TypeText
    span: Span = field(default=Span(), compare=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ignore:
    """Text between lexemes; with `once`, at most one such lexeme between two others."""

    pattern: str
    once: bool = False
    span: Span = field(default=Span(), compare=False)


DEFAULT_IGNORES = (Ignore(pattern=r"[ \t\r\n]+"),)


@dataclass(frozen=True, kw_only=True, slots=True)
class GrammarModel:
    """Everything that an `.auf` file says."""

    definitions: tuple[Definition, ...]
    rules: tuple[Rule, ...] = ()
    start: str
    roots: tuple[str, ...] = ()  # further symbols that `Oracle.start` may begin at
    ambient: tuple[str, ...] = ()  # ambient keys that the caller sets
    ignores: tuple[Ignore, ...] = DEFAULT_IGNORES
    contextual: tuple[str, ...] = ()
    given: tuple[Given, ...] = ()
    bottom_up: tuple[str, ...] = ()  # nonterminals that are called without a demand
    # Where starts and contextual words are declared, by name.
    declared: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)
    source_name: str = field(default="", compare=False)
