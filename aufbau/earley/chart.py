"""Calls, items, answers and sets: the data of the chart.

A *call* (here `Record`) is a nonterminal with Γ and a demanded type in canonical form, so equal calls in one set are
shared. A completed call yields *answers*: a type, values for the call's own holes, an effect. Sets never change once
closed, and nothing in them refers to later sets, so prefixes share them freely and drop what they leave.
"""

from __future__ import annotations

from typing import Final, final

from aufbau.earley.machine import Production
from aufbau.typesystem.context import Context, Effect
from aufbau.typesystem.terms import Term

Slots = tuple[Term, ...]


@final
class Filter:
    """What a demand that is weakened, or still open, knows of the types that can meet it. Hash-consed by the arena.

    * Without `through`: types at nonterminal `at` that can grow into what the anchor demands. The set is the least
      solution of the left recursion (D, ?→D, ?→?→D, …) and is never written out: membership of a candidate is decided
      upwards (`aufbau.earley.demand`).
    * With `through` = (result, part): types T for which the result, with the part made T, passes `beyond`; so what a
      parent's filter says reaches a child below a constructor (the body of a lambda).
    """

    __slots__ = ("anchor", "at", "beyond", "demand", "depth", "known", "through")

    def __init__(
        self,
        at: int,
        anchor: int,
        demand: Term | None,
        beyond: Filter | None,
        through: tuple[Term, Term] | None,
    ) -> None:
        self.at: Final = at
        self.anchor: Final = anchor
        self.demand: Final = demand
        self.beyond: Final = beyond
        self.through: Final = through
        self.depth: Final[int] = 1 + (beyond.depth if beyond is not None else 0)
        self.known: dict[Term, bool] = {}


@final
class Record:
    """A call in one set, with the items that wait for it."""

    __slots__ = ("context", "demand", "filter", "holes", "nonterminal", "nulls", "open", "waiters")

    def __init__(
        self, nonterminal: int, context: Context | None, demand: Term | None, sieve: Filter | None, holes: int
    ) -> None:
        self.nonterminal: Final = nonterminal
        self.context: Final = context  # None: nothing below reads Γ
        self.demand: Final = demand
        self.filter: Final = sieve
        self.holes: Final = holes  # variables 0 … holes-1 of demand and Γ
        self.open: Final = context is not None and not context.ground
        self.waiters: tuple[Waiter, ...] = ()  # most calls have few
        self.nulls: tuple[Answer, ...] = ()  # answers that consumed nothing


@final
class Lexeme:
    """A finished lexeme of the text."""

    __slots__ = ("end", "start", "text")

    def __init__(self, text: str, start: int, end: int) -> None:
        self.text: Final = text
        self.start: Final = start  # byte offsets
        self.end: Final = end


@final
class Item:
    """A production with a dot; `slots` are the record's holes followed by the production's own slots."""

    __slots__ = ("child", "dot", "effect", "previous", "production", "record", "slots")

    def __init__(
        self,
        production: Production,
        dot: int,
        record: Record,
        slots: Slots,
        effect: Effect | None,
        previous: Item | None,
        child: Answer | Lexeme | None,
    ) -> None:
        self.production: Final = production
        self.dot: Final = dot
        self.record: Final = record
        self.slots: Final = slots
        self.effect: Final = effect  # what the finished children exported
        self.previous: Final = previous  # with `child`, the derivation that came first
        self.child: Final = child


@final
class Waiter:
    """An item that waits for a call, and how the call's holes map to its own variables (None when Γ is closed)."""

    __slots__ = ("item", "mapping")

    def __init__(self, item: Item, mapping: tuple[Term | None, ...] | None) -> None:
        self.item: Final = item
        self.mapping: Final = mapping


@final
class Answer:
    """A finished call: type, values of its holes, effect, all canonical; `item` is its derivation."""

    __slots__ = ("effect", "item", "type", "values")

    def __init__(self, bound: Term, values: Slots, effect: Effect | None, item: Item) -> None:
        self.type: Final = bound
        self.values: Final = values
        self.effect: Final = effect
        self.item: Final = item


@final
class ItemSet:
    """A closed Earley set: what may come next and what is complete."""

    __slots__ = ("expected", "free_mask", "kernel", "mask", "roots", "total", "viable")

    def __init__(
        self,
        kernel: list[Item],
        expected: dict[int, list[Item]],
        roots: list[Answer],
        free_mask: int,
        total: int,
    ) -> None:
        self.kernel: Final = kernel
        self.expected: Final = expected  # mask of terminals -> items before them
        self.roots: Final = roots  # answers of the start symbol that end here
        self.free_mask: Final = free_mask  # terminals that some item takes whatever their text
        mask = 0
        for bits in expected:
            mask |= bits
        self.mask: Final = mask
        self.total: Final = total  # items of this set and all before it
        self.viable: bool | None = None  # whether any lexeme can follow; None: not yet asked


@final
class Prediction:
    """A production that can meet a call's demand, with its slots and, for a first child, what is asked of it."""

    __slots__ = ("demand", "holes", "production", "sieve", "slots")

    def __init__(self, production: Production, slots: Slots) -> None:
        self.production: Final = production
        self.slots: Final = slots
        self.demand: Term | None = None
        self.sieve: Filter | None = None
        self.holes = 0


# What decides the predictions of a call: nonterminal, demand, filter and number of holes, but not Γ.
PlanKey = tuple[int, Term | None, Filter | None, int]
Plan = tuple[Prediction, ...]
