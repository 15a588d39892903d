"""Tools from JSON definitions: signatures, calls with JSON data, constraints at each call, refusals by name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from registry import (
    ArgumentError,
    ModelRetry,
    Registry,
    ResultError,
    SignatureError,
    Tool,
    tool_from_json_schema,
)
from registry.constraints import violations
from registry.types import INT, STRING, RecordType

pytestmark = pytest.mark.anyio

SEND: dict[str, Any] = {
    "name": "mail.send",
    "description": "Send a message.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "cc": {"type": "array", "items": {"type": "string"}, "maxItems": 1},
            "to": {"$ref": "#/$defs/Person"},
            "class": {"enum": ["first", "second"], "default": "second"},
            "copies": {"type": "integer", "minimum": 1, "description": "how many"},
        },
        "required": ["to", "copies"],
        "$defs": {"Person": {"type": "object", "properties": {"e-mail": {"type": "string", "pattern": "@"}}}},
    },
    "outputSchema": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
}


SENT: list[dict[str, object]] = []


def send(**arguments: object) -> dict[str, object]:
    SENT.append(arguments)
    return {"id": len(SENT), "more": "dropped"}


@pytest.fixture(name="tool")
def made_tool() -> Tool:
    SENT.clear()
    return tool_from_json_schema(SEND, send)


def _person(tool: Tool, address: str) -> object:
    kind = tool.parameter("to").type
    assert isinstance(kind, RecordType)
    return kind.build({"e_mail": address})


def test_the_signature_has_required_parameters_first(tool: Tool) -> None:
    assert tool.signature == (
        "mail_send(to: Person, copies: int, cc?: list[string], class?: mail_send_class) -> mail_send_result"
    )
    assert tool.parameter("copies").description == "how many"
    assert tool.parameter("class").default == "second"


async def test_the_function_gets_and_gives_json(tool: Tool) -> None:
    result = await tool.call({"to": _person(tool, "a@b"), "copies": 2, "class": "first"})
    assert SENT == [{"to": {"e-mail": "a@b"}, "copies": 2, "class": "first"}]
    assert isinstance(tool.returns, RecordType)
    assert tool.returns.read(result, "id") == 1


async def test_an_async_function_is_awaited() -> None:
    async def find(word: str) -> str:
        return word * 2

    definition = {"name": "find", "parameters": {"type": "object", "properties": {"word": {"type": "string"}}}}
    tool = tool_from_json_schema(definition, find, returns=STRING)
    assert await tool.call({"word": "ab"}) == "abab"


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"copies": 0}, "copies breaks minimum 1: 0"),
    ({"copies": 1, "cc": ["a", "b"]}, "cc breaks maxItems 1"),
]


@pytest.mark.parametrize(("arguments", "message"), BROKEN)
async def test_a_broken_constraint_asks_for_another_try_and_calls_nothing(
    tool: Tool, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ModelRetry, match=message):
        await tool.call({"to": _person(tool, "a@b"), **arguments})
    assert SENT == []


async def test_constraints_hold_inside_records_too(tool: Tool) -> None:
    with pytest.raises(ModelRetry, match=r"to\.e-mail breaks pattern '@': 'nobody'"):
        await tool.call({"to": _person(tool, "nobody"), "copies": 1})


CONSTRAINTS: list[tuple[dict[str, Any], list[object], list[object]]] = [
    ({"minimum": 2}, [2, 3.5, "a", True], [1]),
    ({"maximum": 2}, [2, -1], [2.1]),
    ({"exclusiveMinimum": 2}, [3], [2]),
    ({"exclusiveMaximum": 2}, [1], [2]),
    ({"multipleOf": 0.1}, [0.3, 1], [0.35]),
    ({"minLength": 2}, ["ab", 1], ["a"]),
    ({"maxLength": 2}, ["ab"], ["abc"]),
    ({"pattern": "^a"}, ["ab"], ["ba"]),
    ({"minItems": 1}, [[1], "a"], [[]]),
    ({"uniqueItems": True}, [[1, 2]], [[1, 1]]),
    ({"minProperties": 1}, [{"a": 1}], [{}]),
    ({"maxProperties": 1}, [{"a": 1}], [{"a": 1, "b": 1}]),
    ({"enum": [1, 2]}, [1], [3]),
    ({"const": 4}, [4], [5]),
    ({"items": {"minimum": 1}}, [[1, 2], []], [[1, 0]]),
    ({"anyOf": [{"minimum": 1}, {"type": "null"}]}, [1, None], [0]),
]


@pytest.mark.parametrize(("schema", "good", "bad"), CONSTRAINTS, ids=lambda case: str(case)[:40])
def test_each_constraint_tells_good_from_bad(schema: dict[str, Any], good: list[object], bad: list[object]) -> None:
    assert [list(violations(schema, value, schema)) for value in good] == [[] for _ in good]
    assert all(list(violations(schema, value, schema)) for value in bad)


async def test_types_are_still_strict(tool: Tool) -> None:
    with pytest.raises(ArgumentError, match="copies"):
        await tool.call({"to": _person(tool, "a@b"), "copies": "2"})


async def test_a_result_of_another_shape_is_the_tools_fault() -> None:
    tool = tool_from_json_schema(SEND, lambda **arguments: {"id": "seven"})
    with pytest.raises(ResultError, match="expected int"):
        await tool.call({"to": _person(tool, "a@b"), "copies": 1})


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "a tool definition has a name"),
    ({"name": "f", "parameters": {"type": "string"}}, "parameters without properties are an empty object"),
    ({"name": "f", "parameters": {"type": "object", "additionalProperties": {}}}, "says nothing of its result"),
    ({"name": "f", "parametres": {}}, "/parametres: the keyword 'parametres' is not supported"),
    ({"name": "f", "parameters": {"type": "object"}, "inputSchema": {"type": "object"}}, "/inputSchema"),
    (
        {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "object"}}}},
        "tool 'f': #/properties/a: an object without properties",
    ),
    (
        {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer", "default": 1.5}}}},
        "tool 'f': #/properties/a/default",
    ),
]


@pytest.mark.parametrize(("definition", "message"), REFUSED, ids=lambda case: str(case)[:50])
def test_a_definition_that_cannot_be_a_tool_is_refused_by_name(definition: dict[str, Any], message: str) -> None:
    with pytest.raises(SignatureError) as caught:
        tool_from_json_schema(definition, send)
    assert message in str(caught.value)


def test_a_registry_of_definitions_shares_its_records() -> None:
    wrapped = {"type": "function", "function": {**SEND, "name": "again"}}
    registry = Registry.from_json_schema([SEND, wrapped], {"mail.send": send, "again": send})
    assert list(registry) == ["mail_send", "again"]
    assert registry["again"].parameter("to").type == registry["mail_send"].parameter("to").type


def test_a_definition_without_a_function_is_named() -> None:
    with pytest.raises(SignatureError, match=r"'mail.send' has no function; did you mean 'mail.sent'"):
        Registry.from_json_schema([SEND], {"mail.sent": send})


def test_result_types_can_be_given_by_name() -> None:
    definition = {"name": "count", "parameters": {"type": "object", "properties": {}}}
    registry = Registry.from_json_schema([definition], {"count": lambda: 3}, returns={"count": INT})
    assert registry["count"].signature == "count() -> int"


def test_the_examples_of_the_document_run() -> None:
    text = Path(__file__).parents[2].joinpath("docs/json-schema.md").read_text(encoding="utf-8")
    first, second = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    namespace: dict[str, Any] = {}
    exec(first, namespace)
    assert namespace["book"].signature == re.search(r"# (book\(.*)", first)[1]  # type: ignore[index]
    exec(second, namespace)
    assert namespace["find"].signature == "find(title: string) -> list[FileId]"
