"""Executes one step: evaluates references, fields and literals, calls the tool, and returns what would be bound.

Nothing is committed here: Γ is immutable, and the caller binds the outcome or does not.
"""

from __future__ import annotations

import datetime
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from dialects import (
    Call,
    Expression,
    Let,
    ListLiteral,
    Literal,
    RecordLiteral,
    Reference,
    Step,
    Universe,
)
from episodes.context import Binding, Bindings
from episodes.errors import BoundNameError, FieldError, StepError, near_miss
from episodes.outcome import Bound, Returned, StepOutcome
from registry import MismatchError, Registry, Tool
from registry.types import BOOL, DATE, FLOAT, INT, STRING, ListType, RecordType, ToolType

Caller = Callable[[Tool, Mapping[str, object]], Awaitable[object]]


async def execute_step(
    step: Step,
    bindings: Bindings,
    registry: Registry,
    *,
    output_type: ToolType | None = None,
    timeout: float | None = None,
    caller: Caller | None = None,
) -> StepOutcome:
    """Execute a step under Γ; `timeout` is in seconds for each tool call.

    `caller` makes the calls instead, innermost first, and gives their checked results.
    Raises `StepError` for a step that Γ does not admit; what the tool raises is the registry's error.
    """
    evaluation = _Evaluation(
        bindings=bindings, registry=registry, output_type=output_type, timeout=timeout, caller=caller
    )
    if isinstance(step, Let):
        if step.name in bindings:
            raise BoundNameError(f"{step.name!r} is bound already ({bindings[step.name]}); choose a fresh name")
        typed = await evaluation.call(step.call)
        return Bound(binding=Binding(name=step.name, type=registry[step.call.tool].returns, value=typed.value))
    typed = await evaluation.evaluate(step.value)
    if output_type is None:
        return Returned(value=typed.value, type=typed.type)
    try:
        return Returned(value=output_type.validate(typed.value), type=output_type)
    except MismatchError as error:
        raise StepError(f"return: {error}") from error


async def known_arguments(call: Call, bindings: Bindings, registry: Registry) -> dict[str, object]:
    """The arguments of a call before anything is called: one that needs a call itself is given as its expression."""
    evaluation = _Evaluation(bindings=bindings, registry=registry, output_type=None, timeout=None, caller=_Unknown.meet)
    known: dict[str, object] = {}
    for name, expression in call.arguments:
        try:
            known[name] = (await evaluation.evaluate(expression)).value
        except _Unknown:
            known[name] = expression
    return known


class _Unknown(Exception):
    """A value that only a call would tell."""

    @staticmethod
    async def meet(tool: Tool, arguments: Mapping[str, object]) -> object:
        """The caller that makes no calls."""
        raise _Unknown


@dataclass(frozen=True, slots=True)
class _Typed:
    """A value with the type that the step's text gives it; None for an empty list and for null."""

    value: object
    type: ToolType | None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Evaluation:
    bindings: Bindings
    registry: Registry
    output_type: ToolType | None
    timeout: float | None
    caller: Caller | None

    async def evaluate(self, expression: Expression) -> _Typed:
        match expression:
            case Literal():
                return _Typed(expression.value, _literal_type(expression))
            case Reference():
                return self._reference(expression)
            case ListLiteral():
                items = [await self.evaluate(item) for item in expression.items]
                return _Typed([item.value for item in items], _list_type(items))
            case RecordLiteral():
                kind = self._record_type(expression.type)
                fields = {name: (await self.evaluate(value)).value for name, value in expression.fields}
                return _Typed(kind.build(fields), kind)
            case Call():
                return await self.call(expression)

    async def call(self, call: Call) -> _Typed:
        tool = self.registry[call.tool]
        arguments = {name: (await self.evaluate(value)).value for name, value in call.arguments}
        if self.caller is not None:
            return _Typed(await self.caller(tool, arguments), tool.returns)
        return _Typed(await tool.call(arguments, timeout=self.timeout), tool.returns)

    def _reference(self, reference: Reference) -> _Typed:
        bound = self.bindings[reference.name]
        value, kind, path = bound.value, bound.type, reference.name
        for name in reference.fields:
            known = [part.name for part in kind.fields] if isinstance(kind, RecordType) else []
            if not isinstance(kind, RecordType) or name not in known:
                raise FieldError(f"{path} : {kind.name} has no field {name!r}; {near_miss(name, known)}")
            value, kind, path = kind.read(value, name), kind.field(name).type, f"{path}.{name}"
        return _Typed(value, kind)

    def _record_type(self, name: str) -> RecordType:
        extra = [*self.bindings.types().values(), *([self.output_type] if self.output_type else [])]
        records = {record.name: record for record in Universe.of(self.registry, extra).records}
        if name not in records:
            raise StepError(f"no record type is called {name!r}; {near_miss(name, records)}")
        return records[name]


def _literal_type(literal: Literal) -> ToolType | None:
    match literal.value:
        case bool():
            return BOOL
        case str():
            return STRING
        case int():
            return INT
        case float():
            return FLOAT
        case datetime.date():
            return DATE
    return None


def _list_type(items: list[_Typed]) -> ToolType | None:
    """The type of a list written out, if its items agree on theirs."""
    kinds = {item.type for item in items}
    kind = kinds.pop() if len(kinds) == 1 else None
    return None if kind is None else ListType(kind)
