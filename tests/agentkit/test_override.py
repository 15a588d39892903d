"""Another model, other tools and other dependencies for a while, unseen by runs beside it."""

from __future__ import annotations

import anyio
import pytest

from agentkit import Agent, RunContext
from agentkit.models import FunctionModel, ScriptedModel
from registry import tool


@tool
def ask(run: RunContext[str]) -> str:
    """What the dependencies say."""
    return run.deps


@tool(name="ask")
def ask_nobody() -> str:
    """A stand-in."""
    return "nobody"


def model() -> FunctionModel:
    steps = ("let a = ask();", "return a;")
    return FunctionModel(lambda messages, prefix: steps[any("a : string" in one.content for one in messages)])


def test_what_stands_in_and_for_how_long() -> None:
    agent = Agent(ScriptedModel([]), tools=[ask])
    with agent.override(model=model(), deps="test"):
        assert agent.run_sync("Ask.").output == "test"
        with agent.override(tools=[ask_nobody]):
            assert agent.run_sync("Ask.").output == "nobody"
        with agent.override(deps="inner"):
            assert agent.run_sync("Ask.", deps="given").output == "inner"
        assert agent.run_sync("Ask.").output == "test"
    with pytest.raises(Exception, match="takes deps of the class str"):
        agent.run_sync("Ask.")


def test_it_is_over_also_where_the_block_raises() -> None:
    agent = Agent(model(), tools=[ask])
    with pytest.raises(KeyError), agent.override(deps="test"):
        raise KeyError
    assert agent.run_sync("Ask.", deps="given").output == "given"


def test_other_agents_are_left_alone() -> None:
    agent, other = Agent(ScriptedModel([]), tools=[ask]), Agent(model(), tools=[ask])
    with agent.override(model=ScriptedModel([]), deps="test"):
        assert other.run_sync("Ask.", deps="own").output == "own"


def test_a_model_that_would_have_to_be_loaded_is_not() -> None:
    agent = Agent("no/such-model", tools=[ask])
    with agent.override(model=model()):
        assert agent.run_sync("Ask.", deps="loaded").output == "loaded"


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_runs_at_once_see_only_their_own(backend: str) -> None:
    agent, heard = Agent(model(), tools=[ask]), dict[str, object]()

    async def one(name: str) -> None:
        with agent.override(deps=name):
            await anyio.sleep(0)
            heard[name] = (await agent.run("Ask.")).output

    async def plain() -> None:
        await anyio.sleep(0)
        heard["plain"] = (await agent.run("Ask.", deps="given")).output

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for name in ("x", "y", "z"):
                group.start_soon(one, name)
            group.start_soon(plain)

    anyio.run(main, backend=backend)
    assert heard == {"x": "x", "y": "y", "z": "z", "plain": "given"}
