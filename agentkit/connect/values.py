"""Types of a registry as JSON Schema, and their values as JSON data, for clients that know neither.

Handles are kept here and go out as identifiers, whose schema is `{"type": "string", "x-nominal": NAME}`: our own client
reads them back as a type without literals, others as strings.
"""

from __future__ import annotations

import datetime
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final, final

from registry import BOOL, FLOAT, INT, STRING, MismatchError, Tool
from registry.jsonvalues import json_name
from registry.types import (
    ABSENT,
    DateType,
    EnumType,
    HandleType,
    Identifier,
    ListType,
    OptionalType,
    RecordType,
    ScalarType,
    ToolType,
)

_SCALARS: Final = {STRING: "string", INT: "integer", FLOAT: "number", BOOL: "boolean"}
# Handles that are kept; the one that was used longest ago goes first.
HANDLES: Final = 10_000


def input_schema(tool: Tool) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments."""
    definitions: dict[str, Any] = {}
    properties = {}
    for part in tool.parameters:
        schema = _schema(part.type, definitions)
        if part.description:
            schema["description"] = part.description
        if not part.required and part.default is not None:
            schema["default"] = plain_value(part.type, part.default)
        properties[part.name] = schema
    required = [part.name for part in tool.parameters if part.required]
    return _object(properties, required, definitions)


def output_schema(tool: Tool) -> dict[str, Any]:
    """The JSON Schema of a tool's result, wrapped in an object under `result`."""
    definitions: dict[str, Any] = {}
    return _object({"result": _schema(tool.returns, definitions)}, ["result"], definitions)


def plain_value(kind: ToolType, value: object) -> object:
    """A value without handles as JSON data."""
    return Handles().encode(kind, value)


def _object(properties: Mapping[str, Any], required: list[str], definitions: Mapping[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    if required:
        schema["required"] = required
    return {**schema, "$defs": dict(definitions)} if definitions else schema


def _schema(kind: ToolType, definitions: dict[str, Any]) -> dict[str, Any]:
    match kind:
        case ScalarType():
            return {"type": _SCALARS[kind]}
        case DateType():
            return {"type": "string", "format": "date"}
        case ListType():
            return {"type": "array", "items": _schema(kind.item, definitions)}
        case OptionalType():
            return {"anyOf": [_schema(kind.item, definitions), {"type": "null"}]}
        case HandleType():
            item = _schema(kind.item, definitions) if kind.item is not None else {"type": "string"}
            return {**item, "x-nominal": kind.name}
    if kind.name not in definitions:
        definitions[kind.name] = {}  # kept free, for the name's place
        definitions[kind.name] = _definition(kind, definitions)
    return {"$ref": f"#/$defs/{kind.name}"}


def _definition(kind: EnumType | RecordType, definitions: dict[str, Any]) -> dict[str, Any]:
    if isinstance(kind, EnumType):
        return {"type": "string", "enum": list(kind.members)}
    properties = {json_name(kind, part.name): _schema(part.type, definitions) for part in kind.fields}
    required = [json_name(kind, part.name) for part in kind.fields if part.required]
    return _object(properties, required, {})


@final
class Handles:
    """Values of handle types, by the identifiers under which clients know them."""

    def __init__(self) -> None:
        self._values: OrderedDict[str, object] = OrderedDict()
        self._count = 0

    def encode(self, kind: ToolType, value: object) -> object:
        """A value as JSON data."""
        match kind:
            case OptionalType():
                return None if value is None else self.encode(kind.item, value)
            case ListType() if isinstance(value, list):
                return [self.encode(kind.item, item) for item in value]
            case DateType() if isinstance(value, datetime.date):
                return value.isoformat()
            case EnumType():
                return kind.spelling(value)
            case RecordType():
                content = {part: getattr(value, part.name) for part in kind.fields}
                return {
                    json_name(kind, part.name): self.encode(part.type, item)
                    for part, item in content.items()
                    if item is not ABSENT
                }
            case HandleType():
                if kind.item is not None:
                    return value.value if isinstance(value, Identifier) else value
                return self._keep(kind, value)
        return value

    def decode(self, kind: ToolType, data: object) -> object:
        """JSON data as a value; what does not fit is left as it is, for the tool's own check to refuse.

        Raises `MismatchError` for a handle that is not, or no longer, kept.
        """
        match kind:
            case OptionalType():
                return None if data is None else self.decode(kind.item, data)
            case ListType() if isinstance(data, list):
                return [self.decode(kind.item, item) for item in data]
            case DateType() if isinstance(data, str):
                return _date(data)
            case RecordType() if isinstance(data, Mapping):
                return self._record(kind, data)
            case HandleType():
                return self._handle(kind, data)
        return data

    def _keep(self, kind: HandleType, value: object) -> str:
        self._count += 1
        name = f"{kind.name}-{self._count}"
        self._values[name] = value
        if len(self._values) > HANDLES:
            self._values.popitem(last=False)
        return name

    def _handle(self, kind: HandleType, data: object) -> object:
        if kind.item is not None:
            return Identifier(type=kind.name, value=kind.item.validate(data))
        if not isinstance(data, str) or data not in self._values:
            raise MismatchError(f"a {kind.name} that a tool returned", data)
        self._values.move_to_end(data)
        return self._values[data]

    def _record(self, kind: RecordType, data: Mapping[str, object]) -> object:
        names = {json_name(kind, part.name): part for part in kind.fields}
        unknown = [key for key in data if key not in names]
        if unknown:
            raise MismatchError(f"a {kind.name} with no field but {', '.join(names)}", dict(data))
        return kind.build({names[key].name: self.decode(names[key].type, item) for key, item in data.items()})


def _date(text: str) -> object:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        return text
