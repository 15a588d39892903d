"""What may follow a set, explored for masks and remembered apart from the text that stands before (`places`).

What a place returns is handed to the callers of its spot, and a name is judged in the Γ that is found there.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from typing import Any, Final, final

from aufbau.beginnings import ALL, Beginnings
from aufbau.earley.chart import Answer, Filter, Item, ItemSet, Lexeme, Record, Waiter
from aufbau.earley.demand import begins
from aufbau.earley.parser import Parser, unjudged
from aufbau.lexer.state import Reader
from aufbau.named import Lists, Names
from aufbau.places import TEXT, Place, Spot, StandIns, Step, detached
from aufbau.typesystem.context import Context
from aufbau.typesystem.terms import Term

_Key = tuple[object, ...]
_CallKey = tuple[int, Context | None, Term | None, Filter | None]
_GAMMAS = 64  # Γs for which a place keeps what it takes
UNTOUCHED: Final = 1 << 60


@final
class Explorer:
    """What was explored for the starts that share an arena; the oldest is forgotten past a limit."""

    def __init__(self, parser: Parser, *, limit: int) -> None:
        nobody = Record(-1, None, None, None, 0)
        self.identity: Final = object()  # by which it is known without being kept alive
        self.lock: Final = Lock()
        self.epoch = 0  # grows when places are forgotten
        self.touched = UNTOUCHED  # the lowest level that was looked at: what was found depends on it
        self._parser: Final = parser
        self._reader: Final = Reader(parser, nobody)
        self._lists: Final = Lists(self._reader)
        self._limit = limit
        self._items = 0
        self._clock = 0  # masks begun
        self._of_text: OrderedDict[ItemSet, list[Spot]] = OrderedDict()
        self._places: dict[_Key, Place] = {}
        self._stand_ins: Final = StandIns(parser.machine, parser.arena.terms)
        self._beginnings: Final = Beginnings(parser.machine)
        self._corners: dict[tuple[int, Term | None, Filter | None], bool] = {}
        self._nothing: Final = ItemSet([], {}, [], 0, 0)
        self._empty: Final = Place(self._nothing, {}, [], None)

    def tables(self) -> tuple[dict[Any, Any], ...]:
        """What was explored apart from texts."""
        return self._places, self._stand_ins.known, *self._lists.tables()

    def counted(self) -> int:
        """How much is known, in items; counted anew, as it is to be when the tables were filled from outside."""
        self._items = sum(place.total + len(place.steps) for place in self._places.values())
        return self._items

    def make_room(self) -> None:
        """Begin a mask; when too much is known, forget the half of it that was not reached for the longest time."""
        self._clock += 1
        if self._items > self._limit:
            self.epoch += 1
            self._of_text.clear()
            self._items = 0
            latest = sorted(self._places.items(), key=lambda entry: entry[1].used, reverse=True)
            kept: dict[_Key, Place] = {}
            for key, place in latest:
                if self._items > self._limit // 2:
                    place.gone = True
                else:
                    kept[key] = place
                    self._items += place.total + len(place.steps)
            for place in kept.values():
                place.forget_gone()
            self._places = kept
        self._lists.make_room()

    def spots(self, items: ItemSet, root: Record) -> list[Spot]:
        """The spots that a set of the text consists of."""
        found = self._of_text.get(items)
        if found is None:
            text = Spot(Place(self._nothing, {}, [], root), None, ())
            if items.kernel:
                step = self._step(text.place, list(items.kernel), [])
                found = [] if step is None else self._followed(text, step, ALL)
            else:
                found = [Spot(self._called([root]), text, (root,))]
            self._of_text[items] = found
            if len(self._of_text) > 16:
                self._of_text.popitem(last=False)
        return found

    # Steps

    def after(self, spot: Spot, mask: int, text: bytes, *, plain: bool, wanted: int) -> list[Spot]:
        """The spots after a lexeme at which a wanted terminal may come next; none when the text is lost.

        With `plain`, only items that forget the text take it.
        """
        step = self._scanned(spot, mask, text, plain)
        if step is None:
            return []
        # Many texts are one step, and their tokens go on from the same spots.
        known = spot.after.get((step, wanted))
        if known is None:
            before, self.touched = self.touched, UNTOUCHED
            known = spot.after[step, wanted] = (self._followed(spot, step, wanted), self.touched)
            self.touched = before
        self.touched = min(self.touched, known[1])
        return known[0]

    def viable(self, spot: Spot, mask: int, text: bytes, *, plain: bool) -> bool:
        """Whether there is a spot after a lexeme."""
        step = self._scanned(spot, mask, text, plain)
        return step is not None and self.lives(spot, step)[0]

    def taken(self, spot: Spot, mask: int, text: bytes) -> Step | None:
        """What a lexeme whose text is judged leads to: the same wherever the judging items have the same Γs."""
        return self._scanned(spot, mask, text, plain=False)

    def lives(self, spot: Spot, step: Step) -> tuple[bool, bool]:
        """Whether the text can go on or end after a step, and whether that is so whatever the callers are."""
        if step.complete or (step.place is not None and (step.place.free or self._begins(step.place))):
            return True, True
        # Names of one type are different scans, but mostly the same answer.
        key = (step.place, *[(record, one.type, one.values, one.effect) for record, one in step.returned])
        alone = spot.place.alive.get(key)
        if alone is not None:
            return alone, True
        known = spot.alive.get(key)
        if known is None:
            before, self.touched = self.touched, UNTOUCHED
            alive, touched = self._lives(spot, step), self.touched
            self.touched = before
            if touched >= spot.level:
                spot.place.alive[key] = alive
                return alive, True
            known = spot.alive[key] = (alive, touched)
        self.touched = min(self.touched, known[1])
        return known[0], False

    def _scanned(self, spot: Spot, mask: int, text: bytes, plain: bool) -> Step | None:
        place = spot.place
        if plain:
            if mask not in place.steps:
                place.steps[mask] = self._step(place, self._unseen(place, mask), [])
            return place.steps[mask]
        scan = self._scan_key(spot, mask, text)
        if scan is not None and scan in place.steps:
            return place.steps[scan]
        kernel = self._unseen(place, mask)
        lexeme = Lexeme(text.decode(), 0, len(text))
        for bits, items in place.judging.items():
            if bits & mask:
                for item in items:
                    taken = self._parser.take(self._actual(spot, item), lexeme)
                    if taken is not None:
                        kernel.append(
                            Item(item.production, taken.dot, item.record, taken.slots, taken.effect, None, None)
                        )
        key = tuple([(item.production, item.dot, item.record, item.slots, item.effect) for item in kernel])
        if key not in place.steps:
            place.steps[key] = self._step(place, kernel, [])
        if scan is not None:
            place.steps[scan] = place.steps[key]
            self._items += 1
        return place.steps[key]

    def _scan_key(self, spot: Spot, mask: int, text: bytes) -> _Key | None:
        """What a scan depends on: the text, and what each Γ says of it. None where the scan itself has to tell."""
        key: list[object] = [mask, text]
        for bits, queries in spot.place.queries.items():
            if bits & mask:
                if queries is None:
                    return None
                for record, prefix in queries:
                    gamma, name = self._actual_record(spot, record).context, prefix + text.decode()
                    assert gamma is not None, "only items that have a Γ ask it"
                    key += (gamma.lookup(name), gamma.in_scope(name))
        return tuple(key)

    def _unseen(self, place: Place, mask: int) -> list[Item]:
        """The items after a lexeme whose text nobody looks at."""
        lexeme, take = Lexeme("", 0, 0), self._parser.take
        taken = [take(item, lexeme) for bits, item in place.plain if bits & mask]
        return [item for item in taken if item is not None]

    def _answered(self, place: Place, record: Record, answer: Answer) -> Step | None:
        """What an answer to a call of the place leads to."""
        key = (record, answer.type, answer.values, answer.effect)
        if key not in place.steps:
            resumed = [self._parser.resume(waiter, answer) for waiter in record.waiters]
            returned = [(record, answer)] if record in place.outside else []
            place.steps[key] = self._step(place, [item for item in resumed if item is not None], returned)
        return place.steps[key]

    def _step(self, place: Place, items: list[Item], returned: list[tuple[Record, Answer]]) -> Step | None:
        """Hand up what is complete, as far as the callers are known, and close the rest."""
        if not items and not returned:
            return None
        parser = self._parser
        seen: set[_Key] = set()
        kernel: list[Item] = []
        complete = False
        for item in items:  # grows
            record = item.record
            key: _Key = (item.production, item.dot, record, item.slots, item.effect)
            if key in seen:
                continue
            seen.add(key)
            if item.dot < len(item.production.positions):
                kernel.append(item)
                continue
            answer = parser.answer(item)
            key = (record, answer.type, answer.values, answer.effect)
            if key in seen:
                continue
            seen.add(key)
            if record in place.outside:
                returned.append((record, answer))
            complete = complete or record is place.root
            items += [one for one in [parser.resume(waiter, answer) for waiter in record.waiters] if one is not None]
        if not kernel:
            return Step(None, (), returned, complete)
        found, records = self._closed(kernel)
        return Step(found, records, returned, complete)

    def _followed(self, spot: Spot, step: Step, wanted: int) -> list[Spot]:
        """The spots after a step, what returns from them included, as far as they are of use."""
        spots: list[Spot] = []
        complete = False
        seen: set[_Key] = set()
        pending = [(spot, step)]
        while pending:
            spot, step = pending.pop()
            complete = complete or step.complete
            for caller, record, answer in self._returned(spot, step, spots):
                key = (caller, record, answer.type, answer.values, answer.effect)
                if key in seen:
                    continue
                seen.add(key)
                if wanted != ALL:
                    useful, level = self._beginnings.admits(caller, record, wanted)
                    self.touched = min(self.touched, level)
                    if not useful:
                        continue
                complete = complete or record is caller.place.root
                following = self._answered(caller.place, record, answer)
                if following is not None:
                    pending.append((caller, following))
        if wanted != ALL:
            return spots
        if complete:
            return spots or [Spot(self._empty, spot, ())]
        return spots if any(self._viable(one) for one in spots) else []

    def _lives(self, spot: Spot, step: Step) -> bool:
        """Whether the text can go on or end after a step."""
        spots: list[Spot] = []
        seen: set[_Key] = set()
        pending = [(spot, step)]
        while pending:
            spot, step = pending.pop()
            if step.complete:
                return True
            returned = self._returned(spot, step, spots)
            if spots and self._viable(spots.pop()):
                return True
            for caller, record, answer in returned:
                key = (caller, record, answer.type, answer.values, answer.effect)
                if key in seen:
                    continue
                seen.add(key)
                if record is caller.place.root:
                    return True
                following = self._answered(caller.place, record, answer)
                if following is not None:
                    pending.append((caller, following))
        return False

    def _returned(self, spot: Spot, step: Step, spots: list[Spot]) -> list[tuple[Spot, Record, Answer]]:
        """Add the spot after a step, and say what is answered to whom."""
        returned: list[tuple[Spot, Record, Answer]] = []
        for record, answer in step.returned:
            call, caller = spot.caller(record)
            self.touched = min(self.touched, caller.level)
            returned.append((caller, call, answer))
        if step.place is not None:
            step.place.used = self._clock
            after = Spot(step.place, spot, step.records)
            spots.append(after)
            returned += [(after, call, answer) for call, answer in step.place.nulls]
        return returned

    def called(self, spot: Spot, wanted: int = ALL) -> Spot | None:
        """The spot of the calls that the items of a spot make; None where they can't begin with a wanted terminal."""
        place = spot.place
        if not place.calls or not self._beginnings.calls(place) & wanted:
            return None
        if place.called is None:
            place.called = self._called(place.calls)
        place.called.used = self._clock
        return Spot(place.called, spot, place.calls)

    # Places

    def _closed(self, kernel: list[Item]) -> tuple[Place, tuple[Record, ...]]:
        """The place of a kernel, and the calls that are outside of it."""
        numbers: dict[Record, int] = {}
        for item in kernel:
            numbers.setdefault(item.record, len(numbers))
        stand_ins = self._stand_ins.of(numbers)
        key: list[object] = []
        named = 0
        for item in kernel:
            record = item.record
            number = numbers[record]
            key += (item.production, item.dot, item.slots, item.effect, number)
            if number == named:
                named += 1
                gamma = record.context
                key += (record.demand, record.filter, record.holes, None if gamma is None else stand_ins[gamma])
        found = self._places.get(tuple(key))
        if found is None:
            found = self._places[tuple(key)] = self._cut_off(kernel, numbers, stand_ins)
            self._items += found.total
        return found, tuple(numbers)

    def _cut_off(
        self, kernel: list[Item], records: Iterable[Record], stand_ins: Mapping[Context | None, Context]
    ) -> Place:
        alone = {record: detached(record, stand_ins) for record in records}
        expected: dict[int, list[Item]] = {}
        calls: dict[_CallKey, tuple[int, list[Waiter]]] = {}
        free = 0
        for one in kernel:
            item = Item(one.production, one.dot, alone[one.record], one.slots, one.effect, None, None)
            position = item.production.positions[item.dot]
            if position.nonterminal < 0:
                expected.setdefault(position.mask, []).append(item)
                if unjudged(item):
                    free |= position.mask
            else:
                waiter, gamma, demand, sieve, holes = self._parser.call(item, position)
                calls.setdefault((position.nonterminal, gamma, demand, sieve), (holes, []))[1].append(waiter)
        outside = {record: number for number, record in enumerate(alone.values())}
        found = Place(ItemSet(kernel, expected, [], free, len(kernel)), outside, self._made(calls), None)
        if any(self._parser.machine.nullable[call.nonterminal] for call in found.calls):
            found.called = self._called(found.calls)
            pairs = zip(found.calls, found.called.outside, strict=True)
            found.nulls = [(call, answer) for call, alone in pairs for answer in alone.nulls]
        return found

    def _made(self, calls: dict[_CallKey, tuple[int, list[Waiter]]]) -> list[Record]:
        """Some calls with those who wait for them; one that another covers, which demands less, is left to that one."""
        made: dict[_CallKey, Record] = {}
        for key, (_, waiters) in calls.items():
            nonterminal, gamma, demand, _ = key
            if (nonterminal, gamma, None, None) in calls:
                key = (nonterminal, gamma, None, None)
            elif (nonterminal, gamma, demand, None) in calls:
                key = (nonterminal, gamma, demand, None)
            call = made.get(key)
            if call is None:
                call = made[key] = Record(*key, calls[key][0])
            call.waiters += tuple(waiters)
        return list(made.values())

    def _called(self, calls: Sequence[Record]) -> Place:
        """The place that some calls begin with."""
        stand_ins = self._stand_ins.of(calls)
        key: list[object] = []
        for call in calls:
            gamma = call.context
            key += (call.nonterminal, call.demand, call.filter, call.holes)
            key.append(None if gamma is None else stand_ins[gamma])
        found = self._places.get(tuple(key))
        if found is None:
            alone = [detached(call, stand_ins) for call in calls]
            items = self._parser.predicted(alone)
            found = Place(items, {call: number for number, call in enumerate(alone)}, [], None)
            self._places[tuple(key)] = found
            self._items += found.total
        return found

    # Γ

    def _actual(self, spot: Spot, item: Item) -> Item:
        """An item of a spot in its Γ."""
        record = self._actual_record(spot, item.record)
        return Item(item.production, item.dot, record, item.slots, item.effect, None, None)

    def _actual_record(self, spot: Spot, record: Record) -> Record:
        if record.context is None:
            return record
        self.touched = TEXT
        if spot.level == TEXT:
            return record
        found = spot.actual.get(record)
        if found is None:
            gamma = self._gamma(spot, record)
            found = Record(record.nonterminal, gamma, record.demand, record.filter, record.holes)
            spot.actual[record] = found
        return found

    def _gamma(self, spot: Spot, record: Record) -> Context | None:
        """The Γ for which a call's Γ stands in: found in the callers, and extended as theirs is."""
        while spot.level != TEXT:
            if record in spot.place.outside:
                record, spot = spot.caller(record)
                continue
            waiter = record.waiters[0]  # it made the call
            if waiter.item.record.context is record.context:
                record = waiter.item.record
                continue
            caller = self._actual(spot, waiter.item)
            return self._parser.call(caller, caller.production.positions[caller.dot])[1]
        return record.context

    # Judgement

    def names(self, spot: Spot, mask: int) -> Names | None:
        """The texts that some judging item before a mask of terminals takes; None when they can't be listed."""
        if mask in spot.place.endless:
            return None
        if mask in spot.names:
            self.touched = TEXT
            return spot.names[mask]
        place = spot.place
        key = (mask, *[self._actual_record(spot, record).context for record in place.asked[mask]])
        if key not in place.named:
            if len(place.named) >= _GAMMAS:
                place.named.clear()
            place.named[key] = self._lists.names([self._actual(spot, item) for item in place.judging[mask]], mask)
        found = place.named[key]
        if any(record.context is not None for record in place.asked[mask]):
            spot.names[mask] = found
        return found

    def gammas(self, spot: Spot, masks: list[int]) -> tuple[Context | None, ...]:
        """The Γs that the judging items before some masks of terminals ask."""
        asked = spot.place.asked
        return tuple([self._actual_record(spot, record).context for mask in masks for record in asked[mask]])

    def takes(self, spot: Spot, masks: int, state: int, text: bytes) -> bool:
        """Whether some judging item takes a longer lexeme than `text`, which led to a state of the automaton."""
        return any(
            self._reader.takes(self._actual(spot, item), mask, state, text)
            for mask, items in spot.place.judging.items()
            if mask & masks
            for item in items
        )

    def _begins(self, place: Place) -> bool:
        """Whether some call of a place begins with a lexeme that is taken whatever its text, in every Γ."""
        if place.called is not None:
            return bool(place.called.free)
        return any(self._corner(call) for call in place.calls)

    def _corner(self, call: Record) -> bool:
        key = (call.nonterminal, call.demand, call.filter)
        found = self._corners.get(key)
        if found is None:
            found = self._corners[key] = begins(self._parser.arena, call)
        return found

    def _viable(self, spot: Spot) -> bool:
        """Whether some lexeme can follow."""
        if spot.place.free or self._begins(spot.place):
            return True
        for mask in spot.place.judging:
            names = self.names(spot, mask)
            if names.texts if names is not None else self.takes(spot, mask, self._parser.machine.automaton.start, b""):
                return True
        below = self.called(spot)
        return below is not None and self._viable(below)
