"""The witness harness: every kind of prefix of a step, for every tool and position, with a text that completes it.

The cases are made from complete steps: Γ gets a binding of the demanded type for each position, the step is spelled in
a dialect, and cut where its tree says that a position begins, is half written, or ends. What is cut off is the witness.
A case holds when no prefix is LOST on the way, the witness completes it, what is read back is the step, and the
oracle's own search does not claim that nothing completes it; whether it finds something within its bound is told too,
and whether the prefix is LOST without the bindings.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from aufbau import Node, Verdict
from aufbau.witness import Outcome
from dialects.base import LoweredDialect
from dialects.errors import ReadingError
from dialects.reader import argument_nodes, labelled
from dialects.steps import (
    Call,
    Expression,
    Let,
    ListLiteral,
    Literal,
    LiteralValue,
    RecordLiteral,
    Reference,
    Return,
    Step,
)
from registry import Tool
from registry.types import DateType, EnumType, ListType, OptionalType, RecordType, ScalarType, ToolType

# Of the oracle's search for a completion of its own, for each case.
SEARCH_STEPS = 2_000


class Position(Enum):
    """Where a step is cut."""

    NOTHING = "nothing yet"
    BINDER = "a name to bind"
    BOUND = "a call to bind"
    OPENED = "call opened"
    DEMANDED = "demanded by position"
    KEYWORD = "demanded by keyword"
    REFERENCE = "half a reference"
    FIELD = "half a field of a record"
    LITERAL = "half a literal"
    CALL = "half a nested call"
    GIVEN = "argument given"
    RETURN = "return opened"


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A prefix and a witness of it."""

    dialect: str
    owner: str  # the tool, or the type that is returned
    part: str  # the parameter, if the case is about one
    position: Position
    prefix: str
    witness: str
    step: Step
    context: Mapping[str, ToolType]
    output: ToolType


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """What the oracle makes of a case."""

    case: Case
    live: bool  # no prefix up to the cut is lost
    completed: bool  # the witness completes it, and the step is read back
    search: Outcome  # of the oracle's own search for a completion
    needed: bool  # without the bindings, the prefix or what is demanded next is lost

    @property
    def holds(self) -> bool:
        """Whether the case is as it should be."""
        return self.live and self.completed and self.search is not Outcome.NONE


def cases(lowered: LoweredDialect) -> Iterator[Case]:
    """All cases of a lowered language, without repetition of prefixes in one place."""
    for index, tool in enumerate(lowered.registry.values()):
        yield from _distinct(_of_tool(lowered, tool, first=index == 0))
    results = {tool.returns.name: tool.returns for tool in lowered.registry.values()}
    for kind in results.values():
        yield from _distinct(_of_return(lowered, kind))


def judge(lowered: LoweredDialect, case: Case) -> Judged:
    """Ask the oracle."""
    prefix = lowered.start(case.context, case.output)
    live = True
    for byte in case.prefix.encode():
        prefix = prefix.feed(bytes((byte,)))
        live = live and prefix.verdict is not Verdict.LOST
    tree = prefix.feed(case.witness).tree()
    completed = tree is not None and repr(lowered.read_step(tree)) == repr(case.step)
    own = prefix.witness(max_steps=SEARCH_STEPS)
    # A text that the oracle found and then refuses would be as wrong as none.
    refused = own.text is not None and prefix.feed(own.text).verdict is not Verdict.SATISFIED
    bare = lowered.start({}, case.output).feed(case.prefix)
    return Judged(
        case=case,
        live=live,
        completed=completed,
        search=Outcome.NONE if refused else own.outcome,
        needed=bare.verdict is Verdict.LOST,
    )


@dataclass(slots=True)
class _Names:
    """Γ of a case: a binding for each type that is asked for."""

    lowered: LoweredDialect
    context: dict[str, ToolType] = field(default_factory=dict)

    def of(self, kind: ToolType, wish: str) -> Reference:
        """A name of this type."""
        name = f"given_{wish}"
        while name in self.lowered.words or self.context.get(name, kind) != kind:
            name += "_"
        self.context[name] = kind
        return Reference(name=name)

    def written(self, kind: ToolType, wish: str) -> Expression | None:
        """An expression of this type that is no name, or None; its parts without a literal are names."""
        match kind:
            case ScalarType():
                return Literal(value=_EXAMPLES[kind.name])
            case DateType():
                return Literal(value=datetime.date(2026, 1, 2))
            case EnumType():
                return Literal(value=kind.members[0])
            case OptionalType():
                return Literal(value=None)
            case ListType():
                return ListLiteral(items=(self.whole(kind.item, wish),))
            case RecordType() if kind in self.lowered.universe.written:
                parts = [(part.name, self.whole(part.type, part.name)) for part in kind.fields if part.required]
                return RecordLiteral(type=kind.name, fields=tuple(parts))
            case _:
                return None

    def whole(self, kind: ToolType, wish: str) -> Expression:
        """An expression of this type, written out where that is possible."""
        return self.written(kind, wish) or self.of(kind, wish)

    def call(self, tool: Tool) -> Call:
        """The tool applied to what it requires."""
        required = [part for part in tool.parameters if part.required]
        return Call(tool=tool.name, arguments=tuple((part.name, self.of(part.type, part.name)) for part in required))


_EXAMPLES: dict[str, LiteralValue] = {"string": "solar storms", "int": 1859, "float": 1.5, "bool": True}


def _of_tool(lowered: LoweredDialect, tool: Tool, *, first: bool) -> Iterator[Case]:
    names = _Names(lowered)
    arguments: tuple[tuple[str, Expression], ...] = tuple(
        (part.name, names.of(part.type, part.name)) for part in tool.parameters
    )
    whole = Let(name="fresh", call=Call(tool=tool.name, arguments=arguments))
    cut = _Cut(lowered, names, whole, tool.returns, tool.name)
    if first:
        yield cut.at(Position.NOTHING, "", 0)
        yield cut.at(Position.BINDER, "", cut.tree.child("x").start)
        yield cut.at(Position.BOUND, "", cut.tree.child("call").start)
    yield cut.at(Position.OPENED, "", cut.opened())
    keyed = _Cut(lowered, names, whole, tool.returns, tool.name, keywords=True)
    for index, part in enumerate(tool.parameters):
        node = cut.argument(part.name)
        yield cut.at(Position.DEMANDED, part.name, node.start)
        yield cut.at(Position.REFERENCE, part.name, _middle(node))
        yield cut.at(Position.GIVEN, part.name, node.end)
        yield keyed.at(Position.KEYWORD, part.name, keyed.argument(part.name).start)
        for position, value in _ways(lowered, names, part.type, part.name):
            changed = (*arguments[:index], (part.name, value), *arguments[index + 1 :])
            step = Let(name="fresh", call=Call(tool=tool.name, arguments=changed))
            other = _Cut(lowered, names, step, tool.returns, tool.name)
            yield other.at(position, part.name, _middle(other.argument(part.name)))


def _of_return(lowered: LoweredDialect, kind: ToolType) -> Iterator[Case]:
    names = _Names(lowered)
    cut = _Cut(lowered, names, Return(value=names.of(kind, "result")), kind, kind.name)
    node = cut.tree.child("value")
    yield cut.at(Position.RETURN, "", node.start)
    yield cut.at(Position.REFERENCE, "", _middle(node))
    for position, value in _ways(lowered, names, kind, "result"):
        other = _Cut(lowered, names, Return(value=value), kind, kind.name)
        yield other.at(position, "", _middle(other.tree.child("value")))


def _ways(lowered: LoweredDialect, names: _Names, kind: ToolType, wish: str) -> Iterator[tuple[Position, Expression]]:
    """The kinds of expressions of a type that are no bare name, each once."""
    written = names.written(kind, wish)
    if written is not None:
        yield Position.LITERAL, written
    for record in lowered.universe.records:
        for part in record.fields:
            if part.type == kind:
                yield Position.FIELD, Reference(name=names.of(record, f"{wish}_record").name, fields=(part.name,))
                break
        else:
            continue
        break
    maker = next((tool for tool in lowered.registry.values() if tool.returns == kind), None)
    if lowered.nested and maker is not None:
        yield Position.CALL, names.call(maker)


def _middle(node: Node) -> int:
    return (node.start + node.end) // 2


class _Cut:
    """A step in a dialect, with its tree, to be cut in two."""

    def __init__(
        self,
        lowered: LoweredDialect,
        names: _Names,
        step: Step,
        output: ToolType,
        owner: str,
        *,
        keywords: bool = False,
    ) -> None:
        self._lowered, self._names, self._step, self._output, self._owner = lowered, names, step, output, owner
        self._text = lowered.render_step(step, keywords=keywords).encode()
        prefix = lowered.start(names.context, output).feed(self._text)
        tree = prefix.tree()
        if tree is None:
            raise ReadingError(f"{prefix.text!r} should be a step: {prefix.explain()}")
        self.tree: Final = labelled(tree)

    def argument(self, name: str) -> Node:
        """The value of an argument."""
        return argument_nodes(labelled(self.tree.child("call")))[name]

    def opened(self) -> int:
        """Where the first argument may begin; the middle of a call that has none."""
        call = labelled(self.tree.child("call"))
        return min((node.start for node in argument_nodes(call).values()), default=_middle(call))

    def at(self, position: Position, part: str, offset: int) -> Case:
        """The case of a cut before that byte."""
        return Case(
            dialect=self._lowered.name,
            owner=self._owner,
            part=part,
            position=position,
            prefix=self._text[:offset].decode(),
            witness=self._text[offset:].decode(),
            step=self._step,
            context=dict(self._names.context),
            output=self._output,
        )


def _distinct(found: Iterator[Case]) -> Iterator[Case]:
    """One case for each prefix: where a call is opened, its first argument is demanded."""
    seen: set[str] = set()
    for case in found:
        if case.prefix not in seen:
            seen.add(case.prefix)
            yield case
