"""Registries: mappings of tools whose names, and whose types' names, mean one thing each."""

import dataclasses
import datetime
import enum
from collections.abc import Callable
from typing import Any, Literal

import pytest

from registry import (
    DuplicateToolError,
    ListType,
    Registry,
    SignatureError,
    ToolType,
    UnknownToolError,
    UnknownTypeError,
    tool,
    type_from_hint,
)


class Docs: ...


OtherDocs = type("Docs", (), {})


@dataclasses.dataclass
class Point:
    x: int
    labels: list[str]


@tool
def search(query: str, mode: Literal["fast", "slow"] = "fast") -> Docs:
    return Docs()


def count(docs: Docs) -> int:
    return 0


def locate(name: str | None = None) -> list[Point]:
    return []


def test_a_registry_is_a_mapping_in_the_order_of_registration() -> None:
    registry = Registry([search, count])
    assert list(registry) == ["search", "count"]
    assert len(registry) == 2
    assert registry["search"] is search
    assert registry.get("nothing") is None
    assert "count" in registry
    assert repr(registry) == ("Registry(search(query: string, mode?: search_mode) -> docs, count(docs: docs) -> int)")


def test_the_decorator_registers_bare_and_with_keywords() -> None:
    registry = Registry()

    @registry.tool
    def one() -> int:
        return 1

    @registry.tool(name="zwei", pure=True)
    def two() -> int:
        return 2

    assert list(registry) == ["one", "zwei"]
    assert (one(), two()) == (1, 2)
    assert registry["zwei"].pure


def test_an_unknown_tool_is_named_with_near_misses() -> None:
    with pytest.raises(UnknownToolError) as raised:
        Registry([search])["serach"]
    assert str(raised.value) == "no tool is called 'serach'; did you mean 'search'?"
    with pytest.raises(UnknownToolError, match="there is none"):
        Registry()["x"]


def fake_docs(docs: Any) -> int:
    return 0


fake_docs.__annotations__["docs"] = OtherDocs


@tool(name="search")
def another_search() -> int:
    return 0


class search_mode(enum.Enum):
    FAST = "fast"


def clash_of_enums(mode: search_mode) -> int:
    return 0


@tool(name="Point")
def record_name() -> int:
    return 0


def unsupported(x: Any) -> int:
    return 0


CLASHES: list[tuple[Callable[..., Any], type[Exception], str]] = [
    (another_search, DuplicateToolError, "a tool called 'search' exists; name this one by @tool(name=...)"),
    (fake_docs, DuplicateToolError, "tool 'fake_docs': the type name 'docs' would mean both docs (the class"),
    (clash_of_enums, DuplicateToolError, "search_mode ('fast' | 'slow') and search_mode (the class"),
    (record_name, DuplicateToolError, "'Point' is the name of a tool and of a record"),
    (unsupported, SignatureError, "tool 'unsupported', parameter 'x'"),
]


@pytest.mark.parametrize(("function", "error", "message"), CLASHES)
def test_what_clashes_is_refused_and_nothing_is_registered(
    function: Callable[..., Any], error: type[Exception], message: str
) -> None:
    registry = Registry([search, locate])
    types = registry.types()
    with pytest.raises(error) as raised:
        registry.add(count, function)
    assert message in str(raised.value)
    assert list(registry) == ["search", "locate"]
    assert registry.types() == types


def test_types_are_those_that_signatures_reach() -> None:
    names = [kind.name for kind in Registry([search, count, locate]).types()]
    assert names == [
        "string",
        "search_mode",
        "docs",
        "int",
        "optional[string]",
        "list[Point]",
        "Point",
        "list[string]",
    ]


SPELLINGS: list[tuple[str, ToolType]] = [
    ("int", type_from_hint(int)),
    ("date", type_from_hint(datetime.date)),
    ("docs", type_from_hint(Docs)),
    ("search_mode", type_from_hint(Literal["fast", "slow"], name="search_mode")),
    (" list[ optional[docs] ] ", ListType(type_from_hint(Docs | None))),
    ("optional[optional[int]]", type_from_hint(int | None)),
]


@pytest.mark.parametrize(("spelling", "kind"), SPELLINGS)
def test_find_type(spelling: str, kind: ToolType) -> None:
    assert Registry([search]).find_type(spelling) == kind


@pytest.mark.parametrize("spelling", ["str", "list[", "list[]", "Docs", "", "list[doc]", "dict[int]"])
def test_an_unknown_type_is_named(spelling: str) -> None:
    with pytest.raises(UnknownTypeError, match="no type is spelled"):
        Registry([search]).find_type(spelling)


def test_derived_registries_leave_their_origin_alone() -> None:
    first, second = Registry([search]), Registry([locate])
    assert list(first.with_tools(count)) == ["search", "count"]
    assert list(first.merge(second)) == ["search", "locate"]
    assert list(first.merge(second).select("locate")) == ["locate"]
    assert (list(first), list(second)) == (["search"], ["locate"])
    with pytest.raises(DuplicateToolError):
        first.merge(first)
    with pytest.raises(UnknownToolError):
        first.select("nothing")


def test_closing_reaches_what_derived_registries_share() -> None:
    closed: list[str] = []
    first = Registry([search], closing=[lambda: closed.append("first")])
    second = Registry([locate], closing=[lambda: closed.append("second")])
    with first.merge(second).select("search"):
        assert closed == []
    assert closed == ["first", "second"]
