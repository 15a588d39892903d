"""Values against types: strict in both directions, with the place of a mismatch."""

import dataclasses
import datetime
import enum
from typing import Any, Literal

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry import (
    BOOL,
    DATE,
    FLOAT,
    INT,
    STRING,
    EnumType,
    ListType,
    MismatchError,
    OptionalType,
    RecordType,
    ToolType,
    type_from_hint,
)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: float = 0.5


class Person(pydantic.BaseModel):
    name: str = pydantic.Field(min_length=1)
    color: Color = Color.RED
    places: list[Point] = []


class Docs: ...


class MoreDocs(Docs): ...


DOCS = MoreDocs()
MODE = type_from_hint(Literal["fast", "slow"], name="mode")
COLOR = type_from_hint(Color)
POINT = type_from_hint(Point)
PERSON = type_from_hint(Person)
TODAY = datetime.date(2026, 1, 2)

ACCEPTED: list[tuple[ToolType, object, object]] = [
    (STRING, "5", "5"),
    (STRING, "", ""),
    (INT, 5, 5),
    (INT, 10**50, 10**50),
    (FLOAT, 5, 5.0),
    (FLOAT, 5.5, 5.5),
    (BOOL, True, True),
    (DATE, TODAY, TODAY),
    (MODE, "fast", "fast"),
    (COLOR, Color.RED, Color.RED),
    (COLOR, "blue", Color.BLUE),
    (ListType(FLOAT), [1, 2.5], [1.0, 2.5]),
    (ListType(INT), [], []),
    (OptionalType(INT), None, None),
    (OptionalType(INT), 3, 3),
    (ListType(OptionalType(COLOR)), ["red", None], [Color.RED, None]),
    (POINT, Point(1), Point(1)),
    (type_from_hint(Docs), DOCS, DOCS),
]

REFUSED: list[tuple[ToolType, object, str]] = [
    (STRING, 5, "expected string, got 5 (int)"),
    (STRING, b"5", "expected string, got b'5' (bytes)"),
    (INT, "5", "expected int, got '5' (str)"),
    (INT, True, "expected int, got True (bool)"),
    (INT, 5.0, "expected int, got 5.0 (float)"),
    (FLOAT, True, "expected float, got True (bool)"),
    (FLOAT, "5", "expected float, got '5' (str)"),
    (BOOL, 1, "expected bool, got 1 (int)"),
    (DATE, "2026-01-02", "expected date, got '2026-01-02' (str)"),
    (DATE, datetime.datetime(2026, 1, 2), "expected date, got datetime.datetime"),
    (MODE, "quick", "expected mode ('fast' | 'slow'), got 'quick' (str)"),
    (COLOR, "RED", "expected Color ('red' | 'blue'), got 'RED' (str)"),
    (ListType(STRING), "abc", "expected list[string], got 'abc' (str)"),
    (ListType(INT), (1, 2), "expected list[int], got (1, 2) (tuple)"),
    (ListType(ListType(INT)), [[1], [2, "3"]], "expected int at [1][1], got '3' (str)"),
    (OptionalType(INT), "3", "expected optional[int], got '3' (str)"),
    (OptionalType(ListType(INT)), ["3"], "expected int at [0], got '3' (str)"),
    (POINT, {"x": 1}, "expected Point, got {'x': 1} (dict)"),
    (POINT, Point("1"), "expected int at .x, got '1' (str)"),  # type: ignore[arg-type]
    (
        PERSON,
        Person.model_construct(name="A", places=[Point(1, True)]),
        "expected float at .places[0].y, got True",
    ),
    (PERSON, Person.model_construct(name="A").model_copy(update={"color": 3}), "at .color"),
    (type_from_hint(Docs), "docs", "expected docs, got 'docs' (str)"),
]


@pytest.mark.parametrize(("kind", "value", "checked"), ACCEPTED)
def test_accepted(kind: ToolType, value: object, checked: object) -> None:
    result = kind.validate(value)
    assert result == checked
    assert type(result) is type(checked)


@pytest.mark.parametrize(("kind", "value", "message"), REFUSED)
def test_refused(kind: ToolType, value: object, message: str) -> None:
    with pytest.raises(MismatchError) as raised:
        kind.validate(value)
    assert message in str(raised.value)


def test_a_long_or_broken_value_does_not_drown_the_message() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError("no representation")

    with pytest.raises(MismatchError) as raised:
        INT.validate("x" * 10_000)
    assert len(str(raised.value)) < 200
    with pytest.raises(MismatchError, match="Broken"):
        INT.validate(Broken())


def test_enum_spelling() -> None:
    assert isinstance(COLOR, EnumType)
    assert isinstance(MODE, EnumType)
    assert [COLOR.spelling(member) for member in Color] == ["red", "blue"]
    assert MODE.spelling("slow") == "slow"
    with pytest.raises(MismatchError):
        COLOR.spelling("green")


BUILT: list[tuple[ToolType, dict[str, object], object]] = [
    (POINT, {"x": 1}, Point(1)),
    (POINT, {"x": 1, "y": 2}, Point(1, 2.0)),
    (PERSON, {"name": "A", "color": "blue"}, Person(name="A", color=Color.BLUE)),
]

NOT_BUILT: list[tuple[ToolType, dict[str, object], str]] = [
    (POINT, {}, "expected Point with 'x'"),
    (POINT, {"x": "1"}, "expected int at .x, got '1' (str)"),
    (POINT, {"x": 1, "yy": 2}, "a field of Point (did you mean 'y'?)"),
    (PERSON, {"name": ""}, "Person (name: String should have at least 1 character)"),
]


@pytest.mark.parametrize(("kind", "values", "record"), BUILT)
def test_build(kind: RecordType, values: dict[str, object], record: object) -> None:
    built = kind.build(values)
    assert built == record
    assert kind.validate(built) is built


@pytest.mark.parametrize(("kind", "values", "message"), NOT_BUILT)
def test_not_built(kind: RecordType, values: dict[str, object], message: str) -> None:
    with pytest.raises(MismatchError) as raised:
        kind.build(values)
    assert message in str(raised.value)


def test_read() -> None:
    assert isinstance(POINT, RecordType)
    assert POINT.read(Point(1, 2), "y") == 2.0
    with pytest.raises(MismatchError, match="a field of Point"):
        POINT.read(Point(1), "z")
    with pytest.raises(MismatchError, match=r"at \.x"):
        POINT.read(Point("1"), "x")  # type: ignore[arg-type]
    with pytest.raises(MismatchError, match="Person with a field 'name'"):
        assert isinstance(PERSON, RecordType)
        PERSON.read(Person.model_construct(), "name")


LEAVES: list[tuple[ToolType, st.SearchStrategy[Any]]] = [
    (STRING, st.text()),
    (INT, st.integers()),
    (FLOAT, st.floats(allow_nan=False)),
    (BOOL, st.booleans()),
    (DATE, st.dates()),
    (COLOR, st.sampled_from(Color)),
    (POINT, st.builds(Point, x=st.integers(), y=st.floats(allow_nan=False))),
]

TYPED = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: (
        inner.map(lambda pair: (ListType(pair[0]), st.lists(pair[1], max_size=3)))
        | inner.filter(lambda pair: not isinstance(pair[0], OptionalType)).map(
            lambda pair: (OptionalType(pair[0]), st.none() | pair[1])
        )
    ),
    max_leaves=4,
)


@given(st.data())
def test_validation_keeps_what_is_well_typed(data: st.DataObject) -> None:
    kind, values = data.draw(TYPED)
    value = data.draw(values)
    checked = kind.validate(value)
    assert checked == value
    assert kind.validate(checked) == checked


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates() | st.datetimes(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2) | st.tuples(inner),
    max_leaves=6,
)


def same(checked: object, value: object) -> bool:
    """Equal and of the same classes, but that an int may have become a float, and a member's text the member."""
    if isinstance(checked, Color):
        return checked is value or checked.value == value
    if isinstance(checked, list) and isinstance(value, list):
        return len(checked) == len(value) and all(map(same, checked, value))
    return (type(checked), type(value)) in ((float, int), (type(value),) * 2) and (
        checked == value or checked != checked
    )


@given(st.data(), ANYTHING)
def test_validation_never_converts(data: st.DataObject, value: object) -> None:
    kind, _ = data.draw(TYPED)
    try:
        checked = kind.validate(value)
    except MismatchError:
        return
    assert same(checked, value)
