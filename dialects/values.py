"""Turns values back into the expressions that denote them: the way from Γ to text, whatever the surface."""

from __future__ import annotations

import datetime

from dialects.errors import SpellingError
from dialects.steps import Expression, ListLiteral, Literal, RecordLiteral
from registry.types import DateType, EnumType, ListType, OptionalType, RecordType, ScalarType, ToolType


def expression_of(value: object, kind: ToolType) -> Expression:
    """An expression without references that denotes a value of this type.

    Raises `SpellingError` for a handle, and the registry's `MismatchError` for a value that is not of the type.
    """
    match kind:
        case OptionalType():
            return Literal(value=None) if value is None else expression_of(value, kind.item)
        case ListType() if isinstance(value, list):
            return ListLiteral(items=tuple(expression_of(item, kind.item) for item in value))
        case RecordType():
            fields = tuple((part.name, expression_of(kind.read(value, part.name), part.type)) for part in kind.fields)
            return RecordLiteral(type=kind.name, fields=fields)
        case EnumType():
            return Literal(value=kind.spelling(value))
        case ScalarType() | DateType():
            checked = kind.validate(value)
            if isinstance(checked, str | int | float | datetime.date):
                return Literal(value=checked)
    raise SpellingError(f"a {kind.name} can't be written as a literal; refer to a bound name that holds it")
