"""What the prefixes of an oracle share: tables of terms, effects and filters, and memoised slot arithmetic.

Refining slots by a type depends on nothing but its arguments, and a parse repeats the same few refinements for every
lexeme, so each is done once and looked up afterwards. None of it depends on Γ or on the text, so later starts profit
from earlier ones. When the tables are large, what can be worked out again is forgotten; an arena that is large even
then dies with its prefixes (`Oracle.start`).
"""

from __future__ import annotations

from typing import Any, Final, final

from aufbau.earley.chart import Filter, Plan, PlanKey, Slots
from aufbau.earley.machine import Machine, Production
from aufbau.limits import Limits
from aufbau.typesystem.context import Effects
from aufbau.typesystem.terms import APART, Term, Terms
from aufbau.typesystem.unify import Substitution

_FAILED: Final[Slots] = ()
_FilterKey = tuple[int, int, Term | None, Filter | None, tuple[Term, Term] | None]


@final
class Arena:
    """Tables that live as long as the prefixes that use them."""

    __slots__ = (
        "_filters",
        "_initial",
        "_refined",
        "effects",
        "grown",
        "limits",
        "live_plans",
        "machine",
        "plans",
        "terms",
    )

    def __init__(self, machine: Machine, limits: Limits) -> None:
        self.machine: Final = machine
        self.limits: Final = limits
        self.terms: Final[Terms] = machine.terms.fork()
        self.effects: Final = Effects()
        # Filled by `predictions` and `live_predictions` of `aufbau.earley.demand`.
        self.plans: dict[PlanKey, Plan] = {}
        self.live_plans: dict[PlanKey, Plan] = {}
        # What a type grows into as the left corner of a production (`aufbau.earley.demand`).
        self.grown: dict[tuple[Production, int, Term], Term | None] = {}
        self._filters: dict[_FilterKey, Filter] = {}
        self._initial: dict[tuple[Production, Term | None, int], Slots] = {}
        self._refined: dict[tuple[Slots, int, Term], Slots] = {}

    @property
    def entries(self) -> int:
        """How many entries the tables have: a measure of their memory."""
        slots = len(self._initial) + len(self._refined)
        demands = len(self.plans) + len(self.live_plans) + len(self.grown) + len(self._filters)
        return len(self.terms) + len(self.effects) + slots + demands

    def make_room(self) -> bool:
        """Forget what can be worked out again, when there is much of it; whether there is room then."""
        if self.entries <= self.limits.arena_entries:
            return True
        # New tables, since another thread may be reading the old ones.
        self.plans, self.live_plans, self.grown = {}, {}, {}
        self._initial, self._refined = {}, {}
        return 2 * self.entries <= self.limits.arena_entries

    def tables(self) -> tuple[dict[Any, Any], ...]:
        """All tables but that of terms."""
        return (
            self.effects.table,
            self.plans,
            self.live_plans,
            self.grown,
            self._filters,
            self._initial,
            self._refined,
        )

    def filter(
        self,
        at: int,
        anchor: int,
        demand: Term | None,
        beyond: Filter | None,
        through: tuple[Term, Term] | None = None,
    ) -> Filter:
        """The filter with these parts."""
        key = (at, anchor, demand, beyond, through)
        found = self._filters.get(key)
        if found is None:
            found = self._filters.setdefault(key, Filter(at, anchor, demand, beyond, through))
        return found

    def initial(self, production: Production, demand: Term | None, holes: int) -> Slots | None:
        """Slots of a predicted item: the template moved behind the holes, its result unified with the demand."""
        key = (production, demand, holes)
        found = self._initial.get(key)
        if found is None:
            found = self._initial[key] = self._start(production, demand, holes) or _FAILED
        return found or None

    def _start(self, production: Production, demand: Term | None, holes: int) -> Slots | None:
        terms = self.terms
        if holes == 0 and demand is None:
            return production.template
        own = [terms.shift(term, holes) for term in production.template]
        slots = tuple([terms.var(i) for i in range(holes)] + own)
        return self.solve(slots, [(slots[holes], demand)]) if demand is not None else slots

    def refine(self, slots: Slots, at: int, other: Term) -> Slots | None:
        """The slots after slot `at` has met a type whose variables are its own; None when they clash."""
        if slots[at] is other and other.ground:
            return slots
        key = (slots, at, other)
        found = self._refined.get(key)
        if found is None:
            apart = self.terms.shift(other, APART)
            found = self._refined[key] = self.solve(slots, [(slots[at], apart)]) or _FAILED
        return found or None

    def solve(self, slots: Slots, pairs: list[tuple[Term, Term]]) -> Slots | None:
        """Unify the pairs (over one space of variables), resolve the slots and number their variables anew."""
        solved = Substitution(self.terms)
        for left, right in pairs:
            if not solved.unify(left, right):
                return None
        names: dict[int, int] = {}
        return tuple([self.terms.rename(solved.resolve(slot), names) for slot in slots])
