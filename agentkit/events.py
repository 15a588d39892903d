"""What a run tells while it goes on: to show progress, never to steer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agentkit.models import TokenRecord
from agentkit.result import RunResult
from episodes import Turn


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenGenerated:
    """The model chose a token in turn `turn`."""

    turn: int
    token: TokenRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class StepProposed:
    """The text of a step is whole and is about to be executed."""

    turn: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnEnded:
    """A turn is committed, with its observation."""

    turn: Turn


@dataclass(frozen=True, kw_only=True, slots=True)
class RunEnded:
    """The run is over, well or not."""

    result: RunResult


Event = TokenGenerated | StepProposed | TurnEnded | RunEnded
EventHandler = Callable[[Event], None]
