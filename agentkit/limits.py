"""What a run may use: turns, tokens, tool calls, repetitions and time."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, kw_only=True, slots=True)
class UsageLimits:
    """The limits of one run. Each binds always and raises `UsageLimitExceeded` when it is passed.

    A limit of n admits n and refuses n + 1. `None` means no limit.
    """

    turn_limit: int = 20
    """Turns (one step of the model each, executed or refused). Where each token is held to the types, the last can only
    return, and no step is taken after which no turn would be left to return."""

    token_limit: int | None = None
    """Generated tokens over the whole run."""

    tokens_per_step: int = 256
    """Generated tokens in one step; a step that needs more is an `IncompleteStep`. A masked step is steered
    to an end within them, where one is known."""

    reasoning_tokens: int = 128
    """Generated tokens of reasoning before one step, in the modes that reason. Where `token_limit` leaves less than
    both need, the step has at least half."""

    tool_call_limit: int | None = None
    """Tool calls over the whole run, nested ones counted singly."""

    repeat_limit: int = 3
    """How often one and the same step may be proposed; passing it raises `RepeatedStep`."""

    tool_timeout: float | None = 60.0
    """Seconds for one tool call; passing it is a failed tool, treated as `tool_errors` says."""

    turn_timeout: float | None = None
    """Seconds for one turn, the model and its tools together."""

    run_timeout: float | None = None
    """Seconds for the run, counted from its first turn; time between the turns of `iter` counts too."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value: float | None = getattr(self, field.name)
            if value is not None and not value > 0:
                raise ValueError(
                    f"UsageLimits({field.name}={value!r}): a limit is greater than 0;"
                    + (" use None for no limit" if "None" in str(field.type) else "")
                )
