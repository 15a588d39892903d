"""Identifiers: only a tool's result holds one, tools see plain values, and no literal or other type stands for one."""

from __future__ import annotations

import dataclasses
from typing import Annotated, NewType

import pydantic
import pytest

from registry import (
    ArgumentError,
    Identifier,
    Nominal,
    Registry,
    ResultError,
    SignatureError,
    tool,
    tool_from_json_schema,
    type_from_hint,
)
from registry.types import STRING, HandleType, ListType, RecordType

pytestmark = pytest.mark.anyio

UserId = NewType("UserId", int)
FileId = Annotated[str, Nominal("FileId")]


@dataclasses.dataclass(frozen=True)
class File:
    id: FileId
    owner: UserId
    title: str = ""


class Folder(pydantic.BaseModel):
    id: Annotated[str, Nominal("FolderId")]
    files: list[FileId]


@tool
def find(title: str) -> list[FileId]:
    """Files by title."""
    return [title + "1", title + "2"]


@tool
def load(file: FileId) -> File:
    """A file."""
    assert type(file) is str
    return File(id=file, owner=UserId(7), title="t")


@tool
def delete(files: list[FileId], by: UserId | None = None) -> str:
    """Delete files."""
    return f"{files} by {by}"


REGISTRY = Registry([find, load, delete])


def test_signatures_name_identifiers() -> None:
    assert delete.signature == "delete(files: list[FileId], by?: optional[user_id]) -> string"
    assert REGISTRY.find_type("FileId") == HandleType(name="FileId", python_type=Identifier, item=STRING)


async def test_results_are_branded_and_arguments_released() -> None:
    found = await find.call({"title": "a"})
    assert found == [Identifier(type="FileId", value="a1"), Identifier(type="FileId", value="a2")]
    assert await delete.call({"files": found}) == "['a1', 'a2'] by None"


async def test_a_field_is_branded_when_it_is_read() -> None:
    file = await load.call({"file": Identifier(type="FileId", value="a1")})
    kind = load.returns
    assert isinstance(kind, RecordType)
    assert kind.read(file, "id") == Identifier(type="FileId", value="a1")
    assert kind.read(file, "owner") == Identifier(type="user_id", value=7)
    assert await delete.call({"files": [kind.read(file, "id")], "by": kind.read(file, "owner")}) == "['a1'] by 7"


@pytest.mark.parametrize("forged", ["a1", 7, Identifier(type="user_id", value=7)])
async def test_nothing_else_stands_for_an_identifier(forged: object) -> None:
    with pytest.raises(ArgumentError, match="expected FileId"):
        await load.call({"file": forged})


async def test_an_identifier_is_no_plain_text() -> None:
    with pytest.raises(ArgumentError, match="expected string"):
        await find.call({"title": Identifier(type="FileId", value="a1")})


async def test_a_result_of_the_wrong_plain_type_is_the_tools_fault() -> None:
    @tool
    def bad() -> FileId:
        """Give no text."""
        return 7  # type: ignore[return-value]

    with pytest.raises(ResultError, match="expected string"):
        await bad.call({})


async def test_a_record_written_out_holds_the_plain_value() -> None:
    kind = load.returns
    assert isinstance(kind, RecordType)
    made = kind.build({"id": Identifier(type="FileId", value="a1"), "owner": Identifier(type="user_id", value=7)})
    assert made == File(id="a1", owner=UserId(7))


def test_fields_of_models_may_be_identifiers() -> None:
    kind = type_from_hint(Folder)
    assert isinstance(kind, RecordType)
    assert [part.type.name for part in kind.fields] == ["FolderId", "list[FileId]"]
    assert isinstance(kind.field("files").type, ListType)


def test_an_identifier_has_no_default_but_none() -> None:
    def lookup(file: FileId = "root") -> str:
        """A default forges one."""
        return file

    with pytest.raises(SignatureError, match="the default is not of the parameter's type"):
        tool(lookup)


async def test_schemas_can_declare_identifiers() -> None:
    schema = {"type": "string", "x-nominal": "FileId"}
    make = tool_from_json_schema({"name": "make"}, lambda: "f1", returns=schema)
    show = tool_from_json_schema(
        {"name": "show", "parameters": {"type": "object", "properties": {"file": schema}, "required": ["file"]}},
        lambda file: f"<{file}>",
        returns=STRING,
    )
    assert await show.call({"file": await make.call({})}) == "<f1>"
    with pytest.raises(ArgumentError, match="expected FileId"):
        await show.call({"file": "f1"})


def test_an_identifier_shows_its_type_and_value() -> None:
    assert str(Identifier(type="FileId", value="a1")) == "FileId('a1')"
