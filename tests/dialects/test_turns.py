"""Steps within the remaining turns: exactly those after which a return can be reached, by exhaustive search."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from aufbau import Verdict
from dialects import DIALECTS, ContextError, Let, LoweredDialect, Root, Universe, by_name
from dialects.turns import Distances
from registry import Handle, Registry, Tool, builtin, tool
from registry.types import HandleType, RecordType, ToolType

SETTINGS = settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)


class A(Handle):
    """A handle."""


class B(Handle):
    """A handle."""


class C(Handle):
    """A handle."""


@dataclasses.dataclass(frozen=True)
class Pair:
    """A record that needs two handles."""

    a: A
    b: B
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Box:
    """A record in a record."""

    pair: Pair
    c: C | None = None


GUARDED, WRITTEN = ["A", "B", "C", "Pair", "Box"], ["int", "A | None", "list[B]"]


@st.composite
def small_registries(draw: st.DrawFn) -> Registry:
    """Two to five tools over two to four types."""
    hints = draw(st.lists(st.sampled_from(GUARDED), min_size=2, max_size=3, unique=True))
    hints += draw(st.lists(st.sampled_from(WRITTEN), max_size=1))
    made = Registry()
    for name in ["make", "find", "open_", "join", "cut"][: draw(st.integers(2, 5))]:
        parts = draw(st.lists(st.sampled_from(hints), max_size=2))
        required = [draw(st.booleans()) or "None" not in hint for hint in parts]
        text = ", ".join(
            f"p{i}: {hint}" + ("" if needed else " = None")
            for i, (hint, needed) in enumerate(zip(parts, required, strict=True))
        )
        scope: dict[str, Any] = {**globals()}
        star = "*, " if text else ""
        exec(f"def {name}({star}{text}) -> {draw(st.sampled_from(hints))}:\n    raise NotImplementedError", scope)
        made.add(tool(scope[name]))
    return made


class Search:
    """What can be done from a Γ, by trying everything; shares no code with what it is held against."""

    def __init__(self, registry: Registry, output: ToolType, *, nested: bool) -> None:
        self.registry, self.output, self.nested = registry, output, nested
        self.written = Universe.of(registry, [output]).written
        self.known: dict[tuple[frozenset[str], int], bool] = {}

    def exists(self, kind: ToolType, bound: frozenset[ToolType], outer: frozenset[str] = frozenset()) -> bool:
        """Whether some expression has the type; `outer` are the types around it, of which none helps itself."""
        if kind.name in outer:
            return False
        if any(kind in fields_of(name) for name in bound):
            return True
        outer = outer | {kind.name}
        if self.nested and any(t.returns == kind and self.callable(t, bound, outer) for t in self.registry.values()):
            return True
        if isinstance(kind, RecordType):
            if kind not in self.written:
                return False
            return all(self.exists(part.type, bound, outer) for part in kind.fields if part.required)
        return not isinstance(kind, HandleType)

    def callable(self, tool: Tool, bound: frozenset[ToolType], outer: frozenset[str] = frozenset()) -> bool:
        """Whether all that the tool requires exists."""
        return all(self.exists(part.type, bound, outer) for part in tool.parameters if part.required)

    def solvable(self, bound: frozenset[ToolType], turns: int) -> bool:
        """Whether a return of the output can be reached in so many steps."""
        key = frozenset(kind.name for kind in bound), turns
        if key not in self.known:
            self.known[key] = turns > 0 and (
                self.exists(self.output, bound) or any(self.bindable(t, bound, turns) for t in self.registry.values())
            )
        return self.known[key]

    def bindable(self, tool: Tool, bound: frozenset[ToolType], turns: int) -> bool:
        """Whether a step that binds this tool's result leaves a way to return."""
        return self.callable(tool, bound) and self.solvable(bound | {tool.returns}, turns - 1)


def fields_of(kind: ToolType) -> list[ToolType]:
    """A type, and those of the fields below it."""
    inner = [found for part in kind.fields for found in fields_of(part.type)] if isinstance(kind, RecordType) else []
    return [kind, *inner]


OPENINGS = {"c": "let fresh = {}(", "sexpr": "(let fresh ({}", "xml": '<let name="fresh"><{}'}
ENDS = {"c": "", "sexpr": " ", "xml": ">"}
RETURNS = {"c": "return ", "sexpr": "(return ", "xml": "<return>"}


def admits(lowered: LoweredDialect, text: str, context: Mapping[str, ToolType], output: ToolType, turns: int) -> bool:
    """Whether a step may begin with this text."""
    return lowered.start(context, output, turns=turns).feed(text).verdict is not Verdict.LOST


@pytest.mark.parametrize("nested", [False, True])
@given(data=st.data())
@SETTINGS
def test_steps_that_leave_a_way_to_return_are_admitted_and_no_others(nested: bool, data: st.DataObject) -> None:
    registry = data.draw(small_registries())
    universe = Universe.of(registry)
    kinds = st.sampled_from(list(universe))
    output = data.draw(kinds)
    context = data.draw(st.dictionaries(st.sampled_from(["v", "w"]), kinds, max_size=1))
    bound = frozenset(context.values())
    search = Search(registry, output, nested=nested)
    name = data.draw(st.sampled_from(sorted(DIALECTS)))
    lowered = by_name(name).lower(registry, nested=nested, types=[output])
    for turns in (1, 2, 3, 4):
        for made in registry.values():
            ended = ENDS[name] if made.parameters or name == "xml" else ""
            opened = admits(lowered, OPENINGS[name].format(made.name) + ended, context, output, turns)
            assert opened == search.bindable(made, bound, turns), (turns, made)
        assert admits(lowered, RETURNS[name], context, output, turns) == search.exists(output, bound), turns
        lost = lowered.start(context, output, turns=turns).verdict is Verdict.LOST
        assert lost == (not search.solvable(bound, turns)), turns


@given(data=st.data(), seed=st.integers(0, 2**32))
@SETTINGS
def test_walks_return_within_their_turns(data: st.DataObject, seed: int) -> None:
    """Whatever admissible steps are taken, the last turn returns."""
    registry = data.draw(small_registries())
    output = data.draw(st.sampled_from(list(Universe.of(registry))))
    lowered = by_name(data.draw(st.sampled_from(sorted(DIALECTS)))).lower(registry, types=[output])
    context: dict[str, ToolType] = {}
    turns, choose = data.draw(st.integers(1, 4)), random.Random(seed)
    if lowered.start(context, output, turns=turns).verdict is Verdict.LOST:
        return
    for left in range(turns, 0, -1):
        prefix = lowered.start(context, output, turns=left)
        while prefix.verdict is not Verdict.SATISFIED:
            solid = [byte for byte in prefix.next_bytes() if 0x20 < byte < 0x7F] or list(prefix.next_bytes())
            assert solid, prefix.text
            prefix = prefix.feed(bytes((choose.choice(solid),)))
            if len(prefix.text) > 200:
                return
        tree = prefix.tree()
        assert tree is not None
        step = lowered.read_step(tree)
        if not isinstance(step, Let):
            return
        context[step.name] = registry[step.call.tool].returns
    raise AssertionError("the last turn bound a name")


def make() -> A:
    """Make."""
    raise NotImplementedError


def find() -> B:
    """Find."""
    raise NotImplementedError


def join(a: A, b: B) -> C:
    """Join."""
    raise NotImplementedError


def test_only_what_leads_on_is_bound_when_turns_are_short() -> None:
    tools = Registry([make, find, join])
    lowered = by_name("c").lower(tools, types=[tools["join"].returns])
    kinds = lowered.universe.by_name
    found: dict[str, list[int]] = {}
    for text in ("let x = make();", "let x = find();", "let x = join(a, b);", "return "):
        for turns in (1, 2, 3, 4):
            if admits(lowered, text, {"a": kinds["a"]}, kinds["c"], turns):
                found.setdefault(text, []).append(turns)
    assert found == {"let x = make();": [4], "let x = find();": [3, 4]}


def test_the_built_in_tools_near_the_last_turn() -> None:
    with builtin() as tools:
        lowered, docs = by_name("c").lower(tools), tools["search"].returns
        texts = ('let x = search("a");', "let x = format(1);", "return ")
        admitted = {turns: [admits(lowered, text, {}, docs, turns) for text in texts] for turns in (1, 2, 3)}
    assert admitted == {1: [False, False, False], 2: [True, False, False], 3: [True, True, False]}


@pytest.mark.parametrize(("turns", "root"), [(0, Root.STEP), (3, Root.PROGRAM)])
def test_turns_that_make_no_sense(turns: int, root: Root) -> None:
    with builtin() as tools, pytest.raises(ContextError, match="turns="):
        by_name("c").lower(tools).start({}, None, root, turns=turns)


@given(data=st.data())
@SETTINGS
def test_past_its_bound_the_search_gives_a_lower_bound(data: st.DataObject) -> None:
    registry = data.draw(small_registries())
    output = data.draw(st.sampled_from(list(Universe.of(registry))))
    universe = Universe.of(registry, [output])
    exact = Distances(universe, registry, nested=False).bindings((), output, 5)
    for states in (1, 2, 3):
        assert Distances(universe, registry, nested=False, max_states=states).bindings((), output, 5) <= exact
