"""Hypothesis strategies: registries over a pool of Python types, and well-typed steps over what they lower to."""

from __future__ import annotations

import dataclasses
import datetime
import enum
from collections.abc import Mapping
from typing import Any, Literal

from hypothesis import strategies as st
from pydantic import BaseModel

from dialects import Call, Expression, Let, ListLiteral, RecordLiteral, Reference, Return, Step, Universe
from dialects import Literal as Lit
from dialects.literals import MAX_DIGITS
from registry import Registry, Tool, tool
from registry.types import (
    FLOAT,
    INT,
    DateType,
    EnumType,
    ListType,
    OptionalType,
    RecordType,
    ScalarType,
    ToolType,
)


class Docs:
    """A handle."""


class Speed(enum.Enum):
    """An enumeration whose members are spelled by strings."""

    FAST = "fast"
    SLOW = "ganz langsam"


@dataclasses.dataclass(frozen=True)
class Point:
    """A record without defaults."""

    x: int
    y: float


class Page(BaseModel):
    """A record with defaults and parts of every kind."""

    title: str
    docs: Docs
    speed: Speed = Speed.FAST
    at: Point | None = None
    tags: list[str] = []

    model_config = {"arbitrary_types_allowed": True}


POOL: dict[str, Any] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "datetime.date": datetime.date,
    "Docs": Docs,
    "Speed": Speed,
    "Point": Point,
    "Page": Page,
    "Literal['a', \"b'\\n\"]": Literal["a", "b'\n"],
    "list[int]": list[int],
    "list[float]": list[float],
    "list[Docs]": list[Docs],
    "list[list[str]]": list[list[str]],
    "str | None": str | None,
    "float | None": float | None,
    "list[Page] | None": list[Page] | None,
}
WORDS = ["alpha", "beta", "date", "title", "x", "query", "limit", "in_", "count", "fast", "lets", "nullx"]
NAMES = ["v1", "v10", "d", "letter", "Zed", "returned"]


@st.composite
def registries(draw: st.DrawFn) -> Registry:
    """One to four tools of up to four parameters, some with defaults."""
    made = Registry()
    for name in draw(st.lists(st.sampled_from(WORDS[3:]), min_size=1, max_size=4, unique=True)):
        scope: dict[str, Any] = {**globals()}
        exec(draw(_sources(name)), scope)
        made.add(tool(scope[name]))
    return made


@st.composite
def _sources(draw: st.DrawFn, name: str) -> str:
    """The text of a function: its parameters are by keyword only, so that any may have a default."""
    words = draw(st.lists(st.sampled_from(WORDS), max_size=4, unique=True))
    hints = [draw(st.sampled_from(sorted(POOL))) for _ in words]
    defaults = [" = None" if hint.endswith("None") and draw(st.booleans()) else "" for hint in hints]
    parameters = [f"{word}: {hint}{default}" for word, hint, default in zip(words, hints, defaults, strict=True)]
    star = "*, " if parameters else ""
    returns = draw(st.sampled_from(sorted(POOL)))
    return f"def {name}({star}{', '.join(parameters)}) -> {returns}:\n    raise NotImplementedError"


def contexts(universe: Universe) -> st.SearchStrategy[dict[str, ToolType]]:
    """Some bound names with types of the language; some share their beginning."""
    return st.dictionaries(st.sampled_from(NAMES), st.sampled_from(list(universe)), max_size=len(NAMES))


def steps(registry: Registry, context: Mapping[str, ToolType], output: ToolType) -> st.SearchStrategy[Step]:
    """Well-typed steps under Γ; nothing when none exists."""
    fresh = st.sampled_from([name for name in ("fresh", "v2", "v101", "lett") if name not in context])
    calls = [_calls(tool, context) for tool in registry.values()]
    lets = st.builds(Let, name=fresh, call=st.one_of(calls))
    return st.one_of(lets, st.builds(Return, value=expressions(output, context)))


def expressions(kind: ToolType, context: Mapping[str, ToolType], depth: int = 0) -> st.SearchStrategy[Expression]:
    """Expressions that a demand for this type accepts; nothing when only a handle would do and none is bound."""
    ways: list[st.SearchStrategy[Expression]] = [st.just(found) for found in _references(kind, context)]
    match kind:
        case EnumType():
            ways.append(st.builds(Lit, value=st.sampled_from(kind.members)))
        case OptionalType():
            ways += [st.just(Lit(value=None)), expressions(kind.item, context, depth)]
        case ListType():
            item = expressions(kind.item, context, depth + 1)
            items = st.lists(item, max_size=0 if depth > 1 or item.is_empty else 3)
            ways.append(st.builds(ListLiteral, items=items.map(tuple)))
        case RecordType():
            parts = _parts([(part.name, part.type, part.required) for part in kind.fields], context, depth + 1)
            ways.append(st.builds(RecordLiteral, type=st.just(kind.name), fields=parts))
        case ScalarType() | DateType():
            ways.append(LITERALS[kind.name])
            ways += [st.just(found) for found in _references(INT, context)] if kind == FLOAT else []
    return st.one_of(ways) if ways else st.nothing()


_NUMBERS = st.floats(allow_nan=False, allow_infinity=False, max_value=1e307, min_value=-1e307)
_INTS = st.integers(min_value=1 - 10**MAX_DIGITS, max_value=10**MAX_DIGITS - 1)
LITERALS: dict[str, st.SearchStrategy[Expression]] = {
    "string": st.builds(Lit, value=st.text(max_size=12)),
    "int": st.builds(Lit, value=_INTS),
    "float": st.builds(Lit, value=_NUMBERS | _INTS),
    "bool": st.builds(Lit, value=st.booleans()),
    "date": st.builds(Lit, value=st.dates()),
}


def _calls(tool: Tool, context: Mapping[str, ToolType]) -> st.SearchStrategy[Call]:
    parts = _parts([(p.name, p.type, p.required) for p in tool.parameters], context, 0)
    return st.builds(Call, tool=st.just(tool.name), arguments=parts)


def _parts(
    parts: list[tuple[str, ToolType, bool]], context: Mapping[str, ToolType], depth: int
) -> st.SearchStrategy[tuple[tuple[str, Expression], ...]]:
    """Arguments in the order of declaration, some with defaults left out; nothing when a required one has no value."""
    ways = []
    for name, kind, required in parts:
        value = st.tuples(st.just(name), expressions(kind, context, depth))
        ways.append(value.map(lambda pair: (pair,)) if required else st.just(()) | value.map(lambda pair: (pair,)))
    return st.tuples(*ways).map(lambda found: tuple(pair for some in found for pair in some))


def _references(kind: ToolType, context: Mapping[str, ToolType]) -> list[Reference]:
    """Bound names, and fields read from them up to two deep, that are of a type."""
    reachable = [(Reference(name=name), bound) for name, bound in context.items()]
    for _ in range(2):
        reachable += [
            (Reference(name=reference.name, fields=(*reference.fields, part.name)), part.type)
            for reference, bound in reachable
            if isinstance(bound, RecordType)
            for part in bound.fields
        ]
    return list(dict.fromkeys(reference for reference, bound in reachable if bound == kind))


def wild_steps(registry: Registry, context: Mapping[str, ToolType]) -> st.SearchStrategy[Step]:
    """Steps of known tools, parameters and names, of which most are ill-typed."""
    universe = Universe.of(registry)
    scalars = st.one_of(
        [LITERALS[kind.name] for kind in universe if kind.name in LITERALS]
        + [st.builds(Lit, value=st.sampled_from(kind.members)) for kind in universe.enums]
        + ([st.just(Lit(value=None))] if universe.has_optionals else [])
    )
    paths = [st.just(reference) for kind in universe for reference in _references(kind, context)]
    leaves = st.one_of(scalars, st.builds(Reference, name=st.sampled_from(["unbound", *context])), *paths)
    lists = (
        st.builds(ListLiteral, items=st.lists(leaves, max_size=2).map(tuple)) if universe.has_lists else st.nothing()
    )
    calls = [
        _wild_arguments([part.name for part in made.parameters], leaves | lists).map(
            lambda found, name=made.name: Call(tool=name, arguments=found)  # type: ignore[misc]
        )
        for made in registry.values()
    ]
    lets = st.builds(Let, name=st.sampled_from(["fresh", *context]), call=st.one_of(calls))
    return st.one_of(lets, st.builds(Return, value=leaves | lists))


def _wild_arguments(
    names: list[str], values: st.SearchStrategy[Expression]
) -> st.SearchStrategy[tuple[tuple[str, Expression], ...]]:
    """Some of the arguments, in any order, and now and then one twice."""
    if not names:
        return st.just(())
    return st.lists(st.tuples(st.sampled_from(names), values), max_size=len(names) + 1).map(tuple)
