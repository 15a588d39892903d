"""A run as data: what `TraceRecorder` writes down, what `agentkit trace` reads, and what the page shows.

The JSON form has the fields of these classes under their names; `Trace.json_schema` describes it. A reader refuses
other versions. Times are seconds since the run began, probabilities natural logarithms, entropies nats.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal, Self

from pydantic import TypeAdapter, ValidationError

from agentkit.models import FinishReason, Steering, TokenRecord
from agentkit.modes import Mode
from agentkit.result import RunTiming, RunUsage, StopReason
from agentkit.trace.errors import TraceError
from aufbau.verdict import Verdict

FORMAT: Final = "agentkit-trace"
VERSION: Final = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenTrace:
    """One token, and how it came about."""

    text: str
    """Bytes that are no whole characters read as U+FFFD."""

    verdict: Verdict | None
    """Of the text up to and with this token; None for reasoning, and where the run told no start."""

    entropy: float
    """Of the model's whole distribution before the mask."""

    logprob: float
    """Before the mask, at temperature 1."""

    first_choice: bool
    """The model's own choice was admissible."""

    rejected: int
    """Tokens that came first and were refused."""

    steered: bool = False
    """The budget refused a token that the oracle admits."""

    preferred: str | None = None
    """What the model would have written, where that was refused and is known; empty for an end of text."""

    given_up: float | None = None
    """How much less probable this token is than the likeliest one; None where the model does not tell."""

    at_s: float | None = None

    @classmethod
    def of(cls, record: TokenRecord, *, verdict: Verdict | None, at_s: float | None) -> Self:
        """The trace of a record."""
        return cls(
            text=record.text.decode(errors="replace"),
            verdict=verdict,
            entropy=finite(record.entropy),
            logprob=finite(record.logprob),
            first_choice=record.first_choice,
            rejected=record.rejected,
            steered=record.steered,
            preferred=record.preferred.decode(errors="replace") if record.preferred is not None else None,
            given_up=finite(record.given_up) if record.given_up is not None else None,
            at_s=at_s,
        )

    @property
    def overruled(self) -> bool:
        """Whether the mask, or the budget, refused what the model would have written."""
        return self.rejected > 0 or not self.first_choice


@dataclass(frozen=True, kw_only=True, slots=True)
class BindingTrace:
    """A name of Γ; the value is its short text, cut with its size stated."""

    name: str
    type: str
    value: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CallTrace:
    """A tool call; nested calls come one by one, inner ones first. Values are short texts."""

    tool: str
    arguments: str
    """As `name = value, …`."""

    result: str | None
    error: str | None = None
    """What the call raised, its cancellation included; there is no result then."""

    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageTrace:
    """A message that the model was given."""

    role: str
    content: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnTrace:
    """One turn: what the model was asked, what it wrote token by token, and what came of it."""

    number: int
    started_s: float | None = None
    ended_s: float | None = None
    messages: tuple[MessageTrace, ...] = ()
    thought: str = ""
    reasoning: tuple[TokenTrace, ...] = ()
    begun: str = ""
    """Text that the step had before the model wrote."""

    cut: str = ""
    """What was left out of the prompt for the model's context, in words."""

    text: str = ""
    tokens: tuple[TokenTrace, ...] = ()
    taken_back: int = 0
    """Tokens that were chosen and taken back, since the budget was not enough to end after them."""

    finish: FinishReason | None = None
    """None where the turn was broken off."""

    steering: Steering = Steering.OFF
    prompt_tokens: int | None = None
    prefilled_tokens: int | None = None
    """Those of the prompt that the model had to read; the others it had read before."""

    model_s: float | None = None
    oracle_s: float | None = None
    tool_s: float | None = None
    """From the proposal of the step to the end of the turn."""

    calls: tuple[CallTrace, ...] = ()
    bound: BindingTrace | None = None
    returned: str | None = None
    observation: str = ""
    error: str | None = None

    @property
    def overruled(self) -> int:
        """Tokens of the step where the model did not get what it would have written."""
        return sum(token.overruled for token in self.tokens)

    @property
    def given_up(self) -> float | None:
        """Sum over those tokens; None where no model told."""
        known = [token.given_up for token in self.tokens if token.overruled and token.given_up is not None]
        return math.fsum(known) if known else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Trace:
    """One run, from the task to the outcome."""

    format: Literal["agentkit-trace"] = FORMAT
    version: Literal[1] = VERSION
    episode: str
    prompt: str = ""
    """The task; empty where the run did not tell its beginning."""

    model: str = ""
    mode: Mode | None = None
    temperature: float | None = None
    seed: int | None = None
    started_at: str
    """Date and time in UTC, by ISO 8601."""

    bindings: tuple[BindingTrace, ...] = ()
    """Γ before the first turn."""

    turns: tuple[TurnTrace, ...]
    stop_reason: StopReason
    error: str | None = None
    output: str | None = None
    """None where nothing was returned."""

    passed: bool | None = None
    """The grader's word; None where it had none."""

    grade: str = ""
    usage: RunUsage
    timing: RunTiming

    def to_data(self) -> dict[str, Any]:
        """The trace as JSON-able data."""
        data: dict[str, Any] = _adapter().dump_python(self, mode="json")
        return data

    def to_json(self, indent: int | None = None) -> str:
        """The trace as JSON text."""
        text = json.dumps(self.to_data(), ensure_ascii=False, indent=indent, allow_nan=False)
        # Half a surrogate pair, which a tool may return, is no character.
        return text.encode(errors="replace").decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Trace:
        """The trace that `to_json` wrote. Raises `TraceError`, which names the place."""
        try:
            return _adapter().validate_json(text)
        except ValidationError as error:
            raise TraceError(f"no trace of version {VERSION}: {_first(error)}") from error

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """The JSON Schema of the form."""
        return _adapter().json_schema()


def finite(number: float) -> float:
    """A number that JSON can hold: infinities become the largest ones, what is no number 0."""
    return 0.0 if math.isnan(number) else max(-1e308, min(1e308, number))


@cache
def _adapter() -> TypeAdapter[Trace]:
    return TypeAdapter(Trace)


def _first(error: ValidationError) -> str:
    problem = error.errors(include_url=False)[0]
    place = "/".join(map(str, problem["loc"])) or "the whole text"
    return f"{place}: {problem['msg']}"
