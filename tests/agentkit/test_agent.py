"""The agent's loop, driven by scripted models: turns, tool errors, limits, repetition, cancellation, results."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import anyio
import pytest

from agentkit import (
    Agent,
    ConfigurationError,
    Event,
    IncompleteStep,
    Mode,
    ModelFailed,
    PromptVariant,
    RepeatedStep,
    RunEnded,
    RunError,
    RunStarted,
    StepProposed,
    StopReason,
    TokenGenerated,
    ToolEnded,
    ToolFailed,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UsageLimitExceeded,
    UsageLimits,
)
from agentkit.models import FunctionModel, Message, PrefixLike, ScriptedModel, StopPolicy
from aufbau import Verdict
from dialects import Let, Return
from episodes import Binding, Bindings, Episode, EpisodeLimits
from registry import INT, STRING, ModelRetry, Registry, tool


@dataclass(frozen=True)
class Calls:
    """What the tools of a test were called with."""

    made: list[object]


class Paper:
    """A handle."""


class Book:
    """A handle that no tool makes."""


def make_tools(calls: Calls) -> Registry:
    registry = Registry()

    @registry.tool(pure=True)
    def find(query: str) -> Paper:
        """Find a paper."""
        calls.made.append(query)
        return Paper()

    @registry.tool(pure=True)
    def pages(paper: Paper) -> int:
        """Count pages."""
        return 12

    @registry.tool
    async def roll(sides: int) -> int:
        """Roll a die."""
        calls.made.append(sides)
        if sides < 2:
            raise ModelRetry("a die has two sides at least")
        return sides

    @registry.tool
    def explode() -> int:
        """Raise."""
        raise ZeroDivisionError("no fuse")

    @registry.tool
    def lie() -> int:
        """Return another type than promised."""
        return "three"  # type: ignore[return-value]

    @registry.tool
    async def hang() -> int:
        """Never return."""
        await anyio.sleep_forever()
        raise AssertionError

    @registry.tool
    def block() -> int:
        """Return after all time limits, and block a thread until then."""
        time.sleep(0.4)
        return 1

    return registry


@pytest.fixture
def calls() -> Calls:
    return Calls(made=[])


def make_agent(calls: Calls, *replies: str, **options: object) -> Agent:
    return Agent(ScriptedModel(replies), tools=make_tools(calls), **options)  # type: ignore[arg-type]


def refused(kind: type[RunError], agent: Agent, episode: Episode | str = "Do it.") -> RunError:
    with pytest.raises(kind) as caught:
        agent.run_sync(episode)
    return caught.value


THREE_TURNS = ('let p = find("aurora");', "let n = pages(p);", "return n;")


# Runs that end well


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("mode", ["direct", "unconstrained"])
def test_three_turns(calls: Calls, backend: str, mode: str) -> None:
    episode = Episode(name="e", prompt="How long is it?", output_type=INT, expected=12)
    result = anyio.run(make_agent(calls, *THREE_TURNS, mode=mode).run, episode, backend=backend)
    assert (result.output, result.stop_reason, result.usage.turns) == (12, StopReason.RETURNED, 3)
    assert [type(step) for step in result.steps] == [Let, Let, Return]
    assert [turn.text for turn in result.turns] == list(THREE_TURNS)
    assert result.bindings.types().keys() == {"p", "n"}
    assert result.grade is not None and result.grade.passed
    assert calls.made == ["aurora"]
    assert result.usage.tool_calls == 2


def test_a_plain_string_is_a_task(calls: Calls) -> None:
    seen: list[Sequence[Message]] = []

    def answer(messages: Sequence[Message], prefix: PrefixLike | None) -> str:
        seen.append(messages)
        return 'return "done";'

    result = Agent(FunctionModel(answer), tools=make_tools(calls), output_type=str).run_sync("Say done.")
    assert result.output == "done"
    assert result.grade is None
    assert any("Say done." in message.content for message in seen[0])


def test_iter_hands_out_each_turn_as_it_ends(calls: Calls) -> None:
    bound: list[list[str]] = []
    events: list[Event] = []

    async def main() -> None:
        async with make_agent(calls, *THREE_TURNS).iter("Count.", on_event=events.append) as run:
            async for _turn in run:
                bound.append(list(run.result.bindings))
            assert run.result.output == 12

    anyio.run(main)
    assert bound == [["p"], ["p", "n"], ["p", "n"]]
    kinds = [type(event) for event in events if not isinstance(event, TokenGenerated)]
    called = [TurnStarted, StepProposed, ToolStarted, ToolEnded, TurnEnded]
    assert kinds == [RunStarted, *called * 2, TurnStarted, StepProposed, TurnEnded, RunEnded]
    tokens = b"".join(event.token.text for event in events if isinstance(event, TokenGenerated))
    assert tokens.decode() == "".join(THREE_TURNS)


def test_leaving_the_loop_ends_the_run(calls: Calls) -> None:
    async def main() -> StopReason:
        async with make_agent(calls, *THREE_TURNS).iter("Count.") as run:
            async for _turn in run:
                break
        return run.result.stop_reason

    assert anyio.run(main) is StopReason.RUNNING


def test_initial_bindings_and_prefix(calls: Calls) -> None:
    given = Bindings([Binding(name="k", type=INT, value=5)])
    episode = Episode(name="e", prompt="Go on.", bindings=given, prefix="let r = ro", output_type=INT)
    result = make_agent(calls, "ll(k);", "return r;").run_sync(episode)
    assert result.output == 5
    assert result.turns[0].text == "let r = roll(k);"


def test_the_result_is_json(calls: Calls) -> None:
    data = json.loads(make_agent(calls, *THREE_TURNS).run_sync("Count.").to_json())
    assert data["output"] == 12
    assert data["stop_reason"] == "returned"
    assert data["bindings"]["n"] == {"type": "int", "value": 12}
    assert data["bindings"]["p"]["value"]["type"] == "Paper"
    assert [turn["observation"] for turn in data["turns"]] == ["p : paper = <Paper>", "n : int = 12", "12"]
    assert [one["finish"] for one in data["telemetry"]] == ["satisfied"] * 3
    assert data["usage"]["generated_tokens"] > 0


# Tools that fail

TOOL_FAULTS = [
    ("explode", "ZeroDivisionError: no fuse"),
    ("lie", "expected int, got 'three'"),
    ("hang", "no result within 0.1 s"),
    ("block", "no result within 0.1 s"),
]


@pytest.mark.parametrize(("name", "said"), TOOL_FAULTS)
def test_a_failing_tool_stops_the_run_with_the_result_so_far(calls: Calls, name: str, said: str) -> None:
    agent = make_agent(calls, THREE_TURNS[0], f"let x = {name}();", usage_limits=UsageLimits(tool_timeout=0.1))
    error = refused(ToolFailed, agent)
    assert isinstance(error, ToolFailed) and error.tool == name
    assert said in str(error) and "step 2" in str(error) and "tool_errors" in str(error)
    assert error.__cause__ is not None
    assert list(error.result.bindings) == ["p"]
    assert error.result.stop_reason is StopReason.TOOL_FAILED
    assert len(error.result.turns) == 2 and len(error.result.steps) == 1


@pytest.mark.parametrize(("name", "said"), TOOL_FAULTS)
def test_or_it_is_told_to_the_model(calls: Calls, name: str, said: str) -> None:
    limits = UsageLimits(tool_timeout=0.1)
    replies = (f"let x = {name}();", "return 1;")
    result = make_agent(calls, *replies, usage_limits=limits, tool_errors="observe").run_sync("Do it.")
    assert result.output == 1
    assert said in result.turns[0].observation
    assert result.turns[0].result is None and list(result.bindings) == []


def test_model_retry_is_an_observation_and_another_try(calls: Calls) -> None:
    seen: list[str] = []

    def answer(messages: Sequence[Message], prefix: PrefixLike | None) -> str:
        seen.append(messages[-1].content)
        return ["let r = roll(1);", "let r = roll(6);", "return r;"][len(seen) - 1]

    agent = Agent(FunctionModel(answer), tools=make_tools(calls), prompt=PromptVariant.WORKED)
    result = agent.run_sync("Roll.")
    assert result.output == 6
    assert calls.made == [1, 6]
    assert "a die has two sides at least" in seen[1]
    assert result.turns[0].error is not None and result.turns[0].result is None


# Steps that are not whole

INCOMPLETE = [
    pytest.param("let r = roll(2", {}, "cut off", id="live at stop"),
    pytest.param("let r = roll(true);", {}, "nothing that the model can write", id="dead end"),
    pytest.param("let r = roll(2)", {"stop_policy": StopPolicy.PAPER}, "StopPolicy.STRICT", id="paper stop"),
    pytest.param("let r = roll(2);", {"usage_limits": UsageLimits(tokens_per_step=2)}, "tokens_per_step", id="length"),
]


@pytest.mark.parametrize(("reply", "options", "said"), INCOMPLETE)
def test_an_incomplete_step_is_never_executed(calls: Calls, reply: str, options: dict[str, object], said: str) -> None:
    error = refused(IncompleteStep, make_agent(calls, reply, **options))
    assert said in str(error) and "not executed" in str(error)
    assert calls.made == []
    assert error.result.steps == () and error.result.stop_reason is StopReason.INCOMPLETE_STEP
    assert error.result.turns[0].step is None


NONSENSE = ["Sure! I can help.", "let r = roll(", "let r = roll(true);", "```", "", "return unbound;"]


@pytest.mark.parametrize("reply", NONSENSE)
def test_free_text_that_is_no_step_is_answered(calls: Calls, reply: str) -> None:
    result = make_agent(calls, reply, "return 3;", mode=Mode.UNCONSTRAINED).run_sync("Do it.")
    assert result.output == 3
    assert calls.made == []
    assert result.turns[0].step is None
    assert result.turns[0].observation.startswith("Not a step: ")
    assert len(result.steps) == 1


def test_free_text_ends_at_the_line(calls: Calls) -> None:
    result = make_agent(calls, "return 3;\nreturn 4;", mode="unconstrained").run_sync("Do it.")
    assert result.output == 3


# Limits, each at its edge


@dataclass(frozen=True)
class Edge:
    """Limits under which the replies still pass, and limits that are one too small."""

    limit: str
    enough: float
    too_little: float


EDGES = [
    Edge("turn_limit", 3, 2),
    Edge("tool_call_limit", 2, 1),
    Edge("token_limit", 10, 9),
    Edge("token_limit", 10, 8),
]


@pytest.mark.parametrize("edge", EDGES)
def test_limits_bind_exactly(calls: Calls, edge: Edge) -> None:
    enough, too_little = (UsageLimits(**{edge.limit: value}) for value in (edge.enough, edge.too_little))  # type: ignore[arg-type]
    # Held to the types a model can't use up its turns without returning.
    mode = "unconstrained" if edge.limit == "turn_limit" else "direct"
    assert make_agent(calls, *THREE_TURNS, usage_limits=enough, mode=mode).run_sync("Count.").output == 12
    error = refused(UsageLimitExceeded, make_agent(calls, *THREE_TURNS, usage_limits=too_little, mode=mode))
    assert isinstance(error, UsageLimitExceeded)
    assert (error.limit, error.value) == (edge.limit, edge.too_little)
    assert f"UsageLimits({edge.limit}=...)" in str(error)
    assert error.result.stop_reason is StopReason.LIMIT
    assert "p" in error.result.bindings


def test_an_episode_tightens_the_limits(calls: Calls) -> None:
    episode = Episode(name="e", prompt="Count.", limits=EpisodeLimits(turn_limit=2))
    error = refused(UsageLimitExceeded, make_agent(calls, *THREE_TURNS, mode="unconstrained"), episode)
    assert isinstance(error, UsageLimitExceeded) and (error.limit, error.value) == ("turn_limit", 2)


@pytest.mark.parametrize("limit", ["turn_timeout", "run_timeout"])
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_time_limits(calls: Calls, limit: str, backend: str) -> None:
    agent = make_agent(calls, THREE_TURNS[0], "let x = hang();", usage_limits=UsageLimits(**{limit: 0.8}))  # type: ignore[arg-type]
    with pytest.raises(UsageLimitExceeded) as caught:
        anyio.run(agent.run, "Wait.", backend=backend)
    assert caught.value.limit == limit
    assert list(caught.value.result.bindings) == ["p"]


def test_a_slow_caller_uses_up_the_run(calls: Calls) -> None:
    async def main() -> None:
        async with make_agent(calls, *THREE_TURNS, usage_limits=UsageLimits(run_timeout=0.2)).iter("Count.") as run:
            async for _turn in run:
                await anyio.sleep(0.3)

    with pytest.raises(UsageLimitExceeded, match=r"longer than 0\.2 s"):
        anyio.run(main)


@pytest.mark.parametrize("field", ["turn_limit", "token_limit", "repeat_limit", "tool_timeout", "run_timeout"])
def test_a_limit_of_nothing_is_refused(field: str) -> None:
    with pytest.raises(ValueError, match=field):
        UsageLimits(**{field: 0})


# Repetition


def test_identical_steps_are_limited(calls: Calls) -> None:
    replies = [f"let r{number} = roll(6);" for number in range(4)]
    error = refused(RepeatedStep, make_agent(calls, *replies))
    assert isinstance(error, RepeatedStep) and error.limit == "repeat_limit"
    assert calls.made == [6, 6, 6]
    assert len(error.result.turns) == 3


def test_nonsense_is_limited_too(calls: Calls) -> None:
    error = refused(RepeatedStep, make_agent(calls, *["No."] * 4, mode="unconstrained"))
    assert len(error.result.turns) == 3 and error.result.stop_reason is StopReason.REPEATED


def test_a_pure_call_in_free_text_is_not_made_twice(calls: Calls) -> None:
    replies = (THREE_TURNS[0], 'let q = find(query = "aurora");', "return 1;")
    result = make_agent(calls, *replies, mode="unconstrained").run_sync("Do it.")
    assert calls.made == ["aurora"]
    assert "p holds the result" in result.turns[1].observation
    assert list(result.bindings) == ["p"]


def test_a_pure_call_is_not_admissible_twice(calls: Calls) -> None:
    refused_at: list[bytes] = []

    def answer(messages: Sequence[Message], prefix: PrefixLike | None) -> str:
        assert prefix is not None
        if not calls.made:
            return THREE_TURNS[0]
        wanted = b'let q = find("aurora");'
        for end in range(1, len(wanted) + 1):
            if prefix.try_feed(wanted[:end]) is Verdict.LOST:
                refused_at.append(wanted[:end])
                return 'let q = find("aurora borealis");' if len(refused_at) == 1 else "return 1;"
        return wanted.decode()

    result = Agent(FunctionModel(answer), tools=make_tools(calls)).run_sync("Do it.")
    assert calls.made == ["aurora", "aurora borealis"]
    assert refused_at[0] == b'let q = find("aurora"'
    assert result.output == 1


def test_a_model_that_insists_is_told(calls: Calls) -> None:
    again = 'let q = find("aurora");'
    result = make_agent(calls, THREE_TURNS[0], again, again, "return 1;").run_sync("Do it.")
    assert result.output == 1 and calls.made == ["aurora"]
    assert result.turns[1].step is None and result.turns[1].observation.startswith("Called already")
    error = refused(RepeatedStep, make_agent(Calls(made=[]), THREE_TURNS[0], *[again] * 4))
    assert len(error.result.turns) == 4


def test_a_run_that_can_only_repeat_goes_on_until_its_limit() -> None:
    @tool(pure=True)
    def look() -> Book:
        """Look."""
        raise ModelRetry("it is dark")

    replies = [f"let p{number} = look();" for number in range(4)]
    with pytest.raises(RepeatedStep) as caught:
        Agent(ScriptedModel(replies), tools=[look], output_type=Book).run_sync("Look.")
    assert [one.repetition_allowed for one in caught.value.result.telemetry] == [False, True, True, True]
    assert not caught.value.result.bindings


# Faults of the model and of the caller


def test_a_model_that_fails_leaves_the_result(calls: Calls) -> None:
    error = refused(ModelFailed, make_agent(calls, THREE_TURNS[0]))
    assert list(error.result.bindings) == ["p"]
    assert "turn 2" in str(error)


def test_a_prefix_that_begins_no_step_is_refused(calls: Calls) -> None:
    episode = Episode(name="e", prompt="Go.", prefix="let r = rool", output_type=STRING)
    with pytest.raises(ConfigurationError, match="no step can begin with its prefix"):
        make_agent(calls, "return 1;").run_sync(episode)


# Cancellation


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("where", ["tool", "model"])
def test_cancellation_passes_through_and_leaves_nothing(backend: str, where: str) -> None:
    begun: list[str] = []
    gone: list[str] = []

    async def wait() -> str:
        begun.append(where)
        try:
            await anyio.sleep_forever()
        finally:
            gone.append(where)
        raise AssertionError

    @tool
    async def stall() -> str:
        """Wait."""
        return await wait()

    async def answer(messages: Sequence[Message], prefix: PrefixLike | None) -> str:
        return await wait() if where == "model" else "let s = stall();"

    agent = Agent(FunctionModel(answer), tools=[stall])
    threads = set(threading.enumerate())
    finished: list[str] = []

    async def work() -> None:
        await agent.run("Wait.")
        finished.append(where)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(work)
            while not begun:
                await anyio.sleep(0.01)
            group.cancel_scope.cancel()

    anyio.run(main, backend=backend)
    assert gone == [where] and finished == []
    assert {one for one in threading.enumerate() if not one.daemon} <= threads


def test_runs_of_one_agent_do_not_mix(calls: Calls) -> None:
    def answer(messages: Sequence[Message], prefix: PrefixLike | None) -> str:
        task = next(m.content for m in reversed(messages) if m.content.startswith("Task: ") and "side" in m.content)
        assert prefix is not None
        bound = prefix.try_feed(b"return r;") is Verdict.SATISFIED
        return "return r;" if bound else f"let r = roll({task.split()[1]});"

    agent = Agent(FunctionModel(answer), tools=make_tools(calls), output_type=int)
    outputs: dict[int, object] = {}

    async def one(sides: int) -> None:
        outputs[sides] = (await agent.run(f"{sides} sides")).output

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for sides in range(2, 8):
                group.start_soon(one, sides)

    anyio.run(main)
    assert outputs == {sides: sides for sides in range(2, 8)}
