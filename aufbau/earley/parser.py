"""Tabled Earley parsing with inherited demands ("Earley deduction", Pereira and Warren 1983; Earley 1970)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from aufbau.earley.arena import Arena
from aufbau.earley.chart import Answer, Filter, Item, ItemSet, Lexeme, Prediction, Record, Slots, Waiter
from aufbau.earley.demand import admits, child_demand, live_predictions, predictions
from aufbau.earley.failure import Failure, Observer
from aufbau.earley.machine import NO_SLOT, RESULT, Binding, Lookup, Position, Production
from aufbau.errors import LimitError
from aufbau.typesystem.context import Context, Effect
from aufbau.typesystem.terms import APART, SCHEME_HEAD, Term, variables

_State = tuple[Slots, Effect | None]  # of an item: its slots and what its children exported


@final
class Parser:
    """Builds sets; holds no state of its own beyond the arena."""

    __slots__ = ("arena", "machine")

    def __init__(self, arena: Arena) -> None:
        self.arena: Final = arena
        self.machine: Final = arena.machine

    # Sets

    def begin(self, context: Context, goal: Term | None) -> tuple[Record, ItemSet]:
        """The record of the start symbol and the first set."""
        machine = self.machine
        demand = None if goal is None else self.arena.terms.rename(goal, {})
        holes = 0 if demand is None else len(variables([demand]))
        gamma = context if machine.sensitive[machine.start] else None
        root = Record(machine.start, gamma, demand, None, holes)
        return root, self.predicted([root])

    def reopen(self, root: Record, observer: Observer) -> ItemSet:
        """The first set once more, observed."""
        builder = _SetBuilder(self, root, observer)
        builder.predict(root)
        return builder.close([], 0)

    def close(self, root: Record, kernel: list[Item], total: int, observer: Observer | None = None) -> ItemSet:
        """The set that grows from scanned items. Raises `LimitError`."""
        return _SetBuilder(self, root, observer).close(kernel, total)

    def predicted(self, calls: Sequence[Record]) -> ItemSet:
        """The set that begins with some calls, no two of them equal; their `nulls` are what they are answered in it."""
        builder = _SetBuilder(self, calls[0], None)
        for call in calls:
            builder.know(call)  # so that they are found by each other's items
        for call in calls:
            builder.predict(call)
        return builder.close([], 0)

    def scan(self, items: ItemSet, mask: int, lexeme: Lexeme, observer: Observer | None = None) -> list[Item]:
        """The items that take a finished lexeme which matches the terminals of `mask`."""
        found = []
        for bits, expecting in items.expected.items():
            if bits & mask:
                for item in expecting:
                    advanced = self.take(item, lexeme, observer)
                    if advanced is not None:
                        found.append(advanced)
        return found

    # Items

    def context(self, item: Item) -> Context:
        """Γ at an item's dot: that of its call, extended by what its finished children exported."""
        return self.gamma(item, (item.slots, item.effect))

    def gamma(self, item: Item, state: _State) -> Context:
        """Γ of an item whose slots and effect are `state`."""
        record = item.record
        gamma = record.context
        assert gamma is not None, "only sensitive nonterminals ask for Γ"
        if record.open:
            gamma = gamma.instantiate(self.arena.terms, state[0][: record.holes])
        return gamma.apply(state[1])

    def take(self, item: Item, lexeme: Lexeme, observer: Observer | None = None) -> Item | None:
        """The item after a lexeme at its dot, or None when its rule refuses the text."""
        position = item.production.positions[item.dot]
        state: _State | None = (item.slots, item.effect)
        if position.slot != NO_SLOT:
            state = self._meet(item, position.slot, self.arena.terms.con(lexeme.text), observer)
        if state is not None and (position.member or position.fresh or position.lookups):
            state = self._consult(item, position, state, lexeme.text, observer)
        return None if state is None else self._moved(item, state, lexeme, observer)

    def resume(self, waiter: Waiter, answer: Answer, observer: Observer | None = None) -> Item | None:
        """The waiting item after its child has been answered."""
        item = waiter.item
        position = item.production.positions[item.dot]
        state: _State | None = (item.slots, item.effect)
        if waiter.mapping is None and _closed(answer.effect):
            if position.slot != NO_SLOT:
                state = self._meet(item, position.slot, answer.type, observer)
            if state is not None and answer.effect is not None:
                state = state[0], self.arena.effects.compose(state[1], answer.effect)
        else:
            state = self._join(waiter, answer)
        return None if state is None else self._moved(item, state, answer, observer)

    def _moved(self, item: Item, state: _State, child: Answer | Lexeme, observer: Observer | None) -> Item | None:
        """The item one position further, unless its result no longer passes the filter of its record."""
        record, slots = item.record, state[0]
        if record.filter is not None and not admits(self.arena, record, slots):
            if observer is not None:
                observer(Failure(item.production, item.dot, item, record.filter.demand, slots[record.holes]))
            return None
        return Item(item.production, item.dot + 1, record, slots, state[1], item, child)

    def _meet(self, item: Item, slot: int, other: Term, observer: Observer | None) -> _State | None:
        """Unify a slot with a term whose variables are its own."""
        at = item.record.holes + slot
        state: _State | None
        if _closed(item.effect):
            slots = self.arena.refine(item.slots, at, other)
            state = None if slots is None else (slots, item.effect)
        else:
            apart = self.arena.terms.shift(other, APART)
            state = self._joint(item.slots, item.effect, None, [(item.slots[at], apart)])
        if state is None and observer is not None:
            observer(Failure(item.production, item.dot, item, item.slots[at], other))
        return state

    def _consult(
        self, item: Item, position: Position, state: _State, text: str, observer: Observer | None
    ) -> _State | None:
        """What Γ says of a lexeme: membership, freshness, look-ups."""
        gamma = self.gamma(item, state)
        if position.fresh:
            name = position.fresh_prefix + text
            bound = gamma.lookup(name)
            if bound is not None and (not position.fresh_inside or gamma.in_scope(name)):
                if observer is not None:
                    observer(Failure(item.production, item.dot, item, None, bound))
                return None
        if position.member and gamma.lookup(position.member_prefix + text) is None:
            if observer is not None:
                observer(Failure(item.production, item.dot, item, None, None))
            return None
        for lookup in position.lookups:
            known = self.gamma(item, state).lookup(lookup.prefix + text)
            looked = None if known is None else self.look(item, state, lookup, known)
            if looked is None:
                if observer is not None:
                    wanted = state[0][item.record.holes + lookup.slot]
                    observer(Failure(item.production, item.dot, item, wanted, known, lookup))
                return None
            state = looked
        return state

    def look(self, item: Item, state: _State, lookup: Lookup, known: Term) -> _State | None:
        """Unify a slot with what Γ holds; the holes of an open Γ are variables of the item itself."""
        at = item.record.holes + lookup.slot
        apart = known.ground  # also for a scheme: each use of it has variables of its own
        if known.head == SCHEME_HEAD:
            known = self.arena.terms.open(known)
        if apart and _closed(state[1]):
            slots = self.arena.refine(state[0], at, known)
            return None if slots is None else (slots, state[1])
        if apart:
            known = self.arena.terms.shift(known, APART)
        return self._joint(state[0], state[1], None, [(state[0][at], known)])

    def _join(self, waiter: Waiter, answer: Answer) -> _State | None:
        """Resume where Γ or effects have holes: everything is unified and numbered together."""
        item, terms = waiter.item, self.arena.terms
        position = item.production.positions[item.dot]
        pairs: list[tuple[Term, Term]] = []
        if position.slot != NO_SLOT:
            pairs.append((item.slots[item.record.holes + position.slot], terms.shift(answer.type, APART)))
        for own, value in zip(waiter.mapping or (), answer.values, strict=False):
            if own is not None:
                pairs.append((own, terms.shift(value, APART)))
        exported = answer.effect
        if exported is not None and not exported.ground:
            exported = self.arena.effects.mapped(
                exported, [terms.shift(entry.type, APART) for entry in exported.entries()]
            )
        return self._joint(item.slots, item.effect, exported, pairs)

    def _joint(
        self, slots: Slots, first: Effect | None, second: Effect | None, pairs: list[tuple[Term, Term]]
    ) -> _State | None:
        effect = self.arena.effects.compose(first, second)
        entries = effect.entries() if effect is not None else []
        solved = self.arena.solve((*slots, *(entry.type for entry in entries)), pairs)
        if solved is None:
            return None
        if effect is not None:
            effect = self.arena.effects.mapped(effect, list(solved[len(slots) :]))
        return solved[: len(slots)], effect

    def answer(self, item: Item) -> Answer:
        """What a finished item tells those who wait."""
        record, production = item.record, item.production
        slots, holes = item.slots, item.record.holes
        effect = item.effect if production.keeps else None
        gamma: Context | None = None
        if any(binding.generalises for binding in production.effects):
            gamma = self.gamma(item, (slots, None))
        for binding in production.effects:
            bound = self._bound(binding, slots[holes + binding.type_slot], gamma and gamma.apply(effect))
            effect = self.arena.effects.add(effect, binding_name(binding, slots, holes), binding.ambient, bound)
        bound, values = slots[holes + RESULT], slots[:holes] if record.open else ()
        if bound.ground and not values and (effect is None or effect.ground):
            return Answer(bound, values, effect, item)
        names: dict[int, int] = {}
        terms = self.arena.terms
        bound = terms.rename(bound, names)
        values = tuple([terms.rename(value, names) for value in values])
        if effect is not None and not effect.ground:
            effect = self.arena.effects.mapped(effect, [terms.rename(entry.type, names) for entry in effect.entries()])
        return Answer(bound, values, effect, item)

    def _bound(self, binding: Binding, bound: Term, gamma: Context | None) -> Term:
        """The type that a binding enters into Γ: under ∀, generalised over the variables that are not free in Γ."""
        if not binding.generalises or bound.ground:
            return bound
        fixed = frozenset(variables(gamma.open_types())) if gamma is not None else frozenset()
        return self.arena.terms.generalise(bound, fixed)

    def extended(self, item: Item, position: Position) -> Context:
        """Γ for the child at the dot: the item's own with the premise's extensions."""
        gamma = self.gamma(item, (item.slots, None)) if position.initial else self.context(item)
        if position.opens:
            gamma = gamma.open_scope()
        if not position.extensions:
            return gamma
        holes = item.record.holes
        for binding in position.extensions:
            bound = self._bound(binding, item.slots[holes + binding.type_slot], gamma)
            name = binding_name(binding, item.slots, holes)
            gamma = gamma.bind_ambient(name, bound) if binding.ambient else gamma.bind(name, bound)
        return gamma

    # Calls

    def call(self, item: Item, position: Position) -> tuple[Waiter, Context | None, Term | None, Filter | None, int]:
        """What the child at an item's dot is called with: who waits, Γ, demand and filter, and how many holes."""
        terms = self.arena.terms
        demand, sieve = child_demand(self.arena, item.record, item.slots, position)
        gamma: Context | None = None
        if self.machine.sensitive[position.nonterminal]:
            gamma = self.extended(item, position)
        mapping: tuple[Term | None, ...] | None = None
        holes = 0
        if gamma is not None and not gamma.ground:
            gamma, demand, numbers = gamma.canonical(terms, demand)
            holes = len(numbers)
            mapping = tuple([terms.var(number) if number < APART else None for number in numbers])
        elif demand is not None:
            demand, holes = terms.canonical(demand)
        return Waiter(item, mapping), gamma, demand, sieve, holes

    def enter(
        self, production: Production, record: Record, slots: Slots, observer: Observer | None = None
    ) -> Item | None:
        """The first item of a production, unless its rule asks something of the ambient part of Γ that doesn't hold."""
        item = Item(production, 0, record, slots, None, None, None)
        if not production.conditions and not production.entry_lookups:
            return item
        ambient = self.context(item).ambient
        if any(key not in ambient for key in production.conditions):
            if observer is not None:
                observer(Failure(production, -1, item, None, None))
            return None
        state: _State = (slots, None)
        for lookup in production.entry_lookups:
            known = self.gamma(item, state).ambient.get(lookup.name)
            looked = None if known is None else self.look(item, state, lookup, known)
            if looked is None or not admits(self.arena, record, looked[0]):
                if observer is not None:
                    wanted = state[0][record.holes + lookup.slot]
                    observer(Failure(production, -1, item, wanted, known, lookup))
                return None
            state = looked
        return Item(production, 0, record, state[0], None, None, None)


def unjudged(item: Item) -> bool:
    """Whether an item takes every lexeme that matches the terminal at its dot."""
    position = item.production.positions[item.dot]
    return not (position.member or position.fresh or position.lookups) and (
        position.slot == NO_SLOT or item.slots[item.record.holes + position.slot].index >= 0
    )


def _closed(effect: Effect | None) -> bool:
    return effect is None or effect.ground


def binding_name(binding: Binding, slots: Slots, holes: int) -> str:
    """The name that a binding adds to Γ."""
    return binding.key if binding.ambient else binding.prefix + slots[holes + binding.name_slot].head


_RecordKey = tuple[int, Context | None, Term | None, Filter | None]
_ItemKey = tuple[Production, int, Record, Slots, Effect | None]
_AnswerKey = tuple[Record, Term, Slots, Effect | None]


@final
class _SetBuilder:
    """Closes one set under prediction and completion."""

    __slots__ = (
        "_agenda",
        "_answers",
        "_observer",
        "_own",
        "_parser",
        "_pending",
        "_predicted",
        "_predicting",
        "_records",
        "_root",
        "_seen",
        "expected",
        "free",
        "roots",
    )

    def __init__(self, parser: Parser, root: Record, observer: Observer | None) -> None:
        self._parser = parser
        self._root = root
        self._observer = observer
        self._agenda: list[Item] = []
        self._seen: set[_ItemKey] = set()
        self._records: dict[_RecordKey, Record] = {}
        self._answers: set[_AnswerKey] = set()
        self._own: set[Record] = set()  # records of this very set
        self._pending: list[tuple[Waiter, int, Context | None, Prediction]] = []
        self._predicting = False
        self._predicted = 0  # items that were predicted, and so never stood on the agenda
        self.expected: dict[int, list[Item]] = {}
        self.free = 0
        self.roots: list[Answer] = []

    def close(self, kernel: list[Item], total: int) -> ItemSet:
        for item in kernel:
            self._add(item)
        limit = self._parser.arena.limits.chart_items - total
        agenda = self._agenda
        at = 0
        while at < len(agenda):
            item = agenda[at]
            at += 1
            if item.dot == len(item.production.positions):
                self._complete(item)
            else:
                position = item.production.positions[item.dot]
                if position.nonterminal < 0:
                    self._expect(item, position)
                else:
                    self._call(item, position)
            if at + self._predicted > limit:
                raise LimitError(
                    f"the chart of this prefix exceeds {limit + total} items; a longer text needs "
                    "Oracle(grammar, limits=Limits(chart_items=…))"
                )
        return ItemSet(kernel, self.expected, self.roots, self.free, total + at + self._predicted)

    def _add(self, item: Item) -> None:
        key = (item.production, item.dot, item.record, item.slots, item.effect)
        if key not in self._seen:
            self._seen.add(key)
            self._agenda.append(item)

    def _expect(self, item: Item, position: Position) -> None:
        self.expected.setdefault(position.mask, []).append(item)
        if unjudged(item):
            self.free |= position.mask

    def _complete(self, item: Item) -> None:
        record = item.record
        answer = self._parser.answer(item)
        key = (record, answer.type, answer.values, answer.effect)
        if key in self._answers:
            return
        self._answers.add(key)
        if record is self._root:
            self.roots.append(answer)
        if record in self._own:
            record.nulls = (*record.nulls, answer)
        for waiter in record.waiters:
            resumed = self._parser.resume(waiter, answer, self._observer)
            if resumed is not None:
                self._add(resumed)

    def _call(self, item: Item, position: Position) -> None:
        """Let an item wait for the child at its dot, predicting the child when nobody has."""
        waiter, gamma, demand, sieve, holes = self._parser.call(item, position)
        self._wait(waiter, position.nonterminal, gamma, demand, sieve, holes)

    def _wait(
        self,
        waiter: Waiter,
        nonterminal: int,
        gamma: Context | None,
        demand: Term | None,
        sieve: Filter | None,
        holes: int,
    ) -> None:
        """Join the waiting ones of a call.

        A call that demands less, made in the same set, already explores all that this one would: the answers that do
        not fit are refused when they return. That keeps undemanded positions from being explored once a demand.
        """
        records = self._records
        record = records.get((nonterminal, gamma, demand, sieve))
        if record is None and demand is not None:
            record = records.get((nonterminal, gamma, None, None))
        if record is None and sieve is not None:
            record = records.get((nonterminal, gamma, demand, None))
        if record is None:
            record = Record(nonterminal, gamma, demand, sieve, holes)
            record.waiters = (waiter,)
            self.predict(record)
            return
        record.waiters = (*record.waiters, waiter)
        for answer in record.nulls:
            resumed = self._parser.resume(waiter, answer, self._observer)
            if resumed is not None:
                self._add(resumed)

    def know(self, record: Record) -> None:
        """Count a call among those of this set."""
        self._records[record.nonterminal, record.context, record.demand, record.filter] = record
        self._own.add(record)

    def predict(self, record: Record) -> None:
        """Add the first item of every production that can meet the record's demand."""
        parser, agenda = self._parser, self._agenda
        self.know(record)
        if self._observer is not None:
            self._report(record)
        plain = record.context is None or record.context.ground
        # What is refused is told to the observer, so an observed set predicts all there is.
        plan = (live_predictions if self._observer is None else predictions)(parser.arena, record)
        self._predicted += len(plan)
        for prediction in plan:
            production = prediction.production
            if production.conditions or production.entry_lookups or not production.positions:
                entered = parser.enter(production, record, prediction.slots, self._observer)
                if entered is not None:
                    agenda.append(entered)
                continue
            item = Item(production, 0, record, prediction.slots, None, None, None)
            position = production.positions[0]
            if position.nonterminal < 0:
                self._expect(item, position)
            elif plain and not position.extensions and not position.opens:
                gamma = record.context if parser.machine.sensitive[position.nonterminal] else None
                self._pending.append((Waiter(item, None), position.nonterminal, gamma, prediction))
            else:
                agenda.append(item)
        if not self._predicting:
            self._drain()

    def _drain(self) -> None:
        """Make the calls of freshly predicted items, one after the other so that no recursion grows."""
        self._predicting = True
        while self._pending:
            waiter, nonterminal, gamma, prediction = self._pending.pop()
            self._wait(waiter, nonterminal, gamma, prediction.demand, prediction.sieve, prediction.holes)
        self._predicting = False

    def _report(self, record: Record) -> None:
        """Tell the observer which productions the demand or the filter of a call keeps out."""
        assert self._observer is not None
        arena = self._parser.arena
        for production in self._parser.machine.productions[record.nonterminal]:
            slots = arena.initial(production, record.demand, record.holes)
            found = production.template[RESULT]
            if slots is None:
                self._observer(Failure(production, -1, None, record.demand, found))
            elif not admits(arena, record, slots) and record.filter is not None:
                self._observer(Failure(production, -1, None, record.filter.demand, found))
