"""What may come next, as people and prompts want to read it: literals, terminals, and names in scope with types."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from aufbau.earley.chart import Item
from aufbau.earley.machine import NO_SLOT
from aufbau.lexer.state import Hypothesis, Reader


class ExpectationKind(Enum):
    """What sort of lexeme is expected."""

    LITERAL = "literal"  # exactly this text
    NAME = "name"  # a name in scope
    FRESH = "fresh"  # a name that is not in scope yet
    TERMINAL = "terminal"  # any text of a regex


@dataclass(frozen=True, kw_only=True, slots=True)
class Expectation:
    """One lexeme that may come next (whole, where one has begun), with the type that it would have."""

    kind: ExpectationKind
    text: str  # the literal, the name, or the pattern of the terminal
    type: str | None = None

    def __str__(self) -> str:
        shown = {
            ExpectationKind.LITERAL: repr(self.text),
            ExpectationKind.NAME: self.text,
            ExpectationKind.FRESH: f"a fresh name /{self.text}/",
            ExpectationKind.TERMINAL: f"/{self.text}/",
        }[self.kind]
        return shown + (f" : {self.type}" if self.type else "")


def expectations(reader: Reader, hypotheses: tuple[Hypothesis, ...]) -> list[Expectation]:
    """What can follow the hypotheses: the rest of an unfinished lexeme, and what comes after a finished one."""
    found: dict[Expectation, None] = {}
    for hypothesis in hypotheses:
        _collect(reader, hypothesis, found)
        if hypothesis.length:
            start = reader.parser.machine.automaton.start
            for items, gap in reader.finished(hypothesis):
                _collect(reader, Hypothesis(items, start, hypothesis.start, gap, ()), found)
    order = list(ExpectationKind)
    return sorted(found, key=lambda e: (order.index(e.kind), e.text, e.type or ""))


def _collect(reader: Reader, hypothesis: Hypothesis, found: dict[Expectation, None]) -> None:
    for mask, expecting in hypothesis.items.expected.items():
        for item in expecting:
            if reader.takes(item, mask, hypothesis.state, hypothesis.text):
                _lexemes(reader, item, mask, hypothesis, found)


def _lexemes(reader: Reader, item: Item, mask: int, hypothesis: Hypothesis, found: dict[Expectation, None]) -> None:
    machine = reader.parser.machine
    position = item.production.positions[item.dot]
    if position.member or position.lookups:
        for name, bound in reader.names(item, mask, hypothesis.text):
            shown = machine.syntax.render(bound)
            found.setdefault(Expectation(kind=ExpectationKind.NAME, text=name, type=shown))
        return
    if position.slot != NO_SLOT:
        required = item.slots[item.record.holes + position.slot]
        if required.index < 0:
            found.setdefault(Expectation(kind=ExpectationKind.LITERAL, text=required.head))
            return
    more = machine.automaton.more[hypothesis.state] & mask
    bound_type = _type_of_leaf(reader, item)
    for terminal, text in enumerate(machine.terminals):
        if more >> terminal & 1:
            kind = ExpectationKind.TERMINAL
            if machine.terminal_is_literal[terminal]:
                kind = ExpectationKind.LITERAL
            elif position.fresh:
                kind = ExpectationKind.FRESH
            found.setdefault(Expectation(kind=kind, text=text, type=bound_type))


def _type_of_leaf(reader: Reader, item: Item) -> str | None:
    """The type of a node that consists of this lexeme alone, such as a literal."""
    result = item.slots[item.record.holes]
    if len(item.production.positions) > 1 or not result.ground or result is reader.parser.arena.terms.top:
        return None
    return reader.parser.machine.syntax.render(result) if item.production.composes is False else None
