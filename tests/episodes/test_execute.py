"""Executing steps: values by node, strict checks, and nothing bound when anything fails."""

from __future__ import annotations

import dataclasses
import datetime
import enum

import pytest

from dialects import Call, Expression, Let, ListLiteral, Literal, RecordLiteral, Reference, Return
from episodes import (
    Binding,
    Bindings,
    Bound,
    BoundNameError,
    FieldError,
    Returned,
    StepError,
    UnboundNameError,
    execute_step,
)
from registry import (
    ArgumentError,
    Handle,
    MismatchError,
    ModelRetry,
    Registry,
    ResultError,
    ToolExecutionError,
    ToolTimeoutError,
    UnknownToolError,
    type_from_hint,
)
from registry.types import DATE, FLOAT, INT, STRING, ListType, OptionalType, ToolType

pytestmark = pytest.mark.anyio


class Tone(enum.Enum):
    """An enumeration."""

    LOUD = "loud"
    SOFT = "soft"


class Box(Handle):
    """A handle."""


@dataclasses.dataclass(frozen=True)
class Point:
    """A record."""

    x: int
    y: float = 0.5


@dataclasses.dataclass(frozen=True)
class Pin:
    """A record in a record."""

    at: Point
    box: Box


BOX = Box()


def total(numbers: list[float]) -> float:
    """Add up."""
    return sum(numbers)


def move(point: Point, by: int = 1) -> Point:
    """Move to the right."""
    return dataclasses.replace(point, x=point.x + by)


def say(text: str, tone: Tone = Tone.SOFT) -> str:
    """Speak."""
    return text.upper() if tone is Tone.LOUD else text


async def later(text: str | None) -> str:
    """Answer later."""
    return text or "nothing"


def lie() -> int:
    """Return what was not promised."""
    return "3"  # type: ignore[return-value]


def fail() -> int:
    """Raise."""
    raise ZeroDivisionError("none left")


def retry() -> int:
    """Ask for another try."""
    raise ModelRetry("try another word")


async def sleep() -> int:
    """Never answer."""
    import anyio

    await anyio.sleep_forever()
    return 0


TOOLS = Registry([total, move, say, later, lie, fail, retry, sleep])
BINDINGS = Bindings(
    [
        Binding(name="n", type=INT, value=3),
        Binding(name="total", type=STRING, value="a name like a tool's"),
        Binding(name="pin", type=type_from_hint(Pin), value=Pin(at=Point(x=1), box=BOX)),
    ]
)


def call(tool: str, **arguments: Expression) -> Call:
    """A call with arguments in the order given."""
    return Call(tool=tool, arguments=tuple(arguments.items()))


def lit(value: str | int | float | bool | datetime.date | None) -> Literal:
    """A literal."""
    return Literal(value=value)


def ref(name: str, *fields: str) -> Reference:
    """A reference."""
    return Reference(name=name, fields=fields)


CALLS: list[tuple[Call, object]] = [
    (call("total", numbers=ListLiteral(items=(lit(1), lit(2.5), ref("n"), ref("pin", "at", "y")))), 7.0),
    (call("move", point=ref("pin", "at")), Point(x=2)),
    (call("move", point=RecordLiteral(type="Point", fields=(("x", lit(5)),)), by=ref("n")), Point(x=8)),
    (call("move", point=call("move", point=ref("pin", "at"))), Point(x=3)),
    (call("say", text=lit("total"), tone=lit("loud")), "TOTAL"),
    (call("say", text=ref("total")), "a name like a tool's"),
    (call("later", text=lit(None)), "nothing"),
]


@pytest.mark.parametrize(("made", "value"), CALLS)
async def test_a_let_binds_the_result(made: Call, value: object) -> None:
    outcome = await execute_step(Let(name="r", call=made), BINDINGS, TOOLS, timeout=5)
    assert outcome == Bound(binding=Binding(name="r", type=TOOLS[made.tool].returns, value=value))


RETURNS: list[tuple[Expression, ToolType | None, object, ToolType | None]] = [
    (ref("n"), INT, 3, INT),
    (ref("pin", "box"), None, BOX, type_from_hint(Box)),
    (lit(3), FLOAT, 3.0, FLOAT),
    (lit(None), OptionalType(INT), None, OptionalType(INT)),
    (lit(datetime.date(2026, 1, 2)), None, datetime.date(2026, 1, 2), DATE),
    (lit("soft"), type_from_hint(Tone), Tone.SOFT, type_from_hint(Tone)),
    (ListLiteral(items=(lit(1), ref("n"))), None, [1, 3], ListType(INT)),
    (ListLiteral(items=(lit(1), lit(2.5))), ListType(FLOAT), [1.0, 2.5], ListType(FLOAT)),
    (ListLiteral(items=(lit(1), lit("a"))), None, [1, "a"], None),
    (ListLiteral(items=()), None, [], None),
    (call("move", point=ref("pin", "at")), None, Point(x=2), type_from_hint(Point)),
]


@pytest.mark.parametrize(("value", "output", "expected", "kind"), RETURNS)
async def test_a_return_gives_value_and_type(
    value: Expression, output: ToolType | None, expected: object, kind: ToolType | None
) -> None:
    outcome = await execute_step(Return(value=value), BINDINGS, TOOLS, output_type=output)
    assert isinstance(outcome, Returned)
    assert (outcome.value, type(outcome.value), outcome.type) == (expected, type(expected), kind)


FAULTS: list[tuple[Let | Return, type[Exception], str]] = [
    (Return(value=ref("m")), UnboundNameError, "'m' is not bound; "),
    (Return(value=ref("pin", "att")), FieldError, "no field 'att'; did you mean 'at'"),
    (Return(value=ref("n", "x")), FieldError, "n : int has no field"),
    (Return(value=lit("3")), StepError, "return: expected int"),
    (Let(name="n", call=call("lie")), BoundNameError, "'n' is bound already"),
    (Let(name="r", call=call("moove")), UnknownToolError, "did you mean 'move'"),
    (Let(name="r", call=call("move", point=ref("n"))), ArgumentError, "move: argument 'point'"),
    (Let(name="r", call=call("total", numbers=lit("12"))), ArgumentError, r"expected list\[float\]"),
    (Let(name="r", call=call("say")), ArgumentError, "missing"),
    (Let(name="r", call=call("move", point=RecordLiteral(type="Pint", fields=()))), StepError, "'Point'"),
    (
        Let(name="r", call=call("move", point=RecordLiteral(type="Point", fields=(("x", lit("1")),)))),
        MismatchError,
        r"at \.x",
    ),
    (Let(name="r", call=call("lie")), ResultError, "lie: result"),
    (Let(name="r", call=call("fail")), ToolExecutionError, "none left"),
    (Let(name="r", call=call("retry")), ModelRetry, "try another word"),
    (Let(name="r", call=call("sleep")), ToolTimeoutError, "no result within"),
]


@pytest.mark.parametrize(("step", "error", "message"), FAULTS, ids=[message for _, _, message in FAULTS])
async def test_faults_are_named_and_bind_nothing(step: Let | Return, error: type[Exception], message: str) -> None:
    before = dict(BINDINGS)
    with pytest.raises(error, match=message):
        await execute_step(step, BINDINGS, TOOLS, output_type=INT, timeout=0.05)
    assert dict(BINDINGS) == before
