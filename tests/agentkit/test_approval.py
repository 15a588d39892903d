"""Asking before a call: approved, denied with a reason, deferred and resumed, and nothing executed twice."""

from __future__ import annotations

from dataclasses import dataclass, field

import anyio
import pytest

from agentkit import (
    Agent,
    ApprovalRequest,
    ApprovalRequired,
    Approve,
    Checkpoint,
    ConfigurationError,
    Decision,
    Defer,
    Deny,
    StopReason,
)
from agentkit.models import ScriptedModel
from dialects import Call
from registry import Registry


@dataclass
class Desk:
    """Tools that note what was done with them."""

    sent: list[str] = field(default_factory=list)
    drafts: int = 0

    def registry(self) -> Registry:
        registry = Registry()

        @registry.tool
        def draft(subject: str) -> str:
            """Write a letter."""
            self.drafts += 1
            return f"On {subject}"

        @registry.tool(approval=True)
        def send(letter: str) -> bool:
            """Send a letter."""
            self.sent.append(letter)
            return True

        return registry

    def agent(self, *replies: str, **options: object) -> Agent:
        return Agent(ScriptedModel(replies), tools=self.registry(), **options)  # type: ignore[arg-type]


REPLIES = ('let l = draft("tea");', "let s = send(l);", "return s;")


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_what_is_asked(desk: Desk) -> None:
    asked: list[ApprovalRequest] = []

    async def approve(request: ApprovalRequest) -> Decision:
        await anyio.lowlevel.checkpoint()
        asked.append(request)
        return Approve()

    result = desk.agent(*REPLIES, approve=approve).run_sync("Write.")
    assert result.output is True and desk.sent == ["On tea"]
    assert [(one.tool.name, one.required, dict(one.arguments)) for one in asked] == [
        ("draft", False, {"subject": "tea"}),
        ("send", True, {"letter": "On tea"}),
    ]
    assert asked[1].text == "let s = send(l);" and asked[1].context.turn == 2


def test_a_denied_call_is_told_with_the_reason_and_not_made(desk: Desk) -> None:
    def approve(request: ApprovalRequest) -> Decision:
        return Deny("not on Sundays") if request.required else Approve()

    result = desk.agent(*REPLIES[:2], "return false;", approve=approve).run_sync("Write.")
    assert desk.sent == [] and result.output is False
    assert result.turns[1].observation == "Denied: not on Sundays" and result.turns[1].result is None
    assert list(result.bindings) == ["l"] and result.usage.tool_calls == 1


def deferred(agent: Agent) -> ApprovalRequired:
    with pytest.raises(ApprovalRequired) as caught:
        agent.run_sync("Write.")
    return caught.value


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize(
    ("decision", "sent", "observation"),
    [(Approve(), ["On tea"], "s : bool = true"), (Deny("too late"), [], "Denied: too late")],
)
def test_a_deferred_call_is_decided_later(
    desk: Desk, decision: Approve | Deny, sent: list[str], observation: str, as_text: bool
) -> None:
    error = deferred(desk.agent(*REPLIES[:2]))
    assert error.result.stop_reason is StopReason.DEFERRED and desk.sent == []
    assert error.request.tool.name == "send" and "resume" in str(error)
    checkpoint = error.checkpoint.to_json() if as_text else error.checkpoint

    async def resume() -> object:
        agent = desk.agent("return true;")
        result = await agent.resume(checkpoint, episode="Write.", decision=decision)
        assert result.turns[1].observation == observation
        assert result.run_id == error.result.run_id
        return result.output

    assert anyio.run(resume) is True
    assert desk.sent == sent and desk.drafts == 1


def test_without_a_decision_it_is_asked_again(desk: Desk) -> None:
    error = deferred(desk.agent(*REPLIES[:2]))

    async def again() -> None:
        with pytest.raises(ApprovalRequired):
            await desk.agent().resume(error.checkpoint, episode="Write.")

    anyio.run(again)
    assert desk.sent == []


def test_nothing_of_a_step_is_executed_before_all_of_it_is_approved(desk: Desk) -> None:
    asked: list[object] = []

    def approve(request: ApprovalRequest) -> Decision:
        asked.extend(request.arguments.values())
        return Defer() if request.required else Approve()

    error = deferred(desk.agent('let s = send(draft("tea"));', approve=approve, nested=True))
    assert desk.drafts == 0 and isinstance(asked[0], Call)

    async def resume() -> None:
        await desk.agent("return s;", nested=True).resume(error.checkpoint, episode="Write.", decision=Approve())

    anyio.run(resume)
    assert (desk.drafts, desk.sent) == (1, ["On tea"])


def test_an_answer_that_is_no_decision_is_refused(desk: Desk) -> None:
    with pytest.raises(ConfigurationError, match=r"answered True .* Deny\(reason\)"):
        desk.agent(*REPLIES, approve=lambda request: True).run_sync("Write.")
    assert desk.drafts == 0


@pytest.mark.parametrize(("decision", "said"), [(Defer(), "is resumed with"), (Approve(), "no step waits")])
def test_decisions_that_decide_nothing(desk: Desk, decision: Approve, said: str) -> None:
    async def main() -> None:
        async with desk.agent(*REPLIES).iter("Write.") as run:
            await anext(run)
            checkpoint: Checkpoint = run.checkpoint
        with pytest.raises(ConfigurationError, match=said):
            await desk.agent().resume(checkpoint, episode="Write.", decision=decision)

    anyio.run(main)
