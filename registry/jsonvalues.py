"""Values of types as JSON data and back: how functions described by JSON Schema take arguments and give results."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping

from registry.types import ABSENT, DateType, EnumType, ListType, OptionalType, RecordType, ToolType


def json_name(record: RecordType, name: str) -> str:
    """The property behind a field, whose own name may have characters that no identifier has."""
    if dataclasses.is_dataclass(record.python_type):
        for part in dataclasses.fields(record.python_type):
            if part.name == name:
                return str(part.metadata.get("json", name))
    return name


def to_json(kind: ToolType, value: object) -> object:
    """A value of a type as JSON data; fields left out stay out."""
    match kind:
        case OptionalType() if value is not None:
            return to_json(kind.item, value)
        case ListType() if isinstance(value, list):
            return [to_json(kind.item, item) for item in value]
        case DateType() if isinstance(value, datetime.date):
            return value.isoformat()
        case EnumType() if value is not None:
            return kind.spelling(value)
        case RecordType() if isinstance(value, kind.python_type):
            content = {part: getattr(value, part.name) for part in kind.fields}
            return {
                json_name(kind, part.name): to_json(part.type, item)
                for part, item in content.items()
                if item is not ABSENT
            }
    return value


def from_json(kind: ToolType, data: object) -> object:
    """JSON data as a value of a type; what does not fit is left as it is, for `validate` to refuse.

    Properties that a record does not name are dropped.
    """
    match kind:
        case OptionalType() if data is not None:
            return from_json(kind.item, data)
        case ListType() if isinstance(data, list | tuple):
            return [from_json(kind.item, item) for item in data]
        case DateType() if isinstance(data, str):
            return _date(data)
        case RecordType() if isinstance(data, Mapping):
            return _record(kind, data)
    return data


def _record(kind: RecordType, data: Mapping[str, object]) -> object:
    given = {}
    for part in kind.fields:
        key = json_name(kind, part.name)
        if key in data:
            given[part.name] = from_json(part.type, data[key])
        elif part.required:
            return data
        elif part.default is not None:
            given[part.name] = part.default
    return kind.python_type(**given)


def _date(text: str) -> object:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        return text
