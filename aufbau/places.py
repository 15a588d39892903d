"""Places and spots: what can follow a lexeme, apart from the text before it, and where that is reached.

A set after a lexeme consists of the few items that go on (a *kernel*) and of what the calls that they make predict.
Neither depends on what is still open before, nor, until a name is judged, on more of Γ than ambient types that are read
below and which holes its types have. So a kernel and each of its calls are built *cut off*: the calls they belong to
have no callers, and a *stand-in* without names takes the part of each Γ. The result is a *place*, the same wherever it
is reached, in this text or another. A *spot* is a place with the callers that it stands for, each in the spot (in the
end, a set of the text) where it waits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, final

from aufbau.earley.chart import Answer, Item, ItemSet, Record
from aufbau.earley.machine import NO_SLOT, Machine
from aufbau.named import Names, endless
from aufbau.typesystem.context import SHADOWED, Context
from aufbau.typesystem.terms import Terms, variables

_Key = tuple[object, ...]
_NONE: Final[dict[Any, Any]] = {}  # shared by the many places that judge nothing
_PLACE: Final = 8  # what a place weighs beside its items, in items
TEXT: Final = 0  # the level of the sets of the text


@final
class Place:
    """A part of a set as masks see it: what it takes unseen, what it judges, whom it calls, and what follows."""

    __slots__ = (
        "alive",
        "asked",
        "called",
        "calls",
        "endless",
        "follows",
        "free",
        "gone",
        "judging",
        "mask",
        "named",
        "nulls",
        "outside",
        "plain",
        "plain_mask",
        "queries",
        "root",
        "steps",
        "total",
        "used",
    )

    def __init__(self, items: ItemSet, outside: Mapping[Record, int], calls: list[Record], root: Record | None) -> None:
        self.outside = outside  # the calls whose callers are unknown here, numbered
        self.calls = calls  # that its items make
        self.called: Place | None = None  # what those calls begin with, once someone asks
        self.nulls: list[tuple[Record, Answer]] = []  # what those calls are answered at once
        self.follows: dict[Record, tuple[int, tuple[Record, ...]]] = {}  # what can come after a call
        self.root = root  # the call of the start symbol; None: cut off
        self.total = items.total + _PLACE
        self.used = 0  # when it was reached last
        self.gone = False  # whether it has been forgotten
        self.free = items.free_mask
        self.mask = items.mask
        self.plain: list[tuple[int, Item]] = []  # they take any text, and forget it
        self.judging: dict[int, list[Item]] = {}
        self.plain_mask = 0
        for mask, expecting in items.expected.items():
            for item in expecting:
                position = item.production.positions[item.dot]
                if position.slot == NO_SLOT and not (position.member or position.fresh or position.lookups):
                    self.plain.append((mask, item))
                    self.plain_mask |= mask
                else:
                    self.judging.setdefault(mask, []).append(item)
        self.steps: dict[object, Step | None] = {}  # by what was scanned or answered
        self.alive: dict[_Key, bool] = {}  # whether a lexeme can follow a step, where callers make no difference
        # For each mask of terminals: calls that have the Γs which the judging items have; what those ask Γ.
        self.asked: Mapping[int, list[Record]] = _NONE
        self.queries: Mapping[int, list[tuple[Record, str]] | None] = _NONE
        self.endless: Collection[int] = ()  # masks whose texts can't be listed
        self.named: dict[_Key, Names] = _NONE  # what is taken for a mask of terminals, by Γ
        if self.judging:
            self.asked = {
                mask: list({item.record.context: item.record for item in items}.values())
                for mask, items in self.judging.items()
            }
            self.queries = {mask: _queries(items) for mask, items in self.judging.items()}
            self.endless = {mask for mask, items in self.judging.items() if any(map(endless, items))}
            self.named = {}

    @staticmethod
    def blank() -> Place:
        """One of nothing, which a snapshot fills; so no attribute is final, or a compiled one could not be set."""
        return Place(ItemSet([], {}, [], 0, 0), {}, [], None)

    def forget_gone(self) -> None:
        """Drop the steps to places that have been forgotten."""
        for key in [key for key, step in self.steps.items() if step is not None and step.place and step.place.gone]:
            del self.steps[key]
        self.alive.clear()  # its keys name places


@final
class Step:
    """What a scan or an answer leads to, in terms of the place where it happens."""

    __slots__ = ("complete", "place", "records", "returned")

    def __init__(
        self, place: Place | None, records: tuple[Record, ...], returned: list[tuple[Record, Answer]], complete: bool
    ) -> None:
        self.place: Final = place  # of the items that go on
        self.records: Final = records  # the calls that are outside of it
        self.returned: Final = returned  # answers to calls that are outside here
        self.complete: Final = complete  # whether the start symbol is


@final
class Spot:
    """A place where it is reached. `level` counts the spots between it and the text."""

    __slots__ = ("actual", "after", "alive", "before", "calls", "level", "names", "place")

    def __init__(self, place: Place, before: Spot | None, calls: Sequence[Record]) -> None:
        self.place: Final = place
        self.before: Final = before  # the spot that this one was reached from; None: the text
        self.calls: Final = calls  # there, for those that are outside of the place
        self.level: Final[int] = TEXT if before is None else before.level + 1
        self.actual: dict[Record, Record] = {}  # calls with their Γ instead of a stand-in
        # The spots after a step where some terminals are wanted next, and what that touched.
        self.after: dict[tuple[Step, int], tuple[list[Spot], int]] = {}
        self.alive: dict[_Key, tuple[bool, int]] = {}  # whether there is a spot after a step, and what that touched
        self.names: dict[int, Names] = {}  # what is taken for a mask of terminals

    def caller(self, outside: Record) -> tuple[Record, Spot]:
        """Where they wait who made a call that is outside of the place."""
        spot, record = self, outside
        while True:
            assert spot.before is not None, "nothing is outside of the text"
            record, spot = spot.calls[spot.place.outside[record]], spot.before
            if record.waiters or record not in spot.place.outside:
                return record, spot


def _queries(items: list[Item]) -> list[tuple[Record, str]] | None:
    """What items ask Γ about a name: calls that have the Γ, and name spaces. None where an item has a Γ of its own."""
    found: dict[tuple[Context, str], tuple[Record, str]] = {}
    for item in items:
        position, gamma = item.production.positions[item.dot], item.record.context
        prefixes = [lookup.prefix for lookup in position.lookups]
        if position.member:
            prefixes.append(position.member_prefix)
        if position.fresh:
            prefixes.append(position.fresh_prefix)
        if prefixes and (gamma is None or not gamma.ground or item.effect is not None):
            return None
        if gamma is not None:
            for prefix in prefixes:
                found[gamma, prefix] = (item.record, prefix)
    return list(found.values())


@final
class StandIns:
    """What stands in for the Γs of calls: without names, and of the ambient part what is read below the calls."""

    def __init__(self, machine: Machine, terms: Terms) -> None:
        self.known: Final[dict[_Key, Context]] = {}
        self._machine: Final = machine
        self._terms: Final = terms

    def of(self, records: Iterable[Record]) -> dict[Context | None, Context]:
        """The stand-in for each Γ of some calls."""
        reads: dict[Context, frozenset[str]] = {}
        for record in records:
            if record.context is not None:
                below = self._machine.reads[record.nonterminal]
                known = reads.get(record.context)
                reads[record.context] = below if known is None else known | below
        return {gamma: self._found(gamma, number, reads[gamma]) for number, gamma in enumerate(reads)}

    def _found(self, gamma: Context, number: int, reads: frozenset[str]) -> Context:
        """A Γ that is told from others by a number.

        Before a name is read, a closed set sees of its Γ only ambient types and which holes the types of names have.
        """
        ambient = gamma.base.ambient
        holes = tuple(variables([bound for _, bound in gamma.opened]))
        key = number, frozenset([(name, ambient[name]) for name in reads if name in ambient]), gamma.keys, holes
        found = self.known.get(key)
        if found is None:
            found = Context.empty()
            for name, bound in ambient.items():
                if name in reads:
                    found = found.bind_ambient(name, bound)
            for name, bound in gamma.keys:
                found = found.bind_ambient(name, bound)
            if holes:
                held = self._terms.con("", tuple([self._terms.var(hole) for hole in holes]))
                found = found.bind_outside(SHADOWED, held)
            self.known[key] = found
        return found


def detached(record: Record, stand_ins: Mapping[Context | None, Context]) -> Record:
    """A call without callers and with a stand-in for its Γ."""
    gamma = None if record.context is None else stand_ins[record.context]
    return Record(record.nonterminal, gamma, record.demand, record.filter, record.holes)
