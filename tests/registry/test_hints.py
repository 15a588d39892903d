"""Type hints: which type each means, and which are refused with what message."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import pathlib
from collections.abc import Callable
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    Optional,
    Protocol,
    TypedDict,
    TypeVar,
    Union,
)

import pydantic
import pytest
from typing_extensions import TypeAliasType

from registry import (
    BOOL,
    DATE,
    FLOAT,
    INT,
    STRING,
    EnumType,
    Handle,
    HandleType,
    ListType,
    Nominal,
    OptionalType,
    RecordType,
    SignatureError,
    ToolType,
    type_from_hint,
)
from registry.types import nominal


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0
    tags: list[str] = dataclasses.field(default_factory=list)


class Person(pydantic.BaseModel):
    name: str
    home: Point | None = None
    mood: Literal["good", "bad"] = "good"


class HTTPSession: ...


@dataclasses.dataclass
class Connection(Handle):
    number: int


T = TypeVar("T")


class Box(Generic[T]): ...


class GenericModel(pydantic.BaseModel, Generic[T]):
    item: T


@dataclasses.dataclass
class Node:
    children: list[Node]


class Parent(pydantic.BaseModel):
    child: Child | None


class Child(pydantic.BaseModel):
    parent: Parent | None


@dataclasses.dataclass
class Computed:
    x: int
    y: int = dataclasses.field(init=False, default=1)


class Aliased(pydantic.BaseModel):
    x: int = pydantic.Field(alias="X")


class AliasedByName(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(validate_by_name=True)

    x: int = pydantic.Field(alias="X", gt=0)


class Bag(pydantic.BaseModel):
    content: dict[str, int]


class Date: ...


class Pair(NamedTuple):
    left: int


class Shape(TypedDict):
    x: int


class Sized(Protocol):
    def size(self) -> int: ...


class Text(str): ...


class Empty(enum.Enum): ...


UserId = NewType("UserId", int)
Speed2 = NewType("Speed2", float)
Speed = TypeAliasType("Speed", Literal["fast", "slow"])

MEANINGS: list[tuple[object, ToolType]] = [
    (str, STRING),
    (int, INT),
    (float, FLOAT),
    (bool, BOOL),
    (datetime.date, DATE),
    (list[int], ListType(INT)),
    (list[list[str]], ListType(ListType(STRING))),
    (int | None, OptionalType(INT)),
    (Optional[int], OptionalType(INT)),  # noqa: UP045
    (Union[None, int], OptionalType(INT)),  # noqa: UP007
    (list[int | None] | None, OptionalType(ListType(OptionalType(INT)))),
    (Annotated[int, "a number"], INT),
    (Literal["a", "b"], EnumType(name="output", members=("a", "b"))),
    (Literal["a", "a"], EnumType(name="output", members=("a",))),
    (Speed, EnumType(name="speed", members=("fast", "slow"))),
    (Color, EnumType(name="Color", members=("red", "blue"), python_type=Color)),
    (Level, EnumType(name="Level", members=("LOW", "HIGH"), python_type=Level)),
    (HTTPSession, HandleType(name="http_session", python_type=HTTPSession)),
    (pathlib.Path, HandleType(name="path", python_type=pathlib.Path)),
    (Connection, HandleType(name="connection", python_type=Connection)),
    (Box, HandleType(name="box", python_type=Box)),
    (UserId, nominal("user_id", INT)),
    (Annotated[str, Nominal("FileId")], nominal("FileId", STRING)),
    (list[Annotated[str, Nominal("FileId"), "a file"]], ListType(nominal("FileId", STRING))),
]

REFUSED: list[tuple[object, str]] = [
    (Any, "say which type it is"),
    (object, "say which type it is"),
    (None, "says what was done"),
    (dict, "declare a dataclass"),
    (dict[str, int], "declare a dataclass"),
    (list, "list[str]"),
    (tuple[int, int], "use a dataclass, or list[T]"),
    (set[int], "use list[T]"),
    (bytes, "use str"),
    (complex, "not supported"),
    (datetime.datetime, "use datetime.date"),
    (int | str, "union of several types"),
    (int | str | None, "union of several types"),
    (Literal[1, 2], "not strings"),
    (Literal["a", None], "not strings"),
    (Callable[[int], int], "not supported"),
    (type, "not supported"),
    (type[int], "not supported"),
    (T, "not supported"),
    (Speed2, "only str and int can be identifiers"),
    (Text, "hold the value in a class"),
    (Pair, "hold the value in a class"),
    (Shape, "not supported"),
    (Sized, "not supported"),
    (ValueError, "not supported"),
    (Handle, "not supported"),
    (Box[int], "not supported"),
    (Empty, "no members"),
    (Date, "'date' is taken by a built-in type"),
    (Node, "contains itself (Node -> Node)"),
    (Parent, "contains itself (Parent -> Child -> Parent)"),
    (Computed, "does not take just its fields (y)"),
    (Aliased, "validate_by_name"),
    (GenericModel[int], "not an identifier"),
    (Bag, "field 'content' of Bag"),
    (list[dict[str, int]], "declare a dataclass"),
    (Annotated[int, pydantic.Field(gt=0)], "raise ModelRetry"),
    (list[Annotated[int, 17]], "raise ModelRetry"),
    ("int", "not supported"),
    (17, "not supported"),
]


@pytest.mark.parametrize(("hint", "kind"), MEANINGS, ids=lambda part: getattr(part, "name", None) or str(part))
def test_meaning(hint: object, kind: ToolType) -> None:
    assert type_from_hint(hint) == kind


@pytest.mark.parametrize(("hint", "message"), REFUSED, ids=str)
def test_refused(hint: object, message: str) -> None:
    with pytest.raises(SignatureError) as raised:
        type_from_hint(hint)
    assert message in str(raised.value)
    assert "supported are str, int" in str(raised.value)


@pytest.mark.parametrize(
    ("hint", "fields"),
    [
        (Point, [("x", "int", True, None), ("y", "int", False, 0), ("tags", "list[string]", False, None)]),
        (
            Person,
            [
                ("name", "string", True, None),
                ("home", "optional[Point]", False, None),
                ("mood", "person_mood", False, "good"),
            ],
        ),
        (AliasedByName, [("x", "int", True, None)]),
    ],
)
def test_record_fields(hint: type, fields: list[tuple[str, str, bool, object]]) -> None:
    kind = type_from_hint(hint)
    assert isinstance(kind, RecordType)
    assert kind.name == hint.__name__
    assert [(part.name, part.type.name, part.required, part.default) for part in kind.fields] == fields


def test_records_are_equal_by_their_class() -> None:
    one, other = type_from_hint(Point), type_from_hint(Point)
    assert one == other
    assert hash(one) == hash(other)
    assert one != type_from_hint(Person)


def test_a_record_of_local_names_says_how_to_mend_it() -> None:
    class Inner: ...

    @dataclasses.dataclass
    class Outer:
        inner: Inner

    with pytest.raises(SignatureError, match="declare it at the top level of a module"):
        type_from_hint(Outer)
