"""A text as the engine reads it, without the façade: what searches for continuations begin, feed and ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from aufbau.earley.arena import Arena
from aufbau.earley.machine import Machine
from aufbau.earley.parser import Parser
from aufbau.errors import StartError, TypeTextError
from aufbau.lexer.state import Hypothesis, Reader
from aufbau.limits import Limits
from aufbau.typesystem.context import Context
from aufbau.typesystem.syntax import TypeReadError
from aufbau.typesystem.terms import Term
from aufbau.verdict import Verdict


@final
class Reading:
    """The hypotheses after some text; persistent, as a `Prefix` is."""

    __slots__ = ("hypotheses", "lost_at", "reader", "text")

    def __init__(
        self, reader: Reader, hypotheses: tuple[Hypothesis, ...], text: bytes = b"", lost_at: int | None = None
    ) -> None:
        self.reader: Final = reader
        self.hypotheses: Final = hypotheses
        self.text: Final = text
        self.lost_at: Final = lost_at

    @classmethod
    def begin(
        cls,
        machine: Machine,
        *,
        context: Mapping[str, str] | None = None,
        goal: str | None = None,
        ambient: Mapping[str, str] | None = None,
    ) -> Reading:
        """The empty text, with tables of its own. Raises `StartError` and `TypeTextError`."""
        reader, _, start = begin(Arena(machine, Limits()), context=context, goal=goal, ambient=ambient)
        return cls(reader, start, b"", None if start else 0)

    def feed(self, text: bytes) -> Reading:
        """The reading of a longer text."""
        if self.lost_at is not None:
            return Reading(self.reader, (), self.text + text, self.lost_at)
        hypotheses = self.hypotheses
        for offset, byte in enumerate(text, len(self.text)):
            hypotheses = self.reader.step(hypotheses, byte, offset)
            if not hypotheses:
                return Reading(self.reader, (), self.text + text, offset)
        return Reading(self.reader, hypotheses, self.text + text)

    @property
    def verdict(self) -> Verdict:
        """LIVE, SATISFIED or LOST, as of a `Prefix`."""
        if self.lost_at is not None:
            return Verdict.LOST
        automaton = self.reader.parser.machine.automaton
        for hypothesis in self.hypotheses:
            if not hypothesis.length:
                if hypothesis.items.roots:
                    return Verdict.SATISFIED
            elif automaton.accepts[hypothesis.state] and any(
                items.roots for items, _ in self.reader.finished(hypothesis)
            ):
                return Verdict.SATISFIED
        return Verdict.LIVE


def begin(
    arena: Arena,
    *,
    context: Mapping[str, str] | None = None,
    goal: str | None = None,
    ambient: Mapping[str, str] | None = None,
) -> tuple[Reader, Context, tuple[Hypothesis, ...]]:
    """The reader of a text, Γ before it, and the first hypotheses: none when nothing can be written.

    Raises `StartError` for a name that no terminal spells, `TypeTextError` for a type that can't be read.
    """
    machine = arena.machine
    gamma = machine.initial.renewed()
    for key, text in (ambient or {}).items():
        what = f"the type of the ambient key {key!r}"
        found = read_type(arena, text, what)
        if not found.ground:
            raise TypeTextError(f"{what} has a hole: {text}; what is in scope needs a whole type")
        gamma = gamma.bind_ambient(key, found)
    for name, text in (context or {}).items():
        if not machine.automaton.classify(name.encode()) & machine.name_mask:
            raise StartError(
                f"{name!r} can't be a name in scope: the grammar has no terminal for names that spells it "
                "(it may be a reserved word)"
            )
        gamma = gamma.bind(name, arena.terms.generalise(read_type(arena, text, f"the type of the name {name!r}")))
    demand = None if goal is None else read_type(arena, goal, "the goal")
    parser = Parser(arena)
    root, first = parser.begin(gamma, demand)
    reader = Reader(parser, root)
    alive = bool(first.roots) or reader.viable(first)
    return reader, gamma, (Hypothesis(first, machine.automaton.start, 0, False, ()),) if alive else ()


def read_type(arena: Arena, text: str, what: str) -> Term:
    """A type that a caller wrote, its holes as variables."""
    holes: dict[str, Term] = {}
    try:
        return arena.machine.syntax.read(
            text, terms=arena.terms, hole=lambda name: holes.setdefault(name, arena.terms.var(len(holes)))
        )
    except TypeReadError as error:
        hint = f" ({error.hint})" if error.hint else ""
        raise TypeTextError(f"{what}: {error.message}{hint}") from error
