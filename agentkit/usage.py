"""Why a run ended and what it used, counted and timed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class StopReason(Enum):
    """Why a run ended."""

    RETURNED = "returned"
    """A return step gave the output."""

    RUNNING = "running"
    """It has not ended: the result is a snapshot, or the caller left the loop."""

    LIMIT = "limit"
    """A usage limit was reached."""

    REPEATED = "repeated"
    """One step came too often."""

    INCOMPLETE_STEP = "incomplete_step"
    """The text of a step stopped before its end."""

    TOOL_FAILED = "tool_failed"
    """A tool call gave no value of its type."""

    DEFERRED = "deferred"
    """A call waits for approval; the run can be resumed with a decision."""

    ERROR = "error"
    """Something else raised: the model, a grader, or a cancelled task."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunUsage:
    """What a run used, counted."""

    turns: int = 0
    tool_calls: int = 0
    """Calls that were begun, nested ones counted singly."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    prefilled_tokens: int = 0
    generated_tokens: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class RunTiming:
    """Seconds of a run, apart by who spent them."""

    model_s: float = 0.0
    oracle_s: float = 0.0
    tools_s: float = 0.0
    total_s: float = 0.0
