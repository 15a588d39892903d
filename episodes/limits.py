"""The limits that an episode sets for its own runs."""

from __future__ import annotations

from dataclasses import dataclass, fields

from episodes.errors import SpecError


@dataclass(frozen=True, kw_only=True, slots=True)
class EpisodeLimits:
    """Limits that an episode sets for its runs; None leaves a limit to the agent."""

    turn_limit: int | None = None  # turns
    token_limit: int | None = None  # generated tokens in the whole run
    tokens_per_step: int | None = None  # generated tokens in one step
    tool_call_limit: int | None = None  # tool calls in the whole run
    repeat_limit: int | None = None  # times that one and the same step may be proposed
    tool_timeout: float | None = None  # seconds for one tool call
    turn_timeout: float | None = None  # seconds for one turn
    run_timeout: float | None = None  # seconds for the whole run

    def __post_init__(self) -> None:
        """Refuse limits that would admit nothing."""
        for limit in fields(self):
            value = getattr(self, limit.name)
            if value is not None and not value > 0:
                raise SpecError(f"limits.{limit.name} is {value!r}; a limit is greater than 0, or left out")
