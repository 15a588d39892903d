"""What a run tells while it goes on: to show progress, never to steer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agentkit.models import Message, Sampling, TokenRecord
from agentkit.modes import Mode
from agentkit.result import RunResult, TurnTelemetry
from aufbau import Prefix
from dialects import Step
from episodes import Episode, Turn


@dataclass(frozen=True, kw_only=True, slots=True)
class RunStarted:
    """A run begins, before its first turn."""

    episode: Episode
    model: str
    """The model's name."""

    mode: Mode
    sampling: Sampling
    run_id: str = ""
    resumed: bool = False
    """It goes on from a checkpoint."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnStarted:
    """The model is about to be asked for the step of turn `turn`; told again after the prompt was shortened.

    A step that a checkpoint holds is not asked for again; its turn is told all the same.
    """

    turn: int
    messages: tuple[Message, ...]
    start: Prefix
    """What the oracle judges the step from, in every mode; it may hold the beginning of the text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenGenerated:
    """The model chose a token in turn `turn`; one that its budget takes back later was told, too."""

    turn: int
    token: TokenRecord
    reasoning: bool = False
    """It belongs to the reasoning before the step."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ContextTruncated:
    """The prompt of turn `turn` was too long for the model and is asked again, shortened."""

    turn: int
    cut: str
    """What is left out, in words; the model is told it, too."""

    prompt_tokens: int
    """Of the prompt that was too long."""

    context: int
    """Tokens that the model reads at most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepProposed:
    """The text of a step is whole; it is executed next, unless somebody who is asked denies it."""

    turn: int
    text: str
    step: Step | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolStarted:
    """A tool is about to be called; nested calls come one by one, innermost first."""

    turn: int
    tool: str
    arguments: Mapping[str, object]
    """Values by the names of the parameters."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolEnded:
    """The call of the last `ToolStarted` is over, well or not."""

    turn: int
    tool: str
    arguments: Mapping[str, object]
    result: object = None
    error: BaseException | None = None
    """What the call raised, its cancellation included; there is no result then."""

    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnEnded:
    """A turn is committed, with its observation."""

    turn: Turn
    telemetry: TurnTelemetry | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RunEnded:
    """The run is over, well or not."""

    result: RunResult
    error: BaseException | None = None
    """What ended it before its time."""


Event = (
    RunStarted
    | TurnStarted
    | TokenGenerated
    | ContextTruncated
    | StepProposed
    | ToolStarted
    | ToolEnded
    | TurnEnded
    | RunEnded
)
EventHandler = Callable[[Event], None]
