"""What a run tells while it goes on: to show progress, never to steer."""

from __future__ import annotations

from collections.abc import Callable
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


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnStarted:
    """The model is about to be asked for the step of turn `turn`."""

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
class StepProposed:
    """The text of a step is whole and is about to be executed."""

    turn: int
    text: str
    step: Step | None = None


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


Event = RunStarted | TurnStarted | TokenGenerated | StepProposed | TurnEnded | RunEnded
EventHandler = Callable[[Event], None]
