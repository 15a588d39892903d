"""Whole programs: read by the oracle, executed by the executor of steps, graded by value, in every dialect."""

from __future__ import annotations

import dataclasses
from functools import cache

import pytest

from dialects import DIALECTS, Call, Let, Literal, LoweredDialect, Program, RecordLiteral, Reference, Return, by_name
from episodes import (
    Binding,
    Bindings,
    BoundNameError,
    Episode,
    ProgramError,
    Returned,
    execute_program,
    read_program,
    run_program,
)
from registry import ModelRetry, Registry, tool
from registry.types import INT, STRING

pytestmark = pytest.mark.anyio


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: int = 0


@tool
def double(n: int) -> int:
    """Twice a number."""
    if n > 1000:
        raise ModelRetry("too large")
    return 2 * n


@tool
def point(x: int) -> Point:
    """A point."""
    return Point(x=x, y=5)


@tool
def add(p: Point, n: int = 1) -> int:
    """Add to a point's y."""
    return p.y + n


TOOLS = Registry([double, point, add])


@cache
def lowered_in(dialect: str) -> LoweredDialect:
    """The tools in a dialect."""
    return by_name(dialect).lower(TOOLS)


def _let(name: str, tool: str, **arguments: Literal | Reference | RecordLiteral) -> Let:
    return Let(name=name, call=Call(tool=tool, arguments=tuple(arguments.items())))


PROGRAM = Program(
    steps=(
        _let("p", "point", x=Literal(value=3)),
        _let("d", "double", n=Reference(name="p", fields=("y",))),
        _let("s", "add", p=RecordLiteral(type="Point", fields=(("x", Literal(value=1)),)), n=Reference(name="d")),
        Return(value=Reference(name="s")),
    )
)


@pytest.mark.parametrize("name", DIALECTS)
async def test_a_program_is_read_executed_and_graded_by_value(name: str) -> None:
    lowered = lowered_in(name)
    episode = Episode(name="e", prompt="p", registry=TOOLS, output_type=INT, expected=10)
    run = await run_program(episode, lowered.render_program(PROGRAM), lowered)
    assert run.program == PROGRAM
    assert [bound.binding.value for bound in run.outcome.bound] == [Point(x=3, y=5), 10, 10]
    assert run.outcome.returned == Returned(value=10, type=INT)
    assert list(run.outcome.bindings) == ["p", "d", "s"]
    assert run.grade is not None and run.grade.passed


async def test_a_wrong_value_is_graded_so() -> None:
    lowered = lowered_in("c")
    episode = Episode(name="e", prompt="p", registry=TOOLS, output_type=INT, expected=11)
    run = await run_program(episode, lowered.render_program(PROGRAM), lowered)
    assert run.grade is not None and not run.grade.passed


async def test_a_program_starts_under_the_names_of_its_episode() -> None:
    lowered = lowered_in("c")
    bindings = Bindings([Binding(name="n", type=INT, value=4)])
    episode = Episode(name="e", prompt="p", registry=TOOLS, bindings=bindings, expected=8)
    run = await run_program(episode, "let m = double(n); return m;", lowered)
    assert run.grade is not None and run.grade.passed
    assert list(bindings) == ["n"]


REFUSED = [
    ("let m = double(n); return m;", "not a program of the c dialect"),
    ("let m = double(1);", "needs a return"),
    ("let m = double(1); return m", "needs a return"),
    ("let m = double(1); let m = double(2); return m;", "not a program"),
    ('let m = double(1); return "m";', "not a program"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_a_text_that_is_no_program_is_refused(text: str, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        read_program(lowered_in("c"), text, output_type=INT)


async def test_what_a_step_raises_names_the_step_and_binds_nothing() -> None:
    steps = (PROGRAM.steps[0], _let("d", "double", n=Literal(value=2000)), PROGRAM.steps[-1])
    before = Bindings()
    with pytest.raises(ModelRetry) as caught:
        await execute_program(Program(steps=steps), before, TOOLS)
    assert caught.value.__notes__ == ["in step 2 of 3"]
    assert not before


async def test_a_program_whose_name_is_bound_is_refused() -> None:
    with pytest.raises(BoundNameError):
        await execute_program(PROGRAM, Bindings([Binding(name="p", type=STRING, value="")]), TOOLS)


async def test_a_program_without_a_return_is_refused_at_its_end() -> None:
    with pytest.raises(ProgramError, match="no return"):
        await execute_program(Program(steps=PROGRAM.steps[:2]), Bindings(), TOOLS)
