"""A grammar compiled for one start symbol: productions over slots, and what the parser asks about nonterminals.

A production's rule is a straight-line program over *slots*. Every premise and the conclusion are unified once, when
the grammar is loaded; the solved terms are the slots' templates. At run time slots only meet the demand, the types of
finished children, the texts of bound lexemes and what Γ says of a name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from aufbau.grammar.model import Premise
from aufbau.lexer.automaton import LexerAutomaton
from aufbau.typesystem.context import Context
from aufbau.typesystem.syntax import TypeSyntax
from aufbau.typesystem.terms import Term, Terms

RESULT: Final = 0  # the slot of a node's own type
NO_SLOT: Final = -1


@final
class Lookup:
    """Γ(x) or Γ('key'), unified with a slot once the name is known."""

    __slots__ = ("ambient", "name", "prefix", "premise", "slot")

    def __init__(self, *, ambient: bool, name: str, prefix: str, slot: int, premise: Premise | None) -> None:
        self.ambient: Final = ambient
        self.name: Final = name  # the key, or the binding
        self.prefix: Final = prefix  # of the name space
        self.slot: Final = slot
        self.premise: Final = premise  # None: it is the conclusion


@final
class Binding:
    """An entry that extends Γ: a name read from a slot, or an ambient key, with the slot of its type."""

    __slots__ = ("ambient", "generalises", "key", "name_slot", "prefix", "type_slot")

    def __init__(
        self, *, ambient: bool, key: str, prefix: str, name_slot: int, type_slot: int, generalises: bool
    ) -> None:
        self.ambient: Final = ambient
        self.key: Final = key
        self.prefix: Final = prefix  # of the name space
        self.name_slot: Final = name_slot
        self.type_slot: Final = type_slot
        self.generalises: Final = generalises  # written with ∀


@final
class Position:
    """One symbol of a production, with what its rule asks and does there."""

    __slots__ = (
        "binding",
        "bottom_up",
        "extensions",
        "fresh",
        "fresh_inside",
        "fresh_prefix",
        "initial",
        "lookups",
        "mask",
        "member",
        "member_prefix",
        "nonterminal",
        "opens",
        "premises",
        "recursive",
        "shape",
        "slot",
        "symbol",
        "zero_prefix",
    )

    def __init__(
        self, *, nonterminal: int, mask: int, slot: int, binding: str | None, symbol: str, shape: Term | None
    ) -> None:
        self.nonterminal: Final = nonterminal  # number, or -1 for a terminal
        self.mask: Final = mask  # bits of the terminals that are admitted
        self.slot: Final = slot  # of the child's type, or of the lexeme's text
        self.binding: Final = binding
        self.symbol: Final = symbol  # as the grammar names it
        self.shape: Final = shape  # the slot's template, variables renumbered
        self.bottom_up = False  # the child is called without a demand; its answers are checked when they return
        self.member = False  # x ∈ Γ
        self.fresh = False  # x ∉ Γ
        self.fresh_inside = False  # x ∉ Γ[]: only the innermost scope is asked
        self.member_prefix = ""  # of the name spaces
        self.fresh_prefix = ""
        self.initial = False  # Γ₀ ⊢ …: what left siblings exported is not in scope
        self.opens = False  # Γ[] ⊢ …: the child has a scope of its own
        self.lookups: list[Lookup] = []
        self.extensions: list[Binding] = []
        self.premises: list[Premise] = []  # for explanations
        self.zero_prefix = False  # all that stands before is nullable
        self.recursive = False  # a left corner of itself, without consumption


@final
class Production:
    """An alternative, ready to run."""

    __slots__ = (
        "composes",
        "conditions",
        "effects",
        "entry_lookups",
        "index",
        "keeps",
        "label",
        "name",
        "nonterminal",
        "positions",
        "sensitive",
        "template",
    )

    def __init__(
        self,
        *,
        index: int,
        nonterminal: int,
        name: str,
        label: str | None,
        positions: tuple[Position, ...],
        template: tuple[Term, ...],
    ) -> None:
        self.index: Final = index
        self.nonterminal: Final = nonterminal
        self.name: Final = name
        self.label: Final = label
        self.positions: Final = positions
        self.template: Final = template
        self.conditions: list[str] = []  # ambient keys that must be set
        self.entry_lookups: list[Lookup] = []  # ambient look-ups, done at prediction
        self.effects: list[Binding] = []
        self.composes = label is None  # a node without a rule exports what its children export
        self.keeps = self.composes  # … and so does one whose conclusion says Γ'
        self.sensitive = False  # reads or extends Γ, itself or below


@final
class Machine:
    """Everything the parser needs for one start symbol; immutable once built."""

    __slots__ = (
        "automaton",
        "corners",
        "ignore_mask",
        "ignore_once_mask",
        "initial",
        "lifts",
        "name_mask",
        "names",
        "nullable",
        "productions",
        "reads",
        "sensitive",
        "start",
        "syntax",
        "terminal_is_literal",
        "terminals",
        "terms",
        "upward",
    )

    def __init__(
        self,
        *,
        names: tuple[str, ...],
        productions: tuple[tuple[Production, ...], ...],
        start: int,
        terms: Terms,
        syntax: TypeSyntax,
        automaton: LexerAutomaton,
        terminals: tuple[str, ...],
        terminal_is_literal: tuple[bool, ...],
        ignore_mask: int,
        ignore_once_mask: int,
    ) -> None:
        self.names: Final = names
        self.productions: Final = productions
        self.start: Final = start
        self.terms: Final = terms
        self.syntax: Final = syntax
        self.automaton: Final = automaton
        self.terminals: Final = terminals
        self.terminal_is_literal: Final = terminal_is_literal
        self.ignore_mask: Final = ignore_mask
        self.ignore_once_mask: Final = ignore_once_mask
        # Terminals of which some rule asks Γ.
        self.name_mask: int = _union(
            position.mask
            for group in productions
            for production in group
            for position in production.positions
            if position.member or position.fresh or position.lookups
        )
        self.initial = Context.empty()  # Γ at the start: what the grammar gives, in an outer scope
        self.sensitive: tuple[bool, ...] = ()
        # For each nonterminal, whether it can be empty, as far as productions alone decide.
        self.nullable: tuple[bool, ...] = ()
        # For each nonterminal, the ambient keys that it or something below it reads.
        self.reads: tuple[frozenset[str], ...] = ()
        # For each nonterminal, its left corners, itself included.
        self.corners: tuple[frozenset[int], ...] = ()
        # For each nonterminal, the productions and positions whose left corner it is.
        self.upward: tuple[tuple[tuple[Production, int], ...], ...] = ()
        # For each nonterminal, those that it can be the left corner of without its type being changed; itself too.
        self.lifts: tuple[frozenset[int], ...] = ()


def _union(masks: Iterable[int]) -> int:
    found = 0
    for mask in masks:
        found |= mask
    return found
