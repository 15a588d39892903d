"""Runs in each of the five modes: which steps are executed, which become observations, and what a turn records."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest

from agentkit import (
    Agent,
    Event,
    IncompleteStep,
    Mode,
    PromptVariant,
    StopReason,
    TokenGenerated,
    UsageLimitExceeded,
    UsageLimits,
)
from agentkit.models import (
    FunctionModel,
    Message,
    PrefixLike,
    RandomModel,
    ReasoningFormat,
    ScriptedModel,
    Steering,
    StopPolicy,
)
from episodes import Episode
from registry import INT, Registry, tool

STEPS = ("let a = add(1, 2);", "let b = add(a, 3);", "return b;")
TAGS = ReasoningFormat(opening="<think>\n", tag="</think>", skipped="<think>\n\n</think>\n\n")
EPISODE = Episode(name="sum", prompt="Add 1, 2 and 3.", output_type=INT, expected=6)


@tool
def add(left: int, right: int) -> int:
    """Add."""
    return left + right


def replies(mode: Mode, *steps: str) -> list[str]:
    """The steps, each after a line of reasoning in the modes that reason."""
    if not mode.reasons:
        return list(steps)
    return [text for number, step in enumerate(steps) for text in (f" step {number}\n", step)]


def agent(mode: Mode, *steps: str, **options: object) -> Agent:
    return Agent(ScriptedModel(replies(mode, *steps)), tools=[add], mode=mode, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", list(Mode))
def test_an_episode_in_every_mode(mode: Mode) -> None:
    events: list[Event] = []
    result = agent(mode, *STEPS).run_sync(EPISODE, on_event=events.append)
    assert (result.output, result.stop_reason) == (6, StopReason.RETURNED)
    assert result.grade is not None and result.grade.passed
    assert [turn.text for turn in result.turns] == list(STEPS)
    thoughts = [f"step {number}" for number in range(3)] if mode.reasons else [""] * 3
    assert [turn.thought for turn in result.turns] == thoughts
    heard = [event for event in events if isinstance(event, TokenGenerated)]
    assert len(heard) == result.usage.generated_tokens
    assert sum(event.reasoning for event in heard) == sum(len(one.reasoning) for one in result.telemetry)
    assert bool(result.telemetry[0].reasoning) == mode.reasons
    assert result.telemetry[0].to_data()["reasoning_tokens"] == len(result.telemetry[0].reasoning)


@pytest.mark.parametrize("mode", [mode for mode in Mode if not mode.well_typed])
@pytest.mark.parametrize("bad", ["return unbound;", "let a = add(1, true);", "let a = "])
def test_what_the_typed_oracle_refuses_is_observed(mode: Mode, bad: str) -> None:
    result = agent(mode, bad, *STEPS).run_sync(EPISODE)
    assert result.output == 6
    assert result.turns[0].step is None
    assert result.turns[0].observation.startswith("Not a step: ")
    assert len(result.steps) == 3


@pytest.mark.parametrize("mode", [mode for mode in Mode if mode.well_typed])
def test_what_a_typed_mode_cannot_go_on_with_ends_the_run(mode: Mode) -> None:
    with pytest.raises(IncompleteStep) as caught:
        agent(mode, "return unbound;").run_sync(EPISODE)
    assert caught.value.result.steps == ()


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("prompt", [PromptVariant.WORKED, PromptVariant.PROGRAM])
@pytest.mark.parametrize("form", [None, TAGS], ids=["aloud", "tags"])
def test_reasoning_stands_where_the_model_has_it(
    mode: Mode, prompt: PromptVariant, form: ReasoningFormat | None
) -> None:
    """Aloud, it is a comment of the program that stays; in tags it begins the answer, and is gone in the next turn."""
    said: list[str] = []
    told = iter(replies(mode, *STEPS))

    def say(messages: Sequence[Message], prefix: PrefixLike | None) -> str:
        said.append("\n".join(message.content for message in messages))
        return next(told)

    model = FunctionModel(say, reasoning=form)
    result = Agent(model, tools=[add], mode=mode, prompt=prompt).run_sync(EPISODE)
    assert result.output == 6
    aloud = mode.reasons and form is None
    assert ("Before each step" in said[0]) == aloud
    if not mode.reasons:
        assert not any("step 0" in text for text in said)
    elif form is None:
        assert said[0].endswith("//")
        assert said[1].endswith("// step 0\n")
        assert f"// step 0\n{STEPS[0]}\n" in said[2]
        assert said[3].endswith("// step 1\n")
    else:
        assert said[1].endswith("\n") and " step 0\n</think>\n\n" in said[1]
        assert not any("step 0" in text for text in said[2:])


@pytest.mark.parametrize("mode", [Mode.MIXED, Mode.THINKING])
def test_reasoning_has_its_own_limit(mode: Mode) -> None:
    talk = " and so on" * 100
    told = [talk, STEPS[0], talk, STEPS[1], talk, STEPS[2]]
    limits = UsageLimits(reasoning_tokens=7)
    result = Agent(ScriptedModel(told), tools=[add], mode=mode, usage_limits=limits).run_sync(EPISODE)
    assert result.output == 6
    assert [len(one.reasoning) for one in result.telemetry] == [7, 7, 7]
    with pytest.raises(ValueError, match="reasoning_tokens"):
        UsageLimits(reasoning_tokens=0)


@pytest.mark.parametrize("token_limit", [1, 2, 5, 9, 12])
def test_reasoning_leaves_half_of_what_is_left_to_the_step(token_limit: int) -> None:
    told = [" and so on" * 100, STEPS[0], " and so on" * 100, "return 6;"]
    limits = UsageLimits(token_limit=token_limit)
    one = Agent(ScriptedModel(told), tools=[add], mode=Mode.MIXED, usage_limits=limits)
    with pytest.raises(UsageLimitExceeded) as caught:
        one.run_sync(EPISODE)
    used = caught.value.result.telemetry[0]
    assert len(used.reasoning) == token_limit // 2
    assert caught.value.result.usage.generated_tokens <= token_limit


# Steered to an end


@pytest.mark.parametrize("mode", list(Mode))
def test_random_runs_have_only_whole_steps_where_types_hold(mode: Mode) -> None:
    limits = UsageLimits(turn_limit=4, tokens_per_step=30, reasoning_tokens=5, repeat_limit=10)
    steered = 0
    for seed in range(5):
        one = Agent(RandomModel(seed), tools=[add], mode=mode, usage_limits=limits, tool_errors="observe")

        async def main(one: Agent = one) -> list[tuple[object, Steering]]:
            async with one.iter(EPISODE) as run:
                try:
                    async for _ in run:
                        pass
                except UsageLimitExceeded as error:
                    assert error.limit == "turn_limit"
                result = run.result
            return [(turn.step, told.steering) for turn, told in zip(result.turns, result.telemetry, strict=True)]

        turns = anyio.run(main)
        assert turns
        steered += sum(steering is Steering.KEPT for _, steering in turns)
        if mode.well_typed:
            assert all(step is not None for step, _ in turns)
    assert (steered > 0) == mode.masked


def test_a_step_that_cannot_end_in_its_tokens_says_so_at_once() -> None:
    limits = UsageLimits(tokens_per_step=4)
    with pytest.raises(IncompleteStep, match=r"takes 9 tokens, .*, of 4; raise UsageLimits\(tokens_per_step") as caught:
        Agent(RandomModel(0), tools=[add], usage_limits=limits).run_sync(EPISODE)
    assert caught.value.result.usage.generated_tokens == 0
    with pytest.raises(UsageLimitExceeded, match="token_limit"):
        Agent(RandomModel(0), tools=[add], usage_limits=UsageLimits(token_limit=4)).run_sync(EPISODE)


def test_the_papers_policy_leaves_steps_abandoned() -> None:
    ended = set()
    for seed in range(12):
        one = Agent(
            RandomModel(seed), tools=[add], stop_policy=StopPolicy.PAPER, usage_limits=UsageLimits(turn_limit=2)
        )
        try:
            one.run_sync(EPISODE)
        except IncompleteStep as error:
            ended.add(error.result.telemetry[-1].finish.value)
        except UsageLimitExceeded:
            ended.add("limit")
    assert "stop" in ended


def test_no_pure_call_is_steered_into_a_repetition() -> None:
    registry = Registry()

    @registry.tool(pure=True)
    def look() -> int:
        """Look."""
        return 1

    @registry.tool(pure=True)
    def double(number: int) -> int:
        """Double."""
        return number * 2

    limits = UsageLimits(turn_limit=6, tokens_per_step=26)
    for seed in range(5):

        async def main(seed: int = seed) -> list[str]:
            async with Agent(RandomModel(seed), tools=registry, usage_limits=limits).iter("Look.") as run:
                try:
                    async for _ in run:
                        pass
                except UsageLimitExceeded:
                    pass
                assert not any(one.repetition_allowed for one in run.result.telemetry)
                return [str(step).split("call=")[-1] for step in run.result.steps if "Let" in str(step)]

        called = anyio.run(main)
        assert len(called) == len(set(called))
