"""Tools: what is read from a function, and which functions are refused."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

import pydantic
import pytest

from registry import ArgumentError, Parameter, SignatureError, Tool, tool
from registry.types import BOOL, INT, STRING, EnumType


class Docs: ...


@tool
def search(
    query: str,
    limit: int = 10,
    mode: Literal["fast", "slow"] = "fast",
    *,
    within: Docs | None = None,
    exact: Annotated[bool, "whether words must match exactly"] = False,
) -> list[Docs]:
    """Find documents.

    Args:
        query: words to look for.
    """
    return [Docs()] * limit


@tool(name="fetch", description="Get a page.", pure=True)
async def get(url: Annotated[str, pydantic.Field(description="the address")]) -> str:
    """Not this."""
    return url


def test_what_is_read() -> None:
    assert (search.name, search.description) == ("search", "Find documents.")
    assert (search.pure, search.is_async) == (False, False)
    assert search.parameters[:3] == (
        Parameter(name="query", type=STRING, description="words to look for."),
        Parameter(name="limit", type=INT, required=False, default=10),
        Parameter(
            name="mode",
            type=EnumType(name="search_mode", members=("fast", "slow")),
            required=False,
            default="fast",
        ),
    )
    assert search.parameters[4] == Parameter(
        name="exact", type=BOOL, required=False, default=False, description="whether words must match exactly"
    )
    assert search.signature == (
        "search(query: string, limit?: int, mode?: search_mode, within?: optional[docs], exact?: bool) -> list[docs]"
    )


def test_keywords_replace_what_the_function_says() -> None:
    assert (get.name, get.description, get.pure, get.is_async) == ("fetch", "Get a page.", True, True)
    assert get.parameters[0].description == "the address"


def test_a_tool_is_called_like_its_function() -> None:
    assert len(search("x", limit=2)) == 2
    assert list(inspect.signature(search).parameters) == ["query", "limit", "mode", "within", "exact"]


def test_bound_methods_and_wrapped_functions_are_functions() -> None:
    class Counter:
        def __init__(self) -> None:
            self.calls = 0

        def add(self, n: int) -> int:
            """Add."""
            self.calls += n
            return self.calls

    def logged(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    assert tool(Counter().add).signature == "add(n: int) -> int"
    assert tool(logged(Counter().add)).signature == "add(n: int) -> int"


def missing_hint(x) -> int:  # type: ignore[no-untyped-def]
    return int(x)


def missing_result(x: int):  # type: ignore[no-untyped-def]
    return x


def any_hint(x: Any) -> int:
    return int(x)


def dict_hint(x: dict[str, int]) -> int:
    return len(x)


def variadic(*xs: int) -> int:
    return sum(xs)


def keywords(**xs: int) -> int:
    return len(xs)


def positional(x: int, /) -> int:
    return x


def bad_default(x: int = "5") -> int:  # type: ignore[assignment]
    return x


def none_default(x: int = None) -> int:  # type: ignore[assignment]  # noqa: RUF013
    return x


def unknown_name(x: Nowhere) -> int:  # type: ignore[name-defined]  # noqa: F821
    return 0


def nothing(x: int) -> None:
    return None


def constrained(x: Annotated[int, pydantic.Field(gt=0)]) -> int:
    return x


def generator(x: int) -> Iterator[int]:
    yield x


def any_result(x: int) -> Any:
    return x


REFUSED: list[tuple[Callable[..., Any], tuple[str, ...]]] = [
    (missing_hint, ("tool 'missing_hint', parameter 'x'", "no type hint", "supported are")),
    (missing_result, ("tool 'missing_result'", "no return annotation", "str, int")),
    (any_hint, ("tool 'any_hint', parameter 'x'", "Any is not supported", "supported are")),
    (dict_hint, ("tool 'dict_hint', parameter 'x'", "dict[str, int]", "dataclass")),
    (variadic, ("tool 'variadic', parameter 'xs'", "take one list[T]")),
    (keywords, ("tool 'keywords', parameter 'xs'", "declare each parameter")),
    (positional, ("tool 'positional', parameter 'x'", "drop the /")),
    (bad_default, ("tool 'bad_default', parameter 'x'", "the default", "expected int, got '5'")),
    (none_default, ("tool 'none_default', parameter 'x'", "write T | None")),
    (unknown_name, ("tool 'unknown_name', parameter 'x'", "Nowhere", "top level")),
    (nothing, ("tool 'nothing', result", "says what was done")),
    (constrained, ("tool 'constrained', parameter 'x'", "raise ModelRetry")),
    (generator, ("tool 'generator'", "return a list")),
    (any_result, ("tool 'any_result', result", "Any")),
    (lambda: 5, ("'<lambda>' is not an identifier", "@tool(name=...)")),
    (len, ("tool 'len'", "not a function", "wrap it")),
    (Docs, ("tool 'Docs'", "not a function")),
]


@pytest.mark.parametrize(("function", "messages"), REFUSED, ids=lambda part: getattr(part, "__name__", ""))
def test_refused(function: Callable[..., Any], messages: tuple[str, ...]) -> None:
    with pytest.raises(SignatureError) as raised:
        tool(function)
    for message in messages:
        assert message in str(raised.value)


ARGUMENTS: list[tuple[dict[str, object], str, str]] = [
    ({}, "query", "missing; give a string"),
    ({"query": 5}, "query", "expected string, got 5 (int)"),
    ({"query": "x", "limit": "5"}, "limit", "expected int, got '5' (str)"),
    ({"query": "x", "mode": "quick"}, "mode", "'fast' | 'slow'"),
    ({"query": "x", "limits": 5}, "limits", "did you mean 'limit'?"),
    ({"query": "x", "within": "docs-1"}, "within", "expected optional[docs]"),
]


@pytest.mark.parametrize(("arguments", "parameter", "message"), ARGUMENTS)
def test_arguments(arguments: dict[str, object], parameter: str, message: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        search.validate_arguments(arguments)
    assert (raised.value.tool, raised.value.parameter) == ("search", parameter)
    assert message in str(raised.value)
    assert str(raised.value).startswith(f"search: argument {parameter!r}: ")


def test_arguments_come_in_the_order_of_declaration() -> None:
    assert list(search.validate_arguments({"limit": 1, "query": "x"})) == ["query", "limit"]


def test_every_tool_is_a_tool_whatever_its_function() -> None:
    assert all(isinstance(item, Tool) for item in (search, get))
