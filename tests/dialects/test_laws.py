"""Laws of dialects, on generated registries, contexts and steps."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from aufbau import Prefix, Verdict
from dialects import (
    DIALECTS,
    Call,
    Let,
    ListLiteral,
    Literal,
    LoweredDialect,
    Program,
    Return,
    Root,
    Step,
    Universe,
    by_name,
    translate,
)
from registry import Registry
from registry.types import ToolType
from tests.dialects.generate import contexts, registries, steps, wild_steps

SETTINGS = settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking a registry takes minutes
)


def draw_case(data: st.DataObject) -> tuple[Registry, dict[str, ToolType], ToolType]:
    """A registry, a Γ over its types and an output type."""
    registry = data.draw(registries())
    universe = Universe.of(registry)
    return registry, data.draw(contexts(universe)), data.draw(st.sampled_from(list(universe)))


def draw_lowered(data: st.DataObject, registry: Registry, output: ToolType, *, nested: bool = False) -> LoweredDialect:
    """The tools in one of the dialects."""
    return by_name(data.draw(st.sampled_from(sorted(DIALECTS)))).lower(registry, nested=nested, types=[output])


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


@given(data=st.data())
@SETTINGS
def test_rendered_steps_survive_and_read_back_equal(data: st.DataObject) -> None:
    registry, context, output = draw_case(data)
    lowered = draw_lowered(data, registry, output)
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


@given(data=st.data())
@SETTINGS
def test_open_returns_take_any_type(data: st.DataObject) -> None:
    registry, context, output = draw_case(data)
    step = draw_step(data, registry, context, output)
    if not isinstance(step, Return) or isinstance(step.value, ListLiteral) or step.value == Literal(value=None):
        return  # null has no type of its own, and a list has one only if its items have the same
    lowered = draw_lowered(data, registry, output)
    prefix = survives(lowered.start(context, None), lowered.render_step(step))
    assert prefix.verdict is Verdict.SATISFIED


@given(data=st.data())
@SETTINGS
def test_programs_read_back_equal(data: st.DataObject) -> None:
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
    lowered = draw_lowered(data, registry, output)
    program = Program(steps=tuple(done))
    text = lowered.render_program(program)
    start = lowered.start(context, output, Root.PROGRAM)
    if start.verdict is Verdict.LOST:  # whatever is bound, nothing of the output type comes to be
        assert not isinstance(done[-1], Return)
        return
    prefix = survives(start, text)
    if isinstance(done[-1], Return):
        assert prefix.verdict is Verdict.SATISFIED
        tree = prefix.tree()
        assert tree is not None
        assert repr(lowered.read_program(tree)) == repr(program)
        other = draw_lowered(data, registry, output)
        there = translate(text, lowered, other, context, output, Root.PROGRAM)
        assert translate(there, other, lowered, context, output, Root.PROGRAM) == text


@given(data=st.data())
@SETTINGS
def test_a_step_translates_into_every_dialect_and_back(data: st.DataObject) -> None:
    registry, context, output = draw_case(data)
    step = draw_step(data, registry, context, output)
    if step is None:
        return
    source, target = (
        by_name(name).lower(registry, types=[output]) for name in data.draw(st.permutations(sorted(DIALECTS)))[:2]
    )
    text = source.render_step(step)
    there = translate(text, source, target, context, output)
    assert there == target.render_step(step)
    assert translate(there, target, source, context, output) == text


@given(data=st.data())
@SETTINGS
def test_every_dialect_accepts_the_same_steps(data: st.DataObject) -> None:
    """A tree is well-typed in all of them or LOST in all of them."""
    registry, context, output = draw_case(data)
    lowered = [dialect.lower(registry, types=[output]) for dialect in DIALECTS.values()]
    for _ in range(5):
        step = data.draw(wild_steps(registry, context))
        found = {}
        for each in lowered:
            prefix = each.start(context, output).feed(each.render_step(step))
            found[each.name] = prefix.verdict
            tree = prefix.tree() if prefix.verdict is Verdict.SATISFIED else None
            assert tree is None or repr(each.read_step(tree)) == repr(declared(step, registry))
        assert found in [dict.fromkeys(found, verdict) for verdict in (Verdict.SATISFIED, Verdict.LOST)], step


def declared(step: Step, registry: Registry) -> Step:
    """The step with its arguments in order of declaration, as it is read."""
    if isinstance(step, Return):
        return step
    order = [part.name for part in registry[step.call.tool].parameters]
    arguments = tuple(sorted(step.call.arguments, key=lambda argument: order.index(argument[0])))
    return Let(name=step.name, call=Call(tool=step.call.tool, arguments=arguments))


@given(data=st.data())
@SETTINGS
def test_keyword_arguments_come_in_any_order_and_white_space_varies(data: st.DataObject) -> None:
    registry, context, output = draw_case(data)
    step = draw_step(data, registry, context, output)
    if not isinstance(step, Let):
        return
    moved = data.draw(st.permutations(step.call.arguments))
    lowered = draw_lowered(data, registry, output)
    text = lowered.render_step(Let(name=step.name, call=Call(tool=step.call.tool, arguments=tuple(moved))))
    before, after = data.draw(st.sampled_from(["", " ", "\n", "\t  "])), data.draw(st.sampled_from(["", "\n\n"]))
    prefix = survives(lowered.start(context, output), before + text + after)
    tree = prefix.tree()
    assert prefix.verdict is Verdict.SATISFIED and tree is not None
    assert repr(lowered.read_step(tree)) == repr(step)


@pytest.mark.parametrize("root", Root)
@pytest.mark.parametrize("nested", [False, True])
@given(data=st.data(), seed=st.integers(0, 2**32))
@SETTINGS
def test_walks_of_admissible_bytes_never_dead_end(nested: bool, root: Root, data: st.DataObject, seed: int) -> None:
    """With realizable demands, whatever the oracle admits goes on until a step, or a program, is complete."""
    registry, context, output = draw_case(data)
    wanted = data.draw(st.sampled_from([output, None]))
    prefix = draw_lowered(data, registry, output, nested=nested).start(context, wanted, root)
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
