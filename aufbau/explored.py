"""What masks explored of a grammar, kept on disk for later processes: the tables of an arena and of its explorer."""

from __future__ import annotations

import logging
from typing import Any, Final, final

from aufbau.earley.arena import Arena
from aufbau.earley.machine import Machine
from aufbau.lookahead import Explorer
from aufbau.snapshot import SnapshotError, dump, load
from aufbau.store import Shelf
from aufbau.typesystem.terms import Term, Terms

_LOG: Final = logging.getLogger(__name__)
_Written = tuple[str, int, tuple[int, ...]]  # a term: its head, the number of a variable, which terms its arguments are


@final
class Keeper:
    """Keeps the tables of one arena and its explorer."""

    __slots__ = ("_arena", "_explorer", "_known", "_shelf")

    def __init__(self, shelf: Shelf, arena: Arena, explorer: Explorer) -> None:
        """Fill the tables, which are new, with what an earlier process kept."""
        self._shelf: Final = shelf
        self._arena: Final = arena
        self._explorer: Final = explorer
        self._restore()
        self._known: int | None = explorer.counted()  # None: nothing more is to be kept

    def _restore(self) -> None:
        data = self._shelf.read()
        if data is None:
            return
        try:
            written, graph = load(data)
            terms = _read(written, self._arena.terms)
            kept: tuple[dict[Any, Any], ...] = load(graph, [*terms, *_parts(self._arena.machine)])
        except SnapshotError as error:
            _LOG.warning("what masks explored is not used: %s", error)
            return
        for table, known in zip(self._tables(), kept, strict=True):
            table.update(known)

    def keep(self) -> None:
        """Keep what is known after the first mask, where that is much more than what was kept before."""
        known, self._known = self._known, None
        if known is None:
            return
        with self._explorer.lock:
            if self._explorer.counted() < 1.5 * known:
                return
            if self._arena.entries > self._arena.limits.arena_entries // 2:
                return  # later processes need room for what they explore themselves
            try:
                terms = self._arena.terms.all()
                graph = dump(self._tables(), [*terms, *_parts(self._arena.machine)])
                # Terms that another thread makes meanwhile would be told from equal ones.
                if len(self._arena.terms.all()) == len(terms):
                    self._shelf.write(dump((_written(terms), graph)))
            except SnapshotError as error:
                _LOG.debug("what masks explored is not kept: %s", error)

    def _tables(self) -> tuple[dict[Any, Any], ...]:
        return *self._arena.tables(), *self._explorer.tables()


def _written(terms: list[Term]) -> list[_Written]:
    numbers = {term: number for number, term in enumerate(terms)}
    return [(term.head, term.index, tuple([numbers[arg] for arg in term.args])) for term in terms]


def _read(written: list[_Written], terms: Terms) -> list[Term]:
    """The terms, those that the table has as they are there. Arguments come before what they are arguments of."""
    found: list[Term] = []
    for head, index, args in written:
        found.append(terms.var(index) if index >= 0 else terms.con(head, tuple([found[arg] for arg in args])))
    return found


def _parts(machine: Machine) -> list[object]:
    """What the tables refer to of a machine, in an order that depends on its grammar alone."""
    found: list[object] = [machine, machine.initial, machine.initial.scope, machine.initial.inner]
    for production in (production for group in machine.productions for production in group):
        found.append(production)
        found += production.positions
    return found
