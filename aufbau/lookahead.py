"""What may follow a set, explored for masks: the sets after it, and the names that its items take.

A set after a lexeme mostly depends on little of what stands before: after `(`, on what is demanded there and on Γ, but
not on what is still open. So it is first built *detached*, from items whose calls have no callers. When nothing in it
returns from those calls, it is the same wherever these items are reached, and is kept for all masks that reach them.
Else it is built in place.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Final, final

import numpy as np
import numpy.typing as npt

from aufbau.earley.chart import Item, ItemSet, Lexeme, Record, Waiter
from aufbau.earley.machine import NO_SLOT, Position, Production
from aufbau.lexer.state import Reader, by_type
from aufbau.typesystem.context import Scope
from aufbau.typesystem.terms import Term
from aufbau.vocabulary.texts import TextIndex

_Key = tuple[object, ...]
_Found = tuple[npt.NDArray[np.int32], list[bytes]]
_NONE: Final = np.zeros(0, np.int32)


@final
class Names:
    """The texts that an item takes for a lexeme, where they are finitely many."""

    __slots__ = ("_found", "texts")

    def __init__(self, texts: tuple[bytes, ...]) -> None:
        self.texts: Final = texts  # in ascending order
        self._found: dict[tuple[TextIndex, bytes], _Found] = {}

    def among(self, index: TextIndex, read: bytes) -> tuple[npt.NDArray[np.int32], list[bytes]]:
        """Tokens of the index that, after `read`, begin a name, and the texts that are all that is left of one."""
        found = self._found.get((index, read))
        if found is None:
            few = index.few()
            found = self._found[index, read] = self._sought(index, read) if few is None else self._tried(few, read)
        return found

    def _tried(self, few: list[tuple[bytes, npt.NDArray[np.int32]]], read: bytes) -> _Found:
        """Look for each text of a small index among the names."""
        begun, whole, names = [], [], self.texts
        for text, tokens in few:
            begins = read + text
            at = bisect_left(names, begins)
            if at < len(names) and names[at] == begins:
                whole.append(text)
                at += 1
            if at < len(names) and names[at].startswith(begins):
                begun.append(tokens)
        return np.concatenate(begun) if begun else _NONE, whole

    def _sought(self, index: TextIndex, read: bytes) -> _Found:
        """Look for the beginnings of each name in the index."""
        rests: Sequence[bytes] = self.texts
        if read:
            rests = [
                name[len(read) :]
                for name in rests[bisect_left(rests, read) :]
                if name.startswith(read) and len(name) > len(read)
            ]
        parts = index.beginnings(rests)
        begun = [tokens for tokens, _ in parts if len(tokens)]
        whole = [rest for rest, (_, tokens) in zip(rests, parts, strict=True) if len(tokens)]
        return np.concatenate(begun) if begun else _NONE, whole


@final
class Place:
    """A set as masks see it: what it takes unseen, what it judges, and what was explored after it."""

    __slots__ = ("after", "alive", "items", "judging", "names", "plain", "plain_mask", "real", "viable")

    def __init__(self, items: ItemSet) -> None:
        self.items: Final = items
        self.plain: Final[list[tuple[int, Item]]] = []  # they take any text, and forget it
        self.judging: Final[dict[int, list[Item]]] = {}
        self.names: Final[dict[int, Names | None]] = {}  # what the judging items of a mask take
        self.plain_mask = 0
        for mask, expecting in items.expected.items():
            for item in expecting:
                position = item.production.positions[item.dot]
                if position.slot == NO_SLOT and not (position.member or position.fresh or position.lookups):
                    self.plain.append((mask, item))
                    self.plain_mask |= mask
                else:
                    self.judging.setdefault(mask, []).append(item)
        self.after: Final[dict[_Key, Place | None]] = {}  # by what was scanned, detached or not
        self.real: Final[dict[_Key, Place | None]] = {}  # by lexeme, never detached
        self.alive: Final[dict[tuple[int, bytes, bool], bool]] = {}  # by lexeme, in sets of the text
        self.viable: Final[dict[_Key, bool | None]] = {}  # by what was scanned: whether the text can go on after it


@final
class Spot:
    """A place with the way that led there from a set of the text; None: it is one."""

    __slots__ = ("before", "lexeme", "place")

    def __init__(self, place: Place, before: Spot | None = None, lexeme: tuple[int, bytes, bool] | None = None) -> None:
        self.place: Final = place
        self.before: Final = before
        self.lexeme: Final = lexeme


@final
class Explorer:
    """What was explored for the prefixes of one start; forgotten when it grows past `limit` items."""

    def __init__(self, reader: Reader, *, limit: int = 100_000) -> None:
        self.reader: Final = reader
        self.lock: Final = Lock()
        self._limit = limit
        self._items = 0
        self._places: OrderedDict[ItemSet, Place] = OrderedDict()
        self._detached: dict[_Key, Place | None] = {}
        self._viable: dict[_Key, bool | None] = {}
        self._names: dict[_Key, Names] = {}
        self._tables: dict[tuple[Scope, str, int], dict[Term, list[bytes]]] = {}
        self._listed: dict[_Key, tuple[bytes, ...]] = {}
        self._fits: dict[_Key, dict[Term, bool]] = {}
        terminals = len(reader.parser.machine.terminals)
        self._returned: Final = 1 << terminals  # what a detached call expects once it has returned

    def make_room(self) -> None:
        """Forget what was explored when it has grown too large; not while a mask is made."""
        if self._items > self._limit:
            self._items = 0
            self._places.clear()
            self._detached.clear()
            self._viable.clear()
        if len(self._names) + len(self._listed) + len(self._fits) > 10_000:
            self._names.clear()
            self._listed.clear()
            self._tables.clear()
            self._fits.clear()

    def spot(self, items: ItemSet) -> Spot:
        """The spot of a set of the text."""
        found = self._places.get(items)
        if found is None:
            found = self._places[items] = Place(items)
            if len(self._places) > 16:
                self._places.popitem(last=False)
        return Spot(found)

    # Sets

    def after(self, spot: Spot, mask: int, text: bytes, *, plain: bool) -> Spot | None:
        """The spot after a lexeme; None when it is lost. With `plain`, only items that forget the text take it."""
        place = spot.place
        kernel = self._scan(place, mask, text, plain)
        if not kernel:
            return None
        key = _relative(kernel)
        if key in self._detached:
            found = self._detached[key]
            if found is None:
                return None
            if not found.items.mask & self._returned:
                return Spot(found, spot, (mask, text, plain))
        elif all(item.dot < len(item.production.positions) for item in kernel):
            items = self._close(self._cut_off(kernel))
            found = Place(items) if items is not None else None
            self._detached[key] = found
            if found is None:
                return None
            if not found.items.mask & self._returned:
                return Spot(found, spot, (mask, text, plain))
        key = tuple((item.production, item.dot, item.record, item.slots, item.effect) for item in kernel)
        if key in place.after:
            found = place.after[key]
        else:
            items = self._close(kernel)
            found = place.after[key] = Place(items) if items is not None else None
        if found is None:
            return None
        if found.items.mask & self._returned:
            real = self._real(spot)
            return None if real is None else self.after(Spot(real), mask, text, plain=plain)
        return Spot(found, spot, (mask, text, plain)) if spot.before is not None else Spot(found)

    def viable(self, spot: Spot, mask: int, text: bytes, *, plain: bool) -> bool:
        """Whether there is a spot after a lexeme. Asks no more of the parser than that."""
        place, lexeme = spot.place, (mask, text, plain)
        alive = place.alive.get(lexeme)
        if alive is None:
            alive = self._viable_after(spot, mask, text, plain)
            if spot.before is None:
                place.alive[lexeme] = alive
        return alive

    def _viable_after(self, spot: Spot, mask: int, text: bytes, plain: bool) -> bool:
        place = spot.place
        kernel = self._scan(place, mask, text, plain)
        if not kernel:
            return False
        relative = _relative(kernel)
        known = self._viable.get(relative)
        if known is None and all(item.dot < len(item.production.positions) for item in kernel):
            known = self._viable[relative] = self._probe(self._cut_off(kernel))
        if known is not None:
            return known
        key = tuple((item.production, item.dot, item.record, item.slots, item.effect) for item in kernel)
        if key not in place.viable:
            place.viable[key] = self._probe(kernel)
        known = place.viable[key]
        if known is None:
            real = self._real(spot)
            return real is not None and self.viable(Spot(real), mask, text, plain=plain)
        return known

    def _probe(self, kernel: list[Item]) -> bool | None:
        """Whether any lexeme can follow; None when that depends on what a detached call returns to."""
        items = self.reader.parser.probe(self.reader.root, kernel, ~self._returned)
        if items.roots or items.free_mask & ~self._returned:
            return True
        if items.mask & self._returned:
            return None
        return self.reader.viable(items)

    def _scan(self, place: Place, mask: int, text: bytes, plain: bool) -> list[Item]:
        lexeme = Lexeme(text.decode(), 0, len(text))
        parser = self.reader.parser
        if not plain:
            return parser.scan(place.items, mask, lexeme)
        found = []
        for bits, item in place.plain:
            if bits & mask:
                advanced = parser.take(item, lexeme)
                if advanced is not None:
                    found.append(advanced)
        return found

    def _close(self, kernel: list[Item]) -> ItemSet | None:
        items = self.reader.parser.close(self.reader.root, kernel, 0)
        self._items += items.total
        return items if items.roots or self.reader.viable(items) else None

    def _cut_off(self, kernel: list[Item]) -> list[Item]:
        """The same items, their calls without callers: what is expected after a return says that it is one."""
        records: dict[Record, Record] = {}
        found = []
        for item in kernel:
            old = item.record
            record = records.get(old)
            if record is None:
                record = Record(old.nonterminal, old.context, old.demand, old.filter, old.holes)
                record.waiters.append(self._caller(old.nonterminal))
                records[old] = record
            found.append(Item(item.production, item.dot, record, item.slots, item.effect, None, None))
        return found

    def _caller(self, nonterminal: int) -> Waiter:
        called = Position(nonterminal=nonterminal, mask=0, slot=NO_SLOT, binding=None, symbol="", shape=None)
        after = Position(nonterminal=-1, mask=self._returned, slot=NO_SLOT, binding=None, symbol="", shape=None)
        production = Production(
            index=-1, nonterminal=nonterminal, name="", label=None, positions=(called, after), template=()
        )
        return Waiter(Item(production, 0, Record(nonterminal, None, None, None, 0), (), None, None, None), ())

    def _real(self, spot: Spot) -> Place | None:
        """The place of a spot with all that is open before it."""
        if spot.before is None or spot.lexeme is None:
            return spot.place
        before = self._real(spot.before)
        if before is None:
            return None
        if spot.lexeme not in before.real:
            kernel = self._scan(before, *spot.lexeme)
            items = self._close(kernel) if kernel else None
            before.real[spot.lexeme] = Place(items) if items is not None else None
        return before.real[spot.lexeme]

    # Names

    def names(self, place: Place, mask: int) -> Names | None:
        """The texts that some judging item before a mask of terminals takes; None when they can't be listed."""
        if mask not in place.names:
            place.names[mask] = self._gathered(place.judging[mask], mask)
        return place.names[mask]

    def _gathered(self, items: list[Item], mask: int) -> Names | None:
        texts: set[bytes] = set()  # where the text itself is compared
        fitting: dict[tuple[Scope, str], set[Term]] = {}
        for item in items:
            position, record = item.production.positions[item.dot], item.record
            if position.slot != NO_SLOT:
                required = item.slots[record.holes + position.slot]
                if required.index < 0:
                    texts.add(required.head.encode())
                    continue
            if not (position.member or position.lookups):
                return None
            if by_type(position):
                prefix = position.lookups[0].prefix if position.lookups else position.member_prefix
                scope = self.reader.parser.context(item).scope
                self._fit(item, self._table(scope, prefix, mask), fitting.setdefault((scope, prefix), set()))
            else:
                texts.update(self._texts(item, mask))
        tables = tuple([(*key, frozenset(types)) for key, types in fitting.items() if types])
        key = (mask, tables, frozenset(texts))
        found = self._names.get(key)
        if found is None:
            for scope, prefix, types in tables:
                table = self._table(scope, prefix, mask)
                texts.update(name for bound in types for name in table[bound])
            found = self._names[key] = Names(tuple(sorted(texts)))
        return found

    def _texts(self, item: Item, mask: int) -> tuple[bytes, ...]:
        """The names that an item takes where their text counts beside their type."""
        record = item.record
        key = (mask, item.production, item.dot, item.slots, item.effect, record.holes, record.filter, record.context)
        found = self._listed.get(key)
        if found is None:
            found = self._listed[key] = tuple([name.encode() for name, _ in self.reader.names(item, mask, b"")])
        return found

    def _fit(self, item: Item, table: dict[Term, list[bytes]], fitting: set[Term]) -> None:
        """Add the types of a table that an item takes. Where a type decides, nothing else of Γ does."""
        record = item.record
        state = (item.production, item.dot, item.slots, item.effect, record.holes, record.filter)
        verdicts = self._fits.get(state)
        if verdicts is None:
            verdicts = self._fits[state] = {}
        for bound, names in table.items():
            if bound not in fitting:
                fits = verdicts.get(bound)
                if fits is None:
                    taken = self.reader.parser.take(item, Lexeme(names[0].decode(), 0, 0))
                    fits = verdicts[bound] = taken is not None
                if fits:
                    fitting.add(bound)

    def _table(self, scope: Scope, prefix: str, mask: int) -> dict[Term, list[bytes]]:
        """The names of a name space that can be the terminals of `mask`, by their types."""
        found = self._tables.get((scope, prefix, mask))
        if found is None:
            found = {}
            skipped, node = prefix.encode(), scope
            for byte in skipped:
                if byte not in node.children:
                    break
                node = node.children[byte]
            else:
                classify = self.reader.parser.machine.automaton.classify
                stack = [child for byte, child in node.children.items() if byte]
                while stack:
                    node = stack.pop()
                    if node.type is not None:
                        name = node.name.encode()[len(skipped) :]
                        if classify(name) & mask:
                            found.setdefault(node.type, []).append(name)
                    stack.extend(child for byte, child in node.children.items() if byte)
            self._tables[scope, prefix, mask] = found
        return found


def _relative(kernel: list[Item]) -> _Key:
    """What the kernel of a set says without what is open before: equal ones predict and read alike."""
    numbers: dict[Record, int] = {}
    found: list[object] = []
    for item in kernel:
        record = item.record
        number = numbers.setdefault(record, len(numbers))
        found += (item.production, item.dot, item.slots, item.effect, number)
        if number == len(numbers) - 1:
            found += (record.context, record.demand, record.filter, record.holes)
    return tuple(found)
