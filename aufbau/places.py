"""Places and spots: what can follow a lexeme, apart from the text before it, and where that is reached.

A set after a lexeme consists of the few items that go on (a *kernel*) and of what the calls that they make predict.
Neither depends on what is still open before, nor, until a name is judged, on more of Γ than its ambient part. So a
kernel and each of its calls are built *cut off*: the calls they belong to have no callers, and a *stand-in* without
names takes the part of each Γ. The result is a *place*, the same wherever it is reached, in this text or another. A
*spot* is a place with the callers that it stands for, each in the spot (in the end, a set of the text) where it waits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, final

from aufbau.earley.chart import Answer, Item, ItemSet, Record
from aufbau.earley.machine import NO_SLOT
from aufbau.named import Names, endless
from aufbau.typesystem.context import Context

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
        self.outside: Final = outside  # the calls whose callers are unknown here, numbered
        self.calls: Final = calls  # that its items make
        self.called: Place | None = None  # what those calls begin with
        self.nulls: list[tuple[Record, Answer]] = []  # what those calls are answered at once
        self.root: Final = root  # the call of the start symbol; None: cut off
        self.total: Final = items.total + _PLACE
        self.used = 0  # when it was reached last
        self.gone = False  # whether it has been forgotten
        self.free: Final = items.free_mask
        self.mask: Final = items.mask
        self.plain: Final[list[tuple[int, Item]]] = []  # they take any text, and forget it
        self.judging: Final[dict[int, list[Item]]] = {}
        self.plain_mask = 0
        for mask, expecting in items.expected.items():
            for item in expecting:
                position = item.production.positions[item.dot]
                if position.slot == NO_SLOT and not (position.member or position.fresh or position.lookups):
                    self.plain.append((mask, item))
                    self.plain_mask |= mask
                else:
                    self.judging.setdefault(mask, []).append(item)
        self.steps: Final[dict[object, Step | None]] = {}  # by what was scanned or answered
        self.alive: Final[dict[_Key, bool]] = {}  # whether a lexeme can follow a step, where callers make no difference
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

    def forget_gone(self) -> None:
        """Drop the steps to places that have been forgotten."""
        for key in [key for key, step in self.steps.items() if step is not None and step.place and step.place.gone]:
            del self.steps[key]
        self.alive.clear()  # its keys name places

    @property
    def lively(self) -> bool:
        """Whether a lexeme can follow, whatever it is."""
        return bool(self.free or (self.called is not None and self.called.free))


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
        self.after: dict[Step, tuple[list[Spot], int]] = {}  # the spots after a step, and what that touched
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


def role(gamma: Context, number: int, reads: frozenset[str]) -> _Key:
    """What a closed set that reads some ambient keys can see of a Γ before a name is read."""
    ambient = gamma.base.ambient
    known = frozenset([(key, ambient[key]) for key in reads if key in ambient])
    return number, known, gamma.keys, gamma.opened, gamma.opened_inside


def with_holes(base: Context, gamma: Context) -> Context:
    """A Γ with the entries of another one that have holes."""
    for key, bound in gamma.keys:
        base = base.bind_ambient(key, bound)
    for name, bound in gamma.opened:
        base = base.bind(name, bound) if name in gamma.opened_inside else base.bind_outside(name, bound)
    return base
