"""From JSON Schema (draft 2020-12, as tool definitions use it) to types: one type each, or a refusal with its place.

What shapes a type is read; what only describes is kept or skipped (`ANNOTATIONS`); what bounds values without shaping
them (`CONSTRAINTS`) is left to `registry.constraints`, which checks it at each call. Every other keyword is refused.
"""

from __future__ import annotations

import dataclasses
import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from registry.errors import MismatchError, SchemaError
from registry.jsonvalues import from_json
from registry.types import (
    ABSENT,
    BOOL,
    DATE,
    FLOAT,
    INT,
    RESERVED_TYPE_NAMES,
    STRING,
    EnumType,
    Field,
    HandleType,
    ListType,
    OptionalType,
    RecordType,
    ToolType,
    nominal,
)

ANNOTATIONS: Final = frozenset(
    [
        "title",
        "description",
        "examples",
        "example",
        "default",
        "deprecated",
        "readOnly",
        "writeOnly",
        "$comment",
        "$schema",
        "$id",
    ]
)
CONSTRAINTS: Final = frozenset(
    [
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "minItems",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
    ]
)
# Formats that the standard lets stand as descriptions; `date` is a type here.
FORMATS: Final = frozenset(
    [
        "date",
        "date-time",
        "time",
        "duration",
        "email",
        "idn-email",
        "hostname",
        "idn-hostname",
        "ipv4",
        "ipv6",
        "uri",
        "uri-reference",
        "iri",
        "uuid",
        "int32",
        "int64",
        "float",
        "double",
        "password",
    ]
)
NOMINAL: Final = "x-nominal"

_SCALAR: Final = frozenset({"type", "enum", "const", "format", NOMINAL})
_SHAPES: Final[Mapping[str, frozenset[str]]] = {
    "string": _SCALAR,
    "integer": _SCALAR,
    "number": _SCALAR,
    "boolean": _SCALAR,
    "null": frozenset({"type"}),
    "array": frozenset({"type", "items"}),
    "object": frozenset({"type", "properties", "required", "additionalProperties"}),
}
_SCALARS: Final[Mapping[str, ToolType]] = {"string": STRING, "integer": INT, "number": FLOAT, "boolean": BOOL}
_MEMBER_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class SchemaReader:
    """Reads the schemas of one document; `root` is what `$ref` points into.

    With `opaque`, what states no shape (no type, a map, an object without properties, a union) becomes a handle named
    after its place, which can be passed on but not written; otherwise it is refused.
    """

    root: Mapping[str, Any]
    opaque: bool = False
    within: tuple[str, ...] = field(default=())  # the references being followed, to notice recursion

    def read(self, schema: object, name: str, pointer: str = "#") -> ToolType:
        """The type of a schema; `name` is the spelling of what has no name of its own. Raises `SchemaError`."""
        if schema is True or schema == {}:
            return self._opaque(name, pointer, "it states no type")
        if not isinstance(schema, Mapping):
            raise SchemaError(pointer, f"a schema is an object, not {schema!r}")
        if "$ref" in schema:
            return self._reference(schema, pointer)
        for union in ("anyOf", "oneOf", "allOf"):
            if union in schema:
                return self._union(schema, union, name, pointer)
        kinds = schema.get("type")
        if isinstance(kinds, list):
            return self._alternatives(schema, kinds, name, pointer)
        return self._single(schema, kinds, name, pointer)

    def _single(self, schema: Mapping[str, Any], kind: object, name: str, pointer: str) -> ToolType:
        if kind is None:
            kind = self._implied(schema)
            if kind is None and "enum" in schema:
                raise SchemaError(f"{pointer}/enum", "an enum is a list of at least one value, all of one kind")
            if kind is None:
                self._known(schema, frozenset(), pointer)
                return self._opaque(name, pointer, "it states no type")
        if not isinstance(kind, str) or kind not in _SHAPES:
            raise SchemaError(f"{pointer}/type", f"there is no type {kind!r}; known: {', '.join(_SHAPES)}")
        self._known(schema, _SHAPES[kind], pointer)
        if kind == "null":
            raise SchemaError(f"{pointer}/type", "null alone has no value to use; write anyOf with a type beside it")
        if kind == "array":
            if "items" not in schema:
                return self._opaque(name, pointer, "an array says nothing of its items; give items")
            return ListType(self.read(schema["items"], f"{name}_item", f"{pointer}/items"))
        if kind == "object":
            return self._object(schema, name, pointer)
        return self._scalar(schema, kind, name, pointer)

    def _scalar(self, schema: Mapping[str, Any], kind: str, name: str, pointer: str) -> ToolType:
        form = schema.get("format")
        if form is not None and form not in FORMATS:
            raise SchemaError(f"{pointer}/format", f"the format {form!r} is not known here; drop it")
        if NOMINAL in schema:
            if kind not in ("string", "integer") or "enum" in schema or "const" in schema:
                raise SchemaError(f"{pointer}/{NOMINAL}", "only a string or an integer without members can be one")
            return nominal(_type_name(schema[NOMINAL], f"{pointer}/{NOMINAL}"), _SCALARS[kind])
        members = schema["enum"] if "enum" in schema else [schema["const"]] if "const" in schema else None
        if members is not None and (not isinstance(members, list) or not members):
            raise SchemaError(f"{pointer}/enum", "an enum is a list of at least one value")
        for member in members or ():
            if type(member) not in _MEMBER_TYPES[kind]:
                raise SchemaError(f"{pointer}/enum", f"{member!r} is no {kind}; for null write anyOf with null")
        if members is not None and kind == "string":
            return EnumType(name=_type_name(name, pointer), members=tuple(dict.fromkeys(members)))
        # Members that are no strings bound the values; `registry.constraints` checks them.
        return DATE if kind == "string" and form == "date" else _SCALARS[kind]

    def _object(self, schema: Mapping[str, Any], name: str, pointer: str) -> ToolType:
        properties = schema.get("properties", {})
        if not isinstance(properties, Mapping):
            raise SchemaError(f"{pointer}/properties", "properties are an object")
        more = schema.get("additionalProperties", False)
        if isinstance(more, Mapping) or (more is True and not properties):
            return self._opaque(name, f"{pointer}/additionalProperties", "a map has no fields to name")
        if not properties:
            return self._opaque(name, pointer, "an object without properties has no fields to name")
        required = schema.get("required", [])
        fields = []
        for key, part in properties.items():
            place = f"{pointer}/properties/{_escape(key)}"
            kind = self.read(part, f"{name}_{identifier(key)}", place)
            default = default_of(part, kind, place)
            fields.append(
                _Part(
                    name=field_name(key),
                    key=key,
                    type=kind,
                    required=key in required,
                    default=default,
                    spelled=repr(default),
                )
            )
        unknown = [key for key in required if key not in properties]
        if unknown:
            raise SchemaError(f"{pointer}/required", f"{unknown[0]!r} is not among the properties")
        return _record(_type_name(name, pointer), tuple(fields), pointer)

    def _reference(self, schema: Mapping[str, Any], pointer: str) -> ToolType:
        self._known(schema, frozenset({"$ref"}), pointer)
        target = schema["$ref"]
        if target in self.within:
            raise SchemaError(f"{pointer}/$ref", f"{target} contains itself; describe it by an identifier instead")
        found = resolve(self.root, target, pointer)
        reader = dataclasses.replace(self, within=(*self.within, target))
        return reader.read(found, identifier(str(target).rpartition("/")[2]), target)

    def _union(self, schema: Mapping[str, Any], union: str, name: str, pointer: str) -> ToolType:
        self._known(schema, frozenset({union}), pointer)
        members = schema[union]
        if not isinstance(members, list) or not members:
            raise SchemaError(f"{pointer}/{union}", "it is a list of at least one schema")
        others = [(index, part) for index, part in enumerate(members) if part != {"type": "null"}]
        if len(others) != 1:
            return self._opaque(name, f"{pointer}/{union}", "it joins several types; use one of them, or one and null")
        index, only = others[0]
        item = self.read(only, name, f"{pointer}/{union}/{index}")
        return OptionalType(item) if len(members) > 1 and not isinstance(item, OptionalType) else item

    def _alternatives(self, schema: Mapping[str, Any], kinds: list[Any], name: str, pointer: str) -> ToolType:
        others = [kind for kind in kinds if kind != "null"]
        if len(others) != 1:
            return self._opaque(name, f"{pointer}/type", f"{kinds} are several types; use one of them, or one and null")
        members = schema.get("enum")
        if isinstance(members, list):
            schema = {**schema, "enum": [member for member in members if member is not None]}
        item = self._single(schema, others[0], name, pointer)
        return OptionalType(item) if len(kinds) > 1 else item

    def _implied(self, schema: Mapping[str, Any]) -> str | None:
        """The type that enum or const members share; properties imply an object."""
        members = schema.get("enum", [schema["const"]] if "const" in schema else [])
        names = {str: "string", bool: "boolean", int: "integer", float: "number"}
        kinds = {names.get(type(member)) for member in members} if isinstance(members, list) else set()
        if len(kinds) == 1:
            return kinds.pop()
        return "object" if "properties" in schema else "array" if "items" in schema else None

    def _known(self, schema: Mapping[str, Any], shapes: frozenset[str], pointer: str) -> None:
        """Refuse a keyword that would otherwise be ignored."""
        for word in schema:
            if word not in shapes | ANNOTATIONS | CONSTRAINTS | {"$defs", "definitions"}:
                raise SchemaError(f"{pointer}/{_escape(word)}", f"the keyword {word!r} is not supported here; drop it")

    def _opaque(self, name: str, pointer: str, reason: str) -> ToolType:
        if not self.opaque:
            raise SchemaError(pointer, f"{reason}, so that no step could write it")
        return HandleType(name=_type_name(name, pointer), python_type=object)


def resolve(root: Mapping[str, Any], target: object, pointer: str) -> object:
    """What a `$ref` within the document points to. Raises `SchemaError`."""
    if not isinstance(target, str) or not target.startswith("#/"):
        raise SchemaError(f"{pointer}/$ref", f"{target!r} lies outside the document; put it under $defs")
    found: object = root
    for part in target[2:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, Mapping) or key not in found:
            raise SchemaError(f"{pointer}/$ref", f"{target} does not exist in the document")
        found = found[key]
    return found


def identifier(name: str) -> str:
    """A name as an identifier: characters that none has become `_`."""
    text = re.sub(r"\W", "_", name, flags=re.ASCII)
    return text if text and not text[0].isdigit() else f"_{text}"


def field_name(name: str) -> str:
    """A property's name as that of a field, which no word of Python's own can be."""
    text = identifier(name)
    return f"{text}_" if keyword.iskeyword(text) else text


def default_of(schema: object, kind: ToolType, pointer: str) -> object:
    """The default that a schema states, or `ABSENT`. Raises `SchemaError` where it is not of the type."""
    if not isinstance(schema, Mapping) or "default" not in schema:
        return ABSENT
    try:
        return kind.validate(from_json(kind, schema["default"]))
    except MismatchError as error:
        raise SchemaError(f"{pointer}/default", str(error)) from error


def _type_name(name: object, pointer: str) -> str:
    if not isinstance(name, str) or not name.isidentifier():
        raise SchemaError(pointer, f"{name!r} can't name a type; use an identifier")
    return f"{name}_" if name in RESERVED_TYPE_NAMES else name


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _record(name: str, parts: tuple[_Part, ...], pointer: str) -> RecordType:
    seen: dict[str, str] = {}
    for part in parts:
        if part.name in seen:
            raise SchemaError(pointer, f"{seen[part.name]!r} and {part.key!r} would both be {part.name}; rename one")
        seen[part.name] = part.key
    fields = tuple(
        Field(
            name=part.name,
            type=part.type,
            required=part.required,
            default=None if part.default is ABSENT else part.default,
        )
        for part in parts
    )
    return RecordType(name=name, fields=fields, python_type=_class(name, parts))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Part:
    """A property; `spelled` stands for the default, which may have no hash."""

    name: str
    key: str
    type: ToolType
    required: bool
    default: object = field(compare=False)
    spelled: str


@cache
def _class(name: str, parts: tuple[_Part, ...]) -> type:
    """The class of a record: equal schemas share one, so that their types are equal."""
    fields: list[tuple[str, Any, Any]] = []
    for part in parts:
        metadata = {"json": part.key}
        default = part.default
        if part.required:
            own = dataclasses.field(metadata=metadata)
        elif isinstance(default, list):
            own = dataclasses.field(default_factory=default.copy, metadata=metadata)
        else:
            own = dataclasses.field(default=default, metadata=metadata)
        fields.append((part.name, object, own))
    return dataclasses.make_dataclass(name, fields, frozen=True, kw_only=True)
