"""Conversations that go on, and prompts that the model's context cannot hold."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest

from agentkit import (
    Agent,
    ConfigurationError,
    ContextPolicy,
    ContextTruncated,
    ContextWindowExceeded,
    Event,
    ModelFailed,
    PromptVariant,
    TurnStarted,
)
from agentkit.models import ContextOverflowError, FunctionModel, Message, PrefixLike, ScriptedModel
from agentkit.window import Cut
from episodes import Binding, Bindings, Episode
from registry import INT, STRING, Registry

VARIANTS = pytest.mark.parametrize("variant", [PromptVariant.PROGRAM_WANTED, PromptVariant.SCOPED])


def make_registry() -> Registry:
    registry = Registry()

    @registry.tool
    def read(page: int) -> str:
        """Read a page."""
        return f"page {page}: " + "lorem ipsum " * 60

    @registry.tool
    def size(text: str) -> int:
        """Count characters."""
        return len(text)

    return registry


class Listening:
    """A model that answers with given steps and keeps what it was asked; a prompt over `context` words is refused."""

    def __init__(self, replies: Sequence[str], context: int = 10**9) -> None:
        self.seen: list[list[Message]] = []
        self._replies = list(replies)
        self._context = context

    def __call__(self, messages: Sequence[Message], prefix: PrefixLike | None) -> str:
        words = sum(len(message.content.split()) for message in messages)
        if words > self._context:
            raise ContextOverflowError("listening", words, self._context)
        self.seen.append(list(messages))
        return self._replies.pop(0)


# Conversations


@VARIANTS
def test_messages_are_what_the_model_saw_and_said(variant: PromptVariant) -> None:
    model = Listening(["let t = read(1);", "let n = size(t);", "return n;"])
    result = Agent(FunctionModel(model), tools=make_registry(), prompt=variant).run_sync("How long is page 1?")
    shown, last = model.seen[-1], result.messages[-1]
    said = "return n;" if variant is PromptVariant.SCOPED else f"{shown[-1].content}return n;"
    assert last == Message(role="assistant", content=said)
    assert list(result.messages[:-1]) == (shown if variant is PromptVariant.SCOPED else shown[:-1])


@VARIANTS
def test_a_next_run_goes_on_with_the_conversation(variant: PromptVariant) -> None:
    first = Agent(ScriptedModel(["let t = read(1);", "return t;"]), tools=make_registry(), prompt=variant)
    before = first.run_sync("Read page 1.")
    model = Listening(["let n = size(t);", "return n;"])
    agent = Agent(FunctionModel(model), tools=make_registry(), prompt=variant)
    task = Episode(name="next", prompt="How long is it?", bindings=before.bindings)
    after = agent.run_sync(task, message_history=before.messages)
    # The rules and the examples come once, and what was read stays as it was: a cache need not read it again.
    assert model.seen[0][: len(before.messages)] == list(before.messages)
    assert [one.role for one in model.seen[0]].count("system") == 1
    assert "How long is it?" in model.seen[0][len(before.messages)].content
    assert after.output == len("page 1: " + "lorem ipsum " * 60)
    third = Listening(["return n;"])
    task = Episode(name="third", prompt="Again?", bindings=after.bindings)
    Agent(FunctionModel(third), tools=make_registry(), prompt=variant).run_sync(task, message_history=after.messages)
    asked = "\n".join(one.content for one in third.seen[0])
    assert asked.index("Read page 1.") < asked.index("How long is it?") < asked.index("Again?")


def test_a_history_with_other_rules_loses_them() -> None:
    model = Listening(["return 1;"])
    history = [Message(role="system", content="Be rude."), Message(role="user", content="Hello?")]
    Agent(FunctionModel(model), tools=make_registry()).run_sync("Answer.", message_history=history)
    shown = model.seen[0]
    assert all("Be rude." not in one.content for one in shown)
    asked = [one.role for one in shown[[one.content for one in shown].index("Hello?") :]]
    assert asked[:3] == ["user", "assistant", "user"]


def test_a_checkpoint_keeps_the_conversation() -> None:
    history = (Message(role="user", content="Hello?"), Message(role="assistant", content="Yes."))
    first = Agent(ScriptedModel(["let t = read(1);"]), tools=make_registry())
    with pytest.raises(ModelFailed) as caught:
        first.run_sync("Read.", message_history=history)
    model = Listening(["return t;"])

    async def main() -> None:
        agent = Agent(FunctionModel(model), tools=make_registry())
        await agent.resume(caught.value.result.checkpoint.to_json(), episode="Read.")

    anyio.run(main)
    assert [one for one in model.seen[0] if one in history] == list(history)


# The context


STEPS = [f"let t{place} = read({place});" for place in range(1, 7)]


GIVEN = Bindings([Binding(name="k", type=INT, value=4), Binding(name="s", type=STRING, value="w " * 20)])
READ_ALL = Episode(name="e", prompt="Read all.", bindings=GIVEN)


def context_of(variant: PromptVariant, part: float) -> int:
    """A part of the words in the longest prompt of the task."""
    model = Listening([*STEPS, "return t1;"])
    Agent(FunctionModel(model), tools=make_registry(), prompt=variant).run_sync(READ_ALL)
    return int(part * sum(len(message.content.split()) for message in model.seen[-1]))


@VARIANTS
def test_a_prompt_that_is_too_long_raises_its_own_error(variant: PromptVariant) -> None:
    model = Listening([*STEPS, "return t1;"], context_of(variant, 0.8))
    agent = Agent(FunctionModel(model), tools=make_registry(), prompt=variant)
    with pytest.raises(ContextWindowExceeded, match=r"ContextPolicy\.TRUNCATE") as caught:
        agent.run_sync(READ_ALL)
    assert isinstance(caught.value.__cause__, ContextOverflowError)
    assert len(caught.value.result.bindings) > len(GIVEN)


@VARIANTS
@pytest.mark.parametrize(("part", "deepest"), [(0.85, Cut.OLD), (0.7, Cut.RECENT), (0.5, Cut.STEPS)])
def test_or_it_is_shortened_and_keeps_every_binding(variant: PromptVariant, part: float, deepest: Cut) -> None:
    context = context_of(variant, part)
    model, events = Listening([*STEPS, "return t1;"], context), list[Event]()
    agent = Agent(FunctionModel(model), tools=make_registry(), prompt=variant, context_policy="truncate")
    result = agent.run_sync(READ_ALL, on_event=events.append)
    assert str(result.output).startswith("page 1: ")
    cuts = [event for event in events if isinstance(event, ContextTruncated)]
    assert all(cut.prompt_tokens > cut.context == context for cut in cuts)
    assert sum(isinstance(event, TurnStarted) for event in events) == len(result.turns) + len(cuts)
    assert result.telemetry[0].cut == "" and result.telemetry[-1].cut == cuts[-1].cut == deepest.words
    assert Cut(result.checkpoint.cut) is deepest
    for turn, shown in enumerate(model.seen, start=1):
        text = "\n".join(one.content for one in shown)
        names = {"k": "int", "s": "string", **{f"t{place}": "string" for place in range(1, turn)}}
        assert all(f"{name} : {kind}" in text for name, kind in names.items())
        cut = result.telemetry[turn - 1].cut
        assert ("Left out, for want of space" in text) == bool(cut) and cut in text


def test_where_nothing_is_left_to_leave_out_it_raises() -> None:
    agent = Agent(FunctionModel(Listening(STEPS, context=20)), tools=make_registry(), context_policy="truncate")
    with pytest.raises(ContextWindowExceeded) as caught:
        agent.run_sync("Read all.")
    assert "TRUNCATE" not in str(caught.value)


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="available: 'raise', 'truncate'"):
        Agent(ScriptedModel([]), context_policy="forget")
    assert ContextPolicy("raise") is ContextPolicy.RAISE
