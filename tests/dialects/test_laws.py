"""Laws of dialects, on generated registries, contexts and steps."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from aufbau import Prefix, Verdict
from dialects import CLikeDialect, Dialect, ListLiteral, Literal, Program, Return, Root, Step, Universe
from registry import Registry
from registry.types import ToolType
from tests.dialects.generate import contexts, registries, steps

DIALECTS = (CLikeDialect(),)
SETTINGS = settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking a registry takes minutes
)


def draw_case(data: st.DataObject) -> tuple[Registry, dict[str, ToolType], ToolType]:
    """A registry, a Γ over its types and an output type."""
    registry = data.draw(registries())
    universe = Universe.of(registry)
    return registry, data.draw(contexts(universe)), data.draw(st.sampled_from(list(universe)))


def draw_step(data: st.DataObject, registry: Registry, context: dict[str, ToolType], output: ToolType) -> Step | None:
    """A well-typed step, or None where there is none."""
    strategy = steps(registry, context, output)
    return None if strategy.is_empty else data.draw(strategy)


def survives(prefix: Prefix, text: str) -> Prefix:
    """Feed byte by byte; no prefix may be lost."""
    for byte in text.encode():
        prefix = prefix.feed(bytes((byte,)))
        assert prefix.verdict is not Verdict.LOST, str(prefix.explain())
    return prefix


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@given(data=st.data())
@SETTINGS
def test_rendered_steps_survive_and_read_back_equal(dialect: Dialect, data: st.DataObject) -> None:
    registry, context, output = draw_case(data)
    lowered = dialect.lower(registry)
    for _ in range(3):
        step = draw_step(data, registry, context, output)
        if step is None:
            assert lowered.start(context, output).verdict is Verdict.LOST
            return
        prefix = survives(lowered.start(context, output), lowered.render_step(step))
        assert prefix.verdict is Verdict.SATISFIED
        assert not prefix.extensible
        tree = prefix.tree()
        assert tree is not None
        # repr tells 1 from 1.0 and from true, which == does not.
        assert repr(lowered.read_step(tree)) == repr(step)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@given(data=st.data())
@SETTINGS
def test_open_returns_take_any_type(dialect: Dialect, data: st.DataObject) -> None:
    registry, context, output = draw_case(data)
    step = draw_step(data, registry, context, output)
    if not isinstance(step, Return) or isinstance(step.value, ListLiteral) or step.value == Literal(value=None):
        return  # null has no type of its own, and a list has one only if its items have the same
    lowered = dialect.lower(registry)
    prefix = survives(lowered.start(context, None), lowered.render_step(step))
    assert prefix.verdict is Verdict.SATISFIED


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@given(data=st.data())
@SETTINGS
def test_programs_read_back_equal(dialect: Dialect, data: st.DataObject) -> None:
    registry, context, output = draw_case(data)
    done: list[Step] = []
    scope = dict(context)
    for _ in range(3):
        step = draw_step(data, registry, scope, output)
        if step is None:
            return
        done.append(step)
        if isinstance(step, Return):
            break
        scope[step.name] = registry[step.call.tool].returns
    lowered = dialect.lower(registry)
    program = Program(steps=tuple(done))
    prefix = survives(lowered.start(context, output, Root.PROGRAM), lowered.render_program(program))
    if isinstance(done[-1], Return):
        assert prefix.verdict is Verdict.SATISFIED
        tree = prefix.tree()
        assert tree is not None
        assert repr(lowered.read_program(tree)) == repr(program)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@given(data=st.data(), seed=st.integers(0, 2**32))
@SETTINGS
def test_walks_of_admissible_bytes_never_dead_end(
    dialect: Dialect, nested: bool, data: st.DataObject, seed: int
) -> None:
    """With realizable demands, whatever the oracle admits goes on until a step is complete."""
    registry, context, output = draw_case(data)
    prefix = dialect.lower(registry, nested=nested).start(context, output)
    if prefix.verdict is Verdict.LOST:
        return
    choose = random.Random(seed)
    for _ in range(150):
        admissible = prefix.next_bytes()
        if not admissible:
            break
        # ASCII and no space: else most of a walk is spent inside strings and between lexemes.
        solid = [byte for byte in admissible if 0x20 < byte < 0x7F] or list(admissible)
        prefix = prefix.feed(bytes((choose.choice(solid),)))
        assert prefix.next_bytes() or prefix.verdict is Verdict.SATISFIED, prefix.text
