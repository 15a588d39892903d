"""Tells a generator which terminals may come next and how many lexemes each leaves to finish the text.

The counts are those of the chart without types: a guide through the mask, never a verdict.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Final, final

from aufbau.earley.chart import Item, ItemSet, Record
from aufbau.earley.machine import Machine, Position, Production
from aufbau.lexer.state import Reader
from aufbau.oracle import Prefix

_NEVER: Final = 1 << 30  # more lexemes than any text has

# Whether an item takes a lexeme of some terminals. Items that agree in all that this depends on are frequent, and to
# look through the names in scope for each was three quarters of the generator's time.
Taken = dict[tuple[object, ...], bool]


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """A terminal that some item takes here."""

    terminal: int  # its bit in the automaton's masks
    cost: int  # lexemes after it in a shortest rest of the text


@final
class Guide:
    """Counts for one text as it grows; what it learns of a call stays true, since closed sets never change."""

    __slots__ = ("_known", "_least", "_taken", "machine", "reader")

    def __init__(self, prefix: Prefix, taken: Taken | None = None) -> None:
        """`taken` may be shared by the guides of one start."""
        self.reader: Final[Reader] = prefix._start.reader
        self.machine: Final[Machine] = self.reader.parser.machine
        self._least: Final = _least_lexemes(self.machine)
        self._taken: Final[Taken] = {} if taken is None else taken
        self._known: Final[dict[Record, int]] = {self.reader.root: 0}

    def choices(self, prefix: Prefix) -> list[Choice]:
        """The terminals after the text, its last lexeme taken as finished, each with its cheapest rest."""
        costs: dict[int, int] = {}
        for items in self._sets(prefix):
            for mask, expecting in items.expected.items():
                for item in expecting:
                    self._note(item, mask, costs)
        return [Choice(terminal=terminal, cost=cost) for terminal, cost in sorted(costs.items())]

    def _sets(self, prefix: Prefix) -> list[ItemSet]:
        found: dict[ItemSet, None] = {}
        for hypothesis in prefix._state.hypotheses:
            if hypothesis.length:
                found.update(dict.fromkeys(items for items, _ in self.reader.finished(hypothesis)))
            else:
                found[hypothesis.items] = None
        return list(found)

    def _note(self, item: Item, mask: int, costs: dict[int, int]) -> None:
        if not self._takes(item, mask):
            return
        cost = self._rest(item.production, item.dot + 1) + self._finish(item.record)
        for terminal in range(mask.bit_length()):
            if mask >> terminal & 1 and cost < costs.get(terminal, _NEVER):
                costs[terminal] = cost

    def _takes(self, item: Item, mask: int) -> bool:
        record = item.record
        call = (record.nonterminal, record.context, record.demand, record.filter, record.holes)
        key = (mask, item.production, item.dot, item.slots, item.effect, *call)
        known = self._taken.get(key)
        if known is None:
            known = self._taken[key] = self.reader.takes(item, mask, self.machine.automaton.start, b"")
        return known

    def _rest(self, production: Production, dot: int) -> int:
        return sum(_lexemes(position, self._least) for position in production.positions[dot:])

    def _finish(self, record: Record) -> int:
        """Lexemes after a call's end in a shortest rest: the shortest way up through those who wait (Dijkstra)."""
        known = self._known
        distance = {record: 0}
        towards: dict[Record, Record] = {}  # the call from which another was reached
        queue = [(0, 0, record)]
        ticket = 0  # settles ties, since calls have no order
        while queue:
            far, _, current = heapq.heappop(queue)
            if current in known:
                total = far + known[current]
                while current is not record:
                    current = towards[current]
                    known[current] = total - distance[current]
                return known[record]
            if far > distance[current]:
                continue
            for waiter in current.waiters:
                above = waiter.item.record
                reached = far + self._rest(waiter.item.production, waiter.item.dot + 1)
                # What is known above counts at once, so that the first known call popped is the best way.
                if above in known:
                    reached += known[above]
                    above = self.reader.root
                if reached < distance.get(above, _NEVER):
                    distance[above], towards[above] = reached, current
                    ticket += 1
                    heapq.heappush(queue, (reached, ticket, above))
        known[record] = _NEVER  # nobody waits any longer: the call is a dead branch
        return _NEVER


def _lexemes(position: Position, least: list[int]) -> int:
    return 1 if position.nonterminal < 0 else least[position.nonterminal]


def _least_lexemes(machine: Machine) -> list[int]:
    """For each nonterminal, the lexemes of its shortest texts."""
    least = [_NEVER] * len(machine.productions)
    changed = True
    while changed:
        changed = False
        for nonterminal, group in enumerate(machine.productions):
            for production in group:
                total = sum(_lexemes(position, least) for position in production.positions)
                if total < least[nonterminal]:
                    least[nonterminal], changed = total, True
    return least
