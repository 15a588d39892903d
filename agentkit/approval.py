"""Asking before a tool is called: what is asked, and what may be answered."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from agentkit.checkpoint import Checkpoint
from agentkit.context import RunContext
from agentkit.errors import ConfigurationError, RunError
from agentkit.result import RunResult
from dialects import Step
from registry import Tool


@dataclass(frozen=True, kw_only=True, slots=True)
class Approve:
    """Make the call."""


@dataclass(frozen=True, slots=True)
class Deny:
    """Do not make the call; the model is told the reason and may do something else."""

    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Defer:
    """Decide later: the run ends with `ApprovalRequired` and can be resumed with a decision."""


Decision = Approve | Deny | Defer


@dataclass(frozen=True, kw_only=True, slots=True)
class ApprovalRequest:
    """A call that a step would make. Nothing of the step has been executed."""

    tool: Tool
    arguments: Mapping[str, object]
    """By name, as values; an argument that is itself a call to be made is given as its expression."""

    step: Step
    text: str
    """The step as the model wrote it."""

    context: RunContext

    @property
    def required(self) -> bool:
        """Whether the tool itself demands approval."""
        return self.tool.approval

    def __str__(self) -> str:
        return f"turn {self.context.turn}: {self.tool.name} in {self.text!r}"


Approver = Callable[[ApprovalRequest], Decision | Awaitable[Decision]]
"""Plain or async. A plain function is called in the event loop, so one that asks a person should be async."""


def defer_required(request: ApprovalRequest) -> Decision:
    """The approver of an agent that was given none: what a tool demands is left to a later decision."""
    return Defer() if request.required else Approve()


async def decide(approver: Approver, request: ApprovalRequest) -> Decision:
    """What the approver answers. Raises `ConfigurationError` where that is no decision."""
    answer: object = approver(request)
    decision = await answer if inspect.isawaitable(answer) else answer
    if isinstance(decision, Approve | Deny | Defer):
        return decision
    raise ConfigurationError(
        f"approve= answered {decision!r} to the call of {request.tool.name!r}; "
        "answer Approve(), Deny(reason) or Defer()"
    )


class ApprovalRequired(RunError):
    """A call that waits for a decision. `.request` is the call; `Agent.resume` goes on from `.checkpoint`."""

    def __init__(self, message: str, *, request: ApprovalRequest, result: RunResult) -> None:
        super().__init__(message, result=result)
        self.request = request

    @property
    def deferred(self) -> str:
        """The name of the tool that waits."""
        return self.request.tool.name

    @property
    def checkpoint(self) -> Checkpoint:
        """The run with the step that waits."""
        return self.result.checkpoint
