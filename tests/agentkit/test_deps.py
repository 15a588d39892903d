"""What a run gives its tools, and the types that a run holds to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import anyio
import pytest

from agentkit import Agent, ConfigurationError, IncompleteStep, Mode, RunContext, RunUsage, ToolFailed, UsageLimits
from agentkit.models import ScriptedModel
from episodes import Bindings, Episode
from registry import ArgumentError, CallContext, Registry, SignatureError, Tool, tool, type_from_hint


@dataclass
class Shop:
    """Dependencies."""

    prices: dict[str, int]


@tool
def price(run: RunContext[Shop], name: str) -> int:
    """The price of a thing."""
    return run.deps.prices[name]


@tool
async def price_later(run: RunContext[Shop], name: str) -> int:
    """The price of a thing, async."""
    await asyncio.sleep(0)
    return run.deps.prices[name]


@tool
def where(run: RunContext) -> str:
    """Where the run stands."""
    return f"turn {run.turn}, {run.usage.tool_calls} calls, {', '.join(run.bindings)}, {run.deps}, {len(run.run_id)}"


SHOP = Shop(prices={"tea": 3})


@pytest.mark.parametrize("made", [price, price_later])
def test_a_tool_gets_the_dependencies_and_the_model_does_not_see_them(made: Tool) -> None:
    assert made.signature == f"{made.name}(name: string) -> int"
    agent = Agent(ScriptedModel([f'let p = {made.name}("tea");', "return p;"]), tools=[made], output_type=int)
    assert agent.run_sync("What is tea?", deps=SHOP).output == 3


def test_the_context_says_where_the_run_stands() -> None:
    agent = Agent(ScriptedModel(['let p = price("tea");', "let w = where();", "return w;"]), tools=[price, where])
    output = agent.run_sync("Where?", deps=SHOP).output
    assert output == f"turn 2, 1 calls, p, {SHOP}, 32"


def test_dependencies_of_another_class_are_refused_before_the_run() -> None:
    model = ScriptedModel(['let p = price("tea");'])
    with pytest.raises(ConfigurationError, match=r"'price' takes deps of the class Shop, but the run has NoneType"):
        Agent(model, tools=[price]).run_sync("What is tea?")
    assert model.remaining == 1


class Priced(Protocol):
    """What cannot be told by `isinstance`."""

    prices: dict[str, int]


HINTS = [
    (RunContext, 1, True),
    (RunContext[Any], 1, True),
    (RunContext[Shop], SHOP, True),
    (RunContext[Shop], 1, False),
    (RunContext[Shop | None], None, True),
    (RunContext[Shop | None], 1, False),
    (RunContext[Priced], SHOP, True),
    (RunContext[list[int]], [1], True),
]


@pytest.mark.parametrize(("hint", "deps", "admitted"), HINTS)
def test_which_dependencies_a_hint_admits(hint: object, deps: object, admitted: bool) -> None:
    def look(run: Any) -> int:
        """Look."""
        return 1

    look.__annotations__["run"] = hint
    agent = Agent(ScriptedModel(["let n = look();", "return n;"]), tools=[look])
    if admitted:
        assert agent.run_sync("Look.", deps=deps).output == 1
    else:
        with pytest.raises(ConfigurationError, match="takes deps of"):
            agent.run_sync("Look.", deps=deps)


def test_another_context_than_a_run_has_is_refused() -> None:
    class Foreign(CallContext):
        """No run gives this."""

    def lost(context: Any) -> int:
        """Never called."""
        raise AssertionError

    lost.__annotations__["context"] = Foreign
    with pytest.raises(ConfigurationError, match="not a Foreign"):
        Agent(ScriptedModel([]), tools=[lost]).run_sync("Go.")


def test_outside_a_run_there_is_no_context() -> None:
    with pytest.raises(ArgumentError, match="only a run of an agent gives"):
        anyio.run(price.call, {"name": "tea"})
    context = RunContext(deps=SHOP, run_id="", turn=1, usage=RunUsage(), bindings=Bindings())
    assert price(context, "tea") == 3


def test_the_context_comes_first() -> None:
    def late(name: str, run: RunContext[Shop]) -> int:
        """Refused."""
        raise AssertionError

    with pytest.raises(SignatureError, match=r"'run': what the run gives comes first"):
        tool(late)


# The type of the output

OUTPUTS = [
    (int, "return 3;", 3),
    (str, 'return "3";', "3"),
    (list[int], "return [3];", [3]),
    (float, "return 3.0;", 3.0),
]


@pytest.mark.parametrize(("hint", "reply", "output"), OUTPUTS)
def test_an_output_of_the_type_is_returned(hint: object, reply: str, output: object) -> None:
    agent = Agent(ScriptedModel([reply]), tools=[where], output_type=hint)
    returned = agent.run_sync("Return it.").output
    assert (returned, type(returned)) == (output, type(output))


@pytest.mark.parametrize(("hint", "reply"), [(int, 'return "3";'), (str, "return 3;"), (list[int], "return 3;")])
def test_an_output_of_another_type_cannot_be_returned(hint: object, reply: str) -> None:
    with pytest.raises(IncompleteStep):
        Agent(ScriptedModel([reply]), tools=[where], output_type=hint).run_sync("Return it.")
    free = Agent(ScriptedModel([reply, "return 3;"]), tools=[where], mode=Mode.UNCONSTRAINED)
    episode = Episode(name="e", prompt="Return it.", output_type=type_from_hint(hint))
    if hint is int:
        result = free.run_sync(episode)
        assert result.output == 3 and result.turns[0].observation.startswith("Not a step: ")


# The time of a tool


def test_a_tool_has_a_time_limit_of_its_own() -> None:
    registry = Registry()

    @registry.tool(timeout=0.05)
    async def hang() -> int:
        """Never return."""
        await anyio.sleep_forever()
        raise AssertionError

    with pytest.raises(ToolFailed, match=r"no result within 0\.05 s"):
        Agent(ScriptedModel(["let x = hang();"]), tools=registry).run_sync("Hang.")
    limits = UsageLimits(tool_timeout=0.02)
    with pytest.raises(ToolFailed, match=r"no result within 0\.02 s"):
        Agent(ScriptedModel(["let x = hang();"]), tools=registry, usage_limits=limits).run_sync("Hang.")


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_a_time_limit_is_a_positive_number(seconds: float) -> None:
    made: Callable[..., Any] = tool(timeout=seconds)
    with pytest.raises(ValueError, match="positive number of seconds"):
        made(lambda: 1)
