"""Γ with values, short and plain forms, graders, transcripts, and what importing the package loads."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import math
import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialects import Call, Expression, Let, ListLiteral, Literal, RecordLiteral, Reference, Return, Step
from episodes import (
    Binding,
    Bindings,
    Bound,
    BoundNameError,
    Environment,
    Grader,
    Result,
    Returned,
    Transcript,
    TranscriptError,
    Turn,
    UnboundNameError,
    approx,
    contains,
    equals,
    one_of,
    plain,
    predicate,
    short,
)
from registry import Handle, type_from_hint, type_from_schema
from registry.types import INT, STRING, RecordType


class Color(enum.Enum):
    """An enumeration."""

    RED = "red"


@dataclasses.dataclass(frozen=True)
class Point:
    """A record."""

    x: int
    color: Color = Color.RED


class Opaque:
    """A handle that says nothing of itself."""


@dataclasses.dataclass(frozen=True)
class Pile(Handle):
    """A handle that says what it is."""

    size: int

    def __str__(self) -> str:
        return f"a pile\nof {self.size}"


FORMS: list[tuple[object, object, str]] = [
    ("a\n", "a\n", '"a\\n"'),
    (True, True, "true"),
    (None, None, "null"),
    (1.5, 1.5, "1.5"),
    (math.inf, {"type": "float", "repr": "inf"}, "inf"),
    (datetime.date(2026, 1, 2), "2026-01-02", "2026-01-02"),
    (Color.RED, "red", '"red"'),
    ([1, [2]], [1, [2]], "[1, [2]]"),
    (Point(x=1), {"x": 1, "color": "red"}, 'Point(x = 1, color = "red")'),
    (Opaque(), {"type": "Opaque", "repr": "<Opaque>"}, "<Opaque>"),
    (Pile(3), {"type": "Pile", "repr": "a pile of 3"}, "a pile of 3"),
    ("x" * 1500, "x" * 1500, '"' + "x" * 200 + '…" (1,500 characters)'),
    (list(range(1000)), list(range(1000)), "[0, 1, 2, 3, 4, 5, 6, 7, …] (1,000 items)"),
]


@pytest.mark.parametrize(("value", "data", "text"), FORMS, ids=lambda value: repr(value)[:20])
def test_plain_and_short_forms(value: object, data: object, text: str) -> None:
    assert plain(value) == data
    assert json.loads(json.dumps(plain(value), allow_nan=False)) == data
    assert short(value) == text


def test_short_text_is_bounded_as_a_whole() -> None:
    text = short([["word " * 30] * 8] * 8)
    assert len(text) < 650 and text.endswith("characters in all)")


def test_bindings_are_persistent_and_fresh() -> None:
    empty = Bindings()
    one = empty.bind(Binding(name="n", type=INT, value=1))
    two = one.bind(Binding(name="s", type=STRING, value="a"))
    assert (list(empty), list(one), list(two)) == ([], ["n"], ["n", "s"])
    assert two.types() == {"n": INT, "s": STRING}
    assert str(two["s"]) == 's : string = "a"'
    assert two != one and two == Bindings([*one.values(), two["s"]]) and hash(two) != hash(one)
    assert two.get("missing") is None and "s" in two
    with pytest.raises(BoundNameError, match="'n' is bound already"):
        two.bind(Binding(name="n", type=INT, value=2))
    with pytest.raises(UnboundNameError, match=r"^'nn' is not bound; did you mean 'n'\?$"):
        two["nn"]


GRADES: list[tuple[Grader, list[object], list[object]]] = [
    (equals(3), [3, 3.0], [4, "3", True, None]),
    (equals(1), [1], [True]),
    (equals([1, Point(x=2)]), [[1, Point(x=2)], [1, {"x": 2, "color": "red"}]], [[True, Point(x=2)], [1]]),
    (equals(None), [None], [0, ""]),
    (equals(math.nan), [math.nan], [1.0]),
    (approx(1.0, 0.25), [1, 1.25, 0.75], [1.26, "1", True, None, math.nan]),
    (contains("Zürich"), ["in ZÜRICH."], ["Zurich", 3, None]),
    (contains(2), [[1, 2]], [[True], 2, "2"]),
    (one_of("a", 2), ["a", 2], ["b", True]),
    (predicate(lambda output, environment: output == len(environment.after)), [0], [1]),
]


@pytest.mark.parametrize(("grader", "passing", "failing"), GRADES)
def test_graders(grader: Grader, passing: list[object], failing: list[object]) -> None:
    environment = Environment()
    for output in passing:
        assert grader(output, environment).passed, output
    for output in failing:
        grade = grader(output, environment)
        assert not grade.passed and short(output) in grade.reason


@pytest.mark.parametrize(
    "make", [lambda: approx(1, -1), lambda: approx(1, math.nan), lambda: one_of()], ids=["negative", "nan", "no option"]
)
def test_graders_that_could_pass_nothing_are_refused(make: Callable[[], Grader]) -> None:
    with pytest.raises(ValueError, match=r"tolerance|option"):
        make()


def _pairs(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[tuple[tuple[str, Expression], ...]]:
    return st.lists(st.tuples(st.text(), inner), max_size=3).map(tuple)


EXPRESSIONS: st.SearchStrategy[Expression] = st.recursive(
    st.builds(Literal, value=st.text() | st.integers() | st.booleans() | st.none() | st.dates() | st.floats(-1e9, 1e9))
    | st.builds(Reference, name=st.text(), fields=st.lists(st.text(), max_size=2).map(tuple)),
    lambda inner: st.one_of(
        st.builds(ListLiteral, items=st.lists(inner, max_size=3).map(tuple)),
        st.builds(RecordLiteral, type=st.text(), fields=_pairs(inner)),
        st.builds(Call, tool=st.text(), arguments=_pairs(inner)),
    ),
    max_leaves=6,
)


STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(Return, value=EXPRESSIONS),
    st.builds(Let, name=st.text(), call=st.builds(Call, tool=st.text(), arguments=_pairs(EXPRESSIONS))),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)
TURNS = st.builds(
    Turn,
    number=st.integers(min_value=1),
    text=st.text(),
    thought=st.text(),
    step=st.none() | STEPS,
    result=st.none() | st.builds(Result, name=st.none() | st.text(), type=st.none() | st.text(), value=JSON),
    observation=st.text(),
    error=st.none() | st.text(),
)


@given(st.lists(TURNS, max_size=3))
def test_transcripts_survive_json(turns: list[Turn]) -> None:
    transcript = Transcript()
    for turn in turns:
        transcript = transcript.add(turn)
    assert repr(Transcript.from_json(transcript.to_json())) == repr(transcript)
    assert len(transcript) == len(turns) and list(transcript) == turns


def test_outcomes_are_recorded_as_plain_data() -> None:
    bound = Bound(binding=Binding(name="p", type=type_from_hint(Pile), value=Pile(2)))
    assert Result.of(bound) == Result(name="p", type="pile", value={"type": "Pile", "repr": "a pile of 2"})
    assert Result.of(Returned(value=[], type=None)) == Result(name=None, type=None, value=[])
    assert bound.observation() == "p : pile = a pile of 2"
    assert Returned(value="a", type=STRING).observation() == '"a"'


TURN = {"number": 1, "thought": "", "text": "", "step": None, "result": None, "observation": "", "error": None}
BROKEN: list[tuple[str, str]] = [
    ("{", "not JSON"),
    ("[]", "version 1"),
    ('{"version": 2, "turns": []}', "version 1"),
    ('{"version": 1, "turns": [3]}', "every turn"),
    (json.dumps({"version": 1, "turns": [TURN | {"number": "1"}]}), "'number' to be a int"),
    (json.dumps({"version": 1, "turns": [TURN | {"step": {"let": "x", "to": {"literal": 1}}}]}), "expected a step"),
    (json.dumps({"version": 1, "turns": [TURN | {"step": {"return": {"lit": 1}}}]}), "expected an expression"),
    (json.dumps({"version": 1, "turns": [TURN | {"step": {"return": {"date": "2026-13-01"}}}]}), "no date"),
    (json.dumps({"version": 1, "turns": [TURN | {"result": {"name": 3}}]}), "expected a result"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN, ids=[message for _, message in BROKEN])
def test_broken_transcripts_are_refused(text: str, message: str) -> None:
    with pytest.raises(TranscriptError, match=message):
        Transcript.from_json(text)


def test_importing_episodes_loads_no_model_library() -> None:
    program = "import sys, episodes; print([name for name in ('torch', 'agentkit') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_fields_that_were_left_out_are_not_shown() -> None:
    kind = type_from_schema(
        {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}, name="made"
    )
    assert isinstance(kind, RecordType)
    value = kind.build({"a": "x"})
    assert short(value) == 'made(a = "x")'
    assert plain(value) == {"a": "x"}
