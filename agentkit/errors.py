"""The errors of agentkit, one tree under `AgentError`.

    AgentError
    ├── ConfigurationError          an agent was put together wrongly
    ├── RunError                    a run ended without an output; `.result` holds all it did
    │   ├── IncompleteStep          the text of a step stopped before its end; it was not executed
    │   ├── ApprovalRequired        a call waits for a decision (`agentkit.approval`); resume with one
    │   ├── ModelFailed             the model raised
    │   │   └── ContextWindowExceeded   the prompt outgrew its context, shortened as far as the policy allows
    │   ├── ToolFailed              a tool raised, returned a wrong type or ran out of time
    │   └── UsageLimitExceeded      a limit was reached; `.limit` names it, `.value` is its value
    │       └── RepeatedStep        one step was proposed more often than `repeat_limit` allows
    ├── CheckpointError             a checkpoint is of no use (`agentkit.saving`)
    │   └── ResumeConflict          to go on, a step might be executed twice (`agentkit.checkpoint`)
    └── ModelError                  models: see `agentkit.models.errors`

`CancelledError` is not in the tree: cancelling a run passes through it and leaves nothing behind.
Errors of the registry and of episodes keep their own trees; where one ends a run it is the `__cause__`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit.root import AgentError

if TYPE_CHECKING:
    from agentkit.result import RunResult


class ConfigurationError(AgentError):
    """An argument of an agent that cannot work, with the remedy."""


class RunError(AgentError):
    """A run that ended without an output. The result so far is attached."""

    def __init__(self, message: str, *, result: RunResult) -> None:
        super().__init__(message)
        self.result = result


class IncompleteStep(RunError):
    """A step whose text stopped before its end. It was not executed."""


class ModelFailed(RunError):
    """The model could not answer. The `ModelError` is the `__cause__`."""


class ContextWindowExceeded(ModelFailed):
    """The prompt is longer than the model's context; the `ContextOverflowError` is the `__cause__`."""


class ToolFailed(RunError):
    """A tool call that did not give a value of its declared type. `.tool` names the tool."""

    def __init__(self, message: str, *, tool: str, result: RunResult) -> None:
        super().__init__(message, result=result)
        self.tool = tool


class UsageLimitExceeded(RunError):
    """A limit of `UsageLimits` that was reached: `.limit` is the field, `.value` its value."""

    def __init__(self, message: str, *, limit: str, value: float, result: RunResult) -> None:
        super().__init__(message, result=result)
        self.limit = limit
        self.value = value


class RepeatedStep(UsageLimitExceeded):
    """One and the same step, proposed more often than `repeat_limit` allows."""
