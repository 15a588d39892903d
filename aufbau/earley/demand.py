"""Demands on children: precise where that is finite, weakened and filtered where left recursion would make them grow.

An application demands `?A → D` of its own left corner, that one `?B → ?A → D`, and so on. There the child gets the
premise's pattern with fresh holes instead, and a `Filter` that remembers D. Whether a candidate T may stand there is
decided upwards: T itself, then the types of the nodes whose left corner T's node can be, until the anchor's demand is
met. Both only weaken demands, so pruning stays safe, and the full demand is unified when the answer returns.
"""

from __future__ import annotations

from aufbau.earley.arena import Arena
from aufbau.earley.chart import Filter, Plan, PlanKey, Prediction, Record, Slots
from aufbau.earley.machine import NO_SLOT, RESULT, Position, Production
from aufbau.typesystem.terms import APART, Term, variables
from aufbau.typesystem.unify import Substitution, matches


def child_demand(arena: Arena, record: Record, slots: Slots, position: Position) -> tuple[Term | None, Filter | None]:
    """The demand (in the item's own variables) and the filter for the child at a position."""
    if position.slot == NO_SLOT or position.bottom_up:
        return None, None
    term = slots[record.holes + position.slot]
    if term.index >= 0:
        return None, _passed(arena, record, slots, position)
    if position.recursive and position.slot != RESULT:
        shape = position.shape
        if shape is not None and arena.terms.canonical(term)[0] is not shape:
            sieve = _derived(arena, record, position.nonterminal)
            return (None if shape.index >= 0 else arena.terms.shift(shape, APART)), sieve
    if term.depth > arena.limits.demand_depth:
        term = arena.terms.cut(term, arena.limits.demand_depth, [2 * APART])
    if term.ground:
        return term, None
    return term, _passed(arena, record, slots, position)


def predictions(arena: Arena, record: Record) -> Plan:
    """What a call predicts. It depends on the call's demand and filter, not on Γ, so it is remembered."""
    key = _key(record)
    found = arena.plans.get(key)
    if found is None:
        plan = []
        for production in arena.machine.productions[record.nonterminal]:
            slots = arena.initial(production, record.demand, record.holes)
            if slots is None or not admits(arena, record, slots):
                continue
            prediction = Prediction(production, slots)
            if production.positions and production.positions[0].nonterminal >= 0:
                demand, prediction.sieve = child_demand(arena, record, slots, production.positions[0])
                if demand is not None:
                    prediction.demand, prediction.holes = arena.terms.canonical(demand)
            plan.append(prediction)
        found = arena.plans[key] = tuple(plan)
    return found


def _key(record: Record) -> PlanKey:
    return record.nonterminal, record.demand, record.filter, record.holes


def _first_call(prediction: Prediction) -> Record | None:
    positions = prediction.production.positions
    if not positions or positions[0].nonterminal < 0:
        return None
    return Record(positions[0].nonterminal, None, prediction.demand, prediction.sieve, prediction.holes)


def live_predictions(arena: Arena, record: Record) -> Plan:
    """Those of `predictions` whose first child can be predicted in turn, down to a terminal.

    Most calls below a demand lead nowhere (a bool is demanded of a sum, of its products, …), and a set has ten times
    fewer calls without them.
    """
    known = arena.live_plans
    found = known.get(_key(record))
    if found is None:
        calls = [record]  # each after one that predicts it as its first child
        plans = {_key(record): predictions(arena, record)}
        for call in calls:
            for prediction in plans[_key(call)]:
                child = _first_call(prediction)
                if child is not None and _key(child) not in plans and _key(child) not in known:
                    plans[_key(child)] = predictions(arena, child)
                    calls.append(child)
        # The greatest fixed point: what is left leads to a terminal, or round in a left recursion.
        changed = True
        while changed:
            changed = False
            for call in reversed(calls):
                plan = plans[_key(call)]
                left = tuple([p for p in plan if _leads(p, plans, known)])
                if len(left) < len(plan):
                    plans[_key(call)], changed = left, True
        known.update(plans)
        found = plans[_key(record)]
    return found


def begins(arena: Arena, record: Record) -> bool:
    """Whether a call predicts, whatever its Γ, a terminal that is taken whatever its text; False: perhaps not."""
    seen = {_key(record)}
    calls = [record]
    for call in calls:
        for prediction in live_predictions(arena, call):
            production = prediction.production
            if production.conditions or production.entry_lookups or not production.positions:
                continue
            position = production.positions[0]
            if position.nonterminal < 0:
                if not (position.member or position.fresh or position.lookups) and (
                    position.slot == NO_SLOT or prediction.slots[call.holes + position.slot].index >= 0
                ):
                    return True
                continue
            child = _first_call(prediction)
            if child is not None and _key(child) not in seen:
                seen.add(_key(child))
                calls.append(child)
    return False


def _leads(prediction: Prediction, plans: dict[PlanKey, Plan], known: dict[PlanKey, Plan]) -> bool:
    child = _first_call(prediction)
    if child is None:
        return True
    key = _key(child)
    return bool(plans[key] if key in plans else known[key])


def _passed(arena: Arena, record: Record, slots: Slots, position: Position) -> Filter | None:
    """What a child inherits of its parent's filter: all of it where it has the parent's own type, else what its own
    type contributes to the parent's."""
    sieve = record.filter
    if sieve is None or position.slot == RESULT:
        return sieve
    if position.zero_prefix:
        return _derived(arena, record, position.nonterminal)
    result, part = slots[record.holes + RESULT], slots[record.holes + position.slot]
    if (
        result.ground
        or sieve.depth >= arena.limits.filter_depth
        or not set(variables([part])) & set(variables([result]))
    ):
        return None
    names: dict[int, int] = {}
    through = (arena.terms.rename(result, names), arena.terms.rename(part, names))
    return arena.filter(position.nonterminal, position.nonterminal, None, sieve, through)


def _derived(arena: Arena, record: Record, nonterminal: int) -> Filter | None:
    """The filter on a left corner of the record."""
    sieve = record.filter
    if sieve is not None and sieve.through is None and sieve.at in arena.machine.lifts[record.nonterminal]:
        # What grows into the record's type is, passed up unchanged, at the filter's nonterminal, and from there grows
        # into its anchor: that is growing into the anchor.
        return arena.filter(nonterminal, sieve.anchor, sieve.demand, sieve.beyond)
    if sieve is None and record.demand is None:
        return None
    if sieve is not None and sieve.depth >= arena.limits.filter_depth:
        sieve = None
        if record.demand is None:
            return None
    return arena.filter(nonterminal, record.nonterminal, record.demand, sieve)


def admits(arena: Arena, record: Record, slots: Slots) -> bool:
    """Whether the result so far can still pass the record's filter."""
    if record.filter is None:
        return True
    result = slots[record.holes + RESULT]
    return result.index >= 0 or may_grow(arena, record.filter, result)


def may_grow(arena: Arena, sieve: Filter, term: Term) -> bool:
    """Whether a type at the filter's nonterminal can be, or grow into, one that its anchor admits."""
    term = arena.terms.canonical(term)[0]
    known = sieve.known.get(term)
    if known is None:
        decide = _search if sieve.through is None else _contributes
        known = sieve.known[term] = decide(arena, sieve, term)
    return known


def _search(arena: Arena, sieve: Filter, term: Term) -> bool:
    seen = {(sieve.at, term)}
    below = arena.machine.corners[sieve.anchor]  # what lies beside the way to the anchor can't help
    queue = [(sieve.at, term)]
    # Types may grow for ever (int, int list, int list list, …). What lies deeper than a demand can see becomes holes,
    # which keeps the search finite and only weakens it.
    deepest = 2 + max(term.depth, sieve.demand.depth if sieve.demand is not None else 1)
    for nonterminal, current in queue:
        if nonterminal == sieve.anchor and _meets(arena, sieve, current):
            return True
        for production, at in arena.machine.upward[nonterminal]:
            if production.nonterminal not in below:
                continue
            grown = _grow(arena, production, at, current)
            if grown is None:
                continue
            if grown.depth > deepest:
                grown = arena.terms.canonical(arena.terms.cut(grown, deepest, [2 * APART]))[0]
            if (production.nonterminal, grown) not in seen:
                if len(seen) >= arena.limits.filter_steps:
                    return True
                seen.add((production.nonterminal, grown))
                queue.append((production.nonterminal, grown))
    return False


def _contributes(arena: Arena, sieve: Filter, term: Term) -> bool:
    assert sieve.through is not None and sieve.beyond is not None
    result, part = sieve.through
    solved = Substitution(arena.terms)
    if not solved.unify(part, arena.terms.shift(term, APART)):
        return False
    whole = solved.resolve(result)
    return whole.index >= 0 or may_grow(arena, sieve.beyond, whole)


def _meets(arena: Arena, sieve: Filter, term: Term) -> bool:
    if sieve.demand is not None and not matches(arena.terms, arena.terms.shift(term, APART), sieve.demand):
        return False
    return sieve.beyond is None or may_grow(arena, sieve.beyond, term)


def _grow(arena: Arena, production: Production, at: int, term: Term) -> Term | None:
    """The type of a node whose left corner has the given type. Filters ask it 30 times for each distinct answer."""
    key = (production, at, term)
    known = arena.grown
    if key not in known:
        known[key] = _grown(arena, production, at, term)
    return known[key]


def _grown(arena: Arena, production: Production, at: int, term: Term) -> Term | None:
    result = production.template[RESULT]
    slot = production.positions[at].slot
    if slot == NO_SLOT:
        return result
    solved = Substitution(arena.terms)
    if not solved.unify(production.template[slot], arena.terms.shift(term, APART)):
        return None
    return arena.terms.canonical(solved.resolve(result))[0]
