"""What a run gives back: the output and everything that led to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from agentkit.checkpoint import Checkpoint
from agentkit.jsontext import json_text
from agentkit.models import FinishReason, Message, Steering, TokenRecord, Usage
from agentkit.usage import RunTiming, RunUsage, StopReason
from dialects.steps import Step
from episodes import Bindings, Grade, Transcript, Turn, plain

__all__ = ["RunResult", "RunTiming", "RunUsage", "StopReason", "TurnTelemetry"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnTelemetry:
    """How the text of one turn came about."""

    number: int
    finish: FinishReason
    tokens: tuple[TokenRecord, ...]
    """Of the step."""

    reasoning: tuple[TokenRecord, ...] = ()
    steering: Steering = Steering.OFF
    """Whether the step was to end within its budget, and what became of that."""

    usage: Usage = field(default_factory=Usage)
    """Of the step and the reasoning before it."""

    model_s: float
    oracle_s: float
    repetition_allowed: bool
    """Every step would have been a repetition, so the rule against them was set aside."""

    cut: str = ""
    """What was left out of the prompt for the model's context, in words; empty where nothing was."""

    def to_data(self) -> dict[str, object]:
        """The figures as JSON-able data, the tokens summed up."""
        count = len(self.tokens)
        return {
            "number": self.number,
            "finish": self.finish.value,
            "tokens": count,
            "reasoning_tokens": len(self.reasoning),
            "steering": self.steering.value,
            "steered": sum(token.steered for token in self.tokens),
            "first_choices": sum(token.first_choice for token in self.tokens),
            "rejected": sum(token.rejected for token in self.tokens),
            "mean_entropy": sum(token.entropy for token in self.tokens) / count if count else 0.0,
            "prompt_tokens": self.usage.prompt_tokens,
            "prefilled_tokens": self.usage.prefilled_tokens,
            "model_s": self.model_s,
            "oracle_s": self.oracle_s,
            "repetition_allowed": self.repetition_allowed,
            "cut": self.cut,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class RunResult:
    """The result of a run; of a run that did not end well, its result so far."""

    episode: str
    output: object
    steps: tuple[Step, ...]
    """The executed steps, in order."""

    bindings: Bindings
    transcript: Transcript
    telemetry: tuple[TurnTelemetry, ...]
    usage: RunUsage
    timing: RunTiming
    stop_reason: StopReason
    grade: Grade | None
    """The grader's judgement of a returned output; None where there is no grader or no output."""

    run_id: str
    """Stays the same when the run is resumed."""

    messages: tuple[Message, ...] = field(repr=False)
    """The last prompt as the model saw it, from the rules on, with its answer; `Agent.run(..., message_history=...)`
    goes on from there."""

    checkpoint: Checkpoint = field(repr=False)
    """What `Agent.resume` needs to go on from here."""

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns, executed or refused."""
        return self.transcript.turns

    def to_data(self) -> dict[str, object]:
        """The result as JSON-able data; values that JSON cannot hold are told by type and representation."""
        return {
            "run_id": self.run_id,
            "episode": self.episode,
            "output": plain(self.output),
            "stop_reason": self.stop_reason.value,
            "grade": {"passed": self.grade.passed, "reason": self.grade.reason} if self.grade else None,
            "bindings": {
                name: {"type": bound.type.name, "value": plain(bound.value)} for name, bound in self.bindings.items()
            },
            "turns": [turn.to_data() for turn in self.turns],
            "telemetry": [one.to_data() for one in self.telemetry],
            "usage": {name: getattr(self.usage, name) for name in RunUsage.__dataclass_fields__},
            "timing": {name: getattr(self.timing, name) for name in RunTiming.__dataclass_fields__},
        }

    def to_json(self, indent: int | None = None) -> str:
        """The result as JSON text."""
        return json_text(self.to_data(), indent)
