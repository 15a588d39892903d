"""JSON Schema: which type each schema means, what is refused at which place, and values there and back."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry import SchemaError, type_from_schema
from registry.errors import MismatchError
from registry.jsonvalues import from_json, to_json
from registry.types import (
    ABSENT,
    BOOL,
    DATE,
    FLOAT,
    INT,
    STRING,
    EnumType,
    HandleType,
    ListType,
    OptionalType,
    RecordType,
    ToolType,
    nominal,
)

Schema = dict[str, Any]

MEANINGS: list[tuple[Schema, ToolType]] = [
    ({"type": "string"}, STRING),
    ({"type": "string", "title": "a", "description": "b", "examples": ["c"], "format": "email"}, STRING),
    ({"type": "integer", "minimum": 1}, INT),
    ({"type": "number"}, FLOAT),
    ({"type": "boolean"}, BOOL),
    ({"type": "string", "format": "date"}, DATE),
    ({"type": "array", "items": {"type": "integer"}, "maxItems": 3}, ListType(INT)),
    ({"enum": ["a", "b"]}, EnumType(name="output", members=("a", "b"))),
    ({"type": "string", "enum": ["a", "a"]}, EnumType(name="output", members=("a",))),
    ({"const": "a"}, EnumType(name="output", members=("a",))),
    ({"enum": [1, 2]}, INT),
    ({"const": True}, BOOL),
    ({"type": "number", "enum": [1, 2.5]}, FLOAT),
    ({"type": ["string", "null"]}, OptionalType(STRING)),
    ({"type": ["string", "null"], "enum": ["a", None]}, OptionalType(EnumType(name="output", members=("a",)))),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}, OptionalType(INT)),
    ({"oneOf": [{"type": "null"}, {"type": "string"}]}, OptionalType(STRING)),
    ({"anyOf": [{"type": ["string", "null"]}, {"type": "null"}]}, OptionalType(STRING)),
    ({"allOf": [{"$ref": "#/$defs/T"}], "$defs": {"T": {"type": "integer"}}}, INT),
    ({"$ref": "#/definitions/a~1b", "definitions": {"a/b": {"type": "boolean"}}}, BOOL),
    ({"$ref": "#/$defs/Mode", "$defs": {"Mode": {"enum": ["r", "w"]}}}, EnumType(name="Mode", members=("r", "w"))),
    ({"type": "string", "x-nominal": "FileId"}, nominal("FileId", STRING)),
    ({"type": "integer", "x-nominal": "UserId"}, nominal("UserId", INT)),
]

REFUSED: list[tuple[Schema, str]] = [
    ({}, "#: it states no type"),
    ({"description": "anything"}, "#: it states no type"),
    ({"type": "text"}, "#/type: there is no type 'text'"),
    ({"type": "null"}, "#/type: null alone"),
    ({"type": ["string", "integer"]}, "#/type: ['string', 'integer'] are several types"),
    ({"type": "array"}, "#: an array says nothing of its items"),
    ({"type": "object"}, "#: an object without properties"),
    ({"type": "object", "additionalProperties": {"type": "string"}}, "#/additionalProperties: a map"),
    ({"type": "array", "items": {"type": "object", "properties": {}}}, "#/items: an object without properties"),
    ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "#/anyOf: it joins several types"),
    ({"anyOf": [{"type": "string"}], "type": "object"}, "#/type: the keyword 'type' is not supported here"),
    ({"type": "string", "nullable": True}, "#/nullable: the keyword 'nullable'"),
    ({"type": "string", "contentEncoding": "base64"}, "#/contentEncoding"),
    ({"type": "string", "format": "colour"}, "#/format: the format 'colour'"),
    ({"type": "array", "items": {"type": "string"}, "prefixItems": []}, "#/prefixItems"),
    ({"type": "array", "items": {"type": "string"}, "enum": [[]]}, "#/enum"),
    ({"type": "object", "properties": {"a": {"type": "string"}}, "patternProperties": {}}, "#/patternProperties"),
    ({"type": "object", "properties": {"a": {"not": {}}}}, "#/properties/a/not"),
    ({"type": "object", "properties": {"a/b": {"if": {}}}}, "#/properties/a~1b/if"),
    ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]}, "#/required: 'b'"),
    ({"type": "object", "properties": {"a b": {"type": "string"}, "a-b": {"type": "string"}}}, "would both be a_b"),
    ({"type": "object", "properties": {"a": {"type": "integer", "default": "1"}}}, "#/properties/a/default"),
    ({"enum": []}, "#/enum: an enum is a list of at least one value"),
    ({"enum": ["a", 1]}, "#/enum: an enum is a list of at least one value, all of one kind"),
    ({"type": "string", "enum": "a"}, "#/enum: an enum is a list"),
    ({"type": "string", "enum": ["a", 1]}, "#/enum: 1 is no string"),
    ({"type": "integer", "enum": [True]}, "#/enum: True is no integer"),
    ({"type": "boolean", "x-nominal": "Flag"}, "#/x-nominal: only a string or an integer"),
    ({"type": "string", "x-nominal": "a b"}, "#/x-nominal: 'a b' can't name a type"),
    ({"$ref": "other.json#/a"}, "#/$ref: 'other.json#/a' lies outside"),
    ({"$ref": "#/$defs/T"}, "#/$ref: #/$defs/T does not exist"),
    (
        {
            "$ref": "#/$defs/T",
            "$defs": {"T": {"type": "object", "properties": {"t": {"type": "array", "items": {"$ref": "#/$defs/T"}}}}},
        },
        "#/$defs/T/properties/t/items/$ref: #/$defs/T contains itself",
    ),
    ({"type": "integer", "minimum": "1"}, "#/minimum: '1' is not a number"),
    ({"type": "string", "maxLength": -1}, "#/maxLength: -1 is not a count"),
    ({"type": "string", "pattern": "("}, "#/pattern"),
    ({"type": "object", "properties": {"a": {"type": "number", "multipleOf": 0}}}, "#/properties/a/multipleOf"),
]

USER: Schema = {
    "type": "object",
    "properties": {
        "first name": {"type": "string"},
        "from": {"type": "string", "format": "date"},
        "mode": {"enum": ["r", "w"], "default": "r"},
        "tags": {"type": "array", "items": {"type": "string"}, "default": ["a"]},
        "note": {"type": ["string", "null"]},
    },
    "required": ["first name", "from"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(("schema", "kind"), MEANINGS, ids=lambda case: str(case)[:50])
def test_every_schema_means_its_type(schema: Schema, kind: ToolType) -> None:
    assert type_from_schema(schema) == kind


@pytest.mark.parametrize(("schema", "message"), REFUSED, ids=lambda case: str(case)[:50])
def test_what_means_no_type_is_refused_at_its_place(schema: Schema, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        type_from_schema(schema)
    assert message in str(caught.value)


def test_what_states_no_shape_is_a_handle_where_that_is_asked_for() -> None:
    schema = {
        "type": "object",
        "properties": {"any": {}, "map": {"type": "object"}, "two": {"type": ["string", "boolean"]}},
    }
    kind = type_from_schema(schema, name="found", opaque=True)
    assert isinstance(kind, RecordType)
    expected = [HandleType(name=f"found_{name}", python_type=object) for name in ("any", "map", "two")]
    assert [part.type for part in kind.fields] == expected


def test_an_unsupported_keyword_is_refused_even_where_handles_are_asked_for() -> None:
    with pytest.raises(SchemaError, match="#/not"):
        type_from_schema({"not": {}}, opaque=True)


def test_equal_schemas_mean_equal_records_and_others_do_not() -> None:
    assert type_from_schema(USER) == type_from_schema(USER)
    other = {**USER, "properties": {**USER["properties"], "mode": {"enum": ["r", "w"], "default": "w"}}}
    assert type_from_schema(USER) != type_from_schema(other)


def test_a_record_reads_json_and_writes_it_back() -> None:
    kind = type_from_schema(USER, name="user")
    assert isinstance(kind, RecordType)
    data = {"first name": "Ada", "from": "1843-01-01", "extra": 1}
    value = kind.validate(from_json(kind, data))
    assert kind.read(value, "first_name") == "Ada"
    assert kind.read(value, "from_") == datetime.date(1843, 1, 1)
    assert to_json(kind, value) == {"first name": "Ada", "from": "1843-01-01", "mode": "r", "tags": ["a"]}


def test_a_field_that_was_left_out_is_there_for_nobody_to_read() -> None:
    kind = type_from_schema(USER, name="user")
    assert isinstance(kind, RecordType)
    value = kind.build({"first_name": "Ada", "from_": datetime.date(1843, 1, 1)})
    assert vars(value)["note"] is ABSENT
    assert kind.validate(value) is value
    with pytest.raises(MismatchError, match="whose field 'note' is not left out"):
        kind.read(value, "note")


def test_default_lists_are_not_shared_between_records() -> None:
    kind = type_from_schema(USER, name="user")
    assert isinstance(kind, RecordType)
    first, second = (kind.build({"first_name": "A", "from_": datetime.date(2000, 1, 1)}) for _ in range(2))
    assert vars(first)["tags"] == ["a"]
    assert vars(first)["tags"] is not vars(second)["tags"]


def test_json_that_lacks_a_required_property_is_no_record() -> None:
    kind = type_from_schema(USER, name="user")
    with pytest.raises(MismatchError):
        kind.validate(from_json(kind, {"first name": "Ada"}))


_LEAVES = st.sampled_from(
    [
        ({"type": "string"}, st.text()),
        ({"type": "integer"}, st.integers()),
        ({"type": "number"}, st.floats(allow_nan=False)),
        ({"type": "boolean"}, st.booleans()),
        ({"type": "string", "format": "date"}, st.dates().map(str)),
        ({"enum": ["a", "b"]}, st.sampled_from("ab")),
    ]
)


def _wider(inner: st.SearchStrategy[tuple[Schema, Any]]) -> st.SearchStrategy[tuple[Schema, Any]]:
    def record(parts: list[tuple[Schema, Any]]) -> tuple[Schema, Any]:
        properties = {f"p {index}": schema for index, (schema, _) in enumerate(parts)}
        schema = {"type": "object", "properties": properties, "required": list(properties)}
        return schema, st.fixed_dictionaries({f"p {index}": data for index, (_, data) in enumerate(parts)})

    lists = inner.map(lambda pair: ({"type": "array", "items": pair[0]}, st.lists(pair[1], max_size=3)))
    nullable = inner.map(lambda pair: ({"anyOf": [pair[0], {"type": "null"}]}, st.none() | pair[1]))
    return lists | nullable | st.lists(inner, min_size=1, max_size=3).map(record)


@given(st.data(), st.recursive(_LEAVES, _wider, max_leaves=5))
def test_json_of_a_schema_is_read_at_its_type_and_written_back_equal(
    data: st.DataObject, pair: tuple[Schema, Any]
) -> None:
    schema, values = pair
    kind, value = type_from_schema(schema), data.draw(values)
    assert to_json(kind, kind.validate(from_json(kind, value))) == value
