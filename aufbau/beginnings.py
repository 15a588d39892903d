"""Which terminals can come next, as far as the productions alone decide: what a mask need not explore at all."""

from __future__ import annotations

from typing import Final, final

from aufbau.earley.chart import Record
from aufbau.earley.machine import Machine, Production
from aufbau.places import Place, Spot

ALL: Final = -1  # every terminal, and the question whether any can follow at all


@final
class Beginnings:
    """Looks up, as masks of terminals, what can come first."""

    def __init__(self, machine: Machine) -> None:
        self._machine: Final = machine
        self._rests: dict[tuple[Production, int], tuple[int, bool]] = {}
        self.first: Final = [0] * len(machine.productions)  # of each nonterminal
        changed = True
        while changed:
            changed = False
            for number, group in enumerate(machine.productions):
                mask = self.first[number]
                for production in group:
                    mask |= self._read(production, 0)[0]
                if mask != self.first[number]:
                    self.first[number], changed = mask, True

    def rest(self, production: Production, dot: int) -> tuple[int, bool]:
        """What can come first from a dot on, and whether nothing need come."""
        found = self._rests.get((production, dot))
        if found is None:
            found = self._rests[production, dot] = self._read(production, dot)
        return found

    def _read(self, production: Production, dot: int) -> tuple[int, bool]:
        mask = 0
        for position in production.positions[dot:]:
            if position.nonterminal < 0:
                return mask | position.mask, False
            mask |= self.first[position.nonterminal]
            if not self._machine.nullable[position.nonterminal]:
                return mask, False
        return mask, True

    def calls(self, place: Place) -> int:
        """What the calls of a place can begin with."""
        mask = 0
        for call in place.calls:
            mask |= self.first[call.nonterminal]
        return mask

    def follows(self, place: Place, record: Record) -> tuple[int, tuple[Record, ...]]:
        """What can come after a call of a place, and the calls outside of it that can be over then."""
        found = place.follows.get(record)
        if found is None:
            mask, outside = 0, []
            over = [record]
            for one in over:  # grows
                if one in place.outside:  # some of its callers are; others may wait here
                    outside.append(one)
                for waiter in one.waiters:
                    after, empty = self.rest(waiter.item.production, waiter.item.dot + 1)
                    mask |= after
                    if empty and waiter.item.record not in over:
                        over.append(waiter.item.record)
            found = place.follows[record] = mask, tuple(outside)
        return found

    def admits(self, spot: Spot, record: Record, wanted: int) -> tuple[bool, int]:
        """Whether a wanted terminal can come after a call of a spot, and the lowest level that had to be looked at."""
        lowest = spot.level
        over = [(spot, record)]
        for spot, record in over:  # grows
            mask, outside = self.follows(spot.place, record)
            if mask & wanted:
                return True, lowest
            for one in outside:
                parent, caller = spot.caller(one)
                lowest = min(lowest, caller.level)
                if (caller, parent) not in over:
                    over.append((caller, parent))
        return False, lowest
