"""Steps as JSON-able data and back, for transcripts: one key names the kind of each node."""

from __future__ import annotations

import datetime
from typing import Any

from dialects.steps import (
    Call,
    Expression,
    Let,
    ListLiteral,
    Literal,
    RecordLiteral,
    Reference,
    Return,
    Step,
)
from episodes.errors import TranscriptError

Data = dict[str, Any]


def step_to_data(step: Step) -> Data:
    """A step as nested dictionaries and lists."""
    if isinstance(step, Let):
        return {"let": step.name, "to": expression_to_data(step.call)}
    return {"return": expression_to_data(step.value)}


def expression_to_data(expression: Expression) -> Data:
    """An expression as nested dictionaries and lists."""
    match expression:
        case Literal(value=datetime.date() as day):
            return {"date": day.isoformat()}
        case Literal():
            return {"literal": expression.value}
        case Reference():
            return {"reference": expression.name, "fields": list(expression.fields)}
        case ListLiteral():
            return {"list": [expression_to_data(item) for item in expression.items]}
        case RecordLiteral():
            return {"record": expression.type, "with": _pairs_to_data(expression.fields)}
        case Call():
            return {"call": expression.tool, "with": _pairs_to_data(expression.arguments)}


def step_from_data(data: object) -> Step:
    """The step that `step_to_data` wrote. Raises `TranscriptError`."""
    match data:
        case {"let": str(name), "to": call}:
            bound = expression_from_data(call)
            if isinstance(bound, Call):
                return Let(name=name, call=bound)
        case {"return": value}:
            return Return(value=expression_from_data(value))
    raise TranscriptError(f"expected a step, {{'let': name, 'to': call}} or {{'return': expression}}, got {data!r}")


def expression_from_data(data: object) -> Expression:
    """The expression that `expression_to_data` wrote. Raises `TranscriptError`."""
    match data:
        case {"date": str(day)}:
            try:
                return Literal(value=datetime.date.fromisoformat(day))
            except ValueError as error:
                raise TranscriptError(f"{day!r} is no date: {error}") from error
        case {"literal": (None | bool() | int() | float() | str()) as value}:
            return Literal(value=value)
        case {"reference": str(name), "fields": [*fields]}:
            return Reference(name=name, fields=tuple(map(str, fields)))
        case {"list": [*items]}:
            return ListLiteral(items=tuple(map(expression_from_data, items)))
        case {"record": str(kind), "with": fields}:
            return RecordLiteral(type=kind, fields=_pairs_from_data(fields))
        case {"call": str(tool), "with": arguments}:
            return Call(tool=tool, arguments=_pairs_from_data(arguments))
    raise TranscriptError(f"expected an expression with one of the keys that steps are written with, got {data!r}")


def _pairs_to_data(pairs: tuple[tuple[str, Expression], ...]) -> list[list[object]]:
    return [[name, expression_to_data(value)] for name, value in pairs]


def _pairs_from_data(data: object) -> tuple[tuple[str, Expression], ...]:
    if not isinstance(data, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in data):
        raise TranscriptError(f"expected a list of [name, expression], got {data!r}")
    return tuple((str(name), expression_from_data(value)) for name, value in data)
