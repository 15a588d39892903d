"""The books of one run: what it has done and used so far, and the result that follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Final, Self, final
from uuid import uuid4

from agentkit.checkpoint import Checkpoint, Pending
from agentkit.decoding import Proposal
from agentkit.models import Message, Usage
from agentkit.repetition import History
from agentkit.result import RunResult, RunTiming, RunUsage, StopReason, TurnTelemetry
from agentkit.saving import Codecs
from agentkit.window import Cut
from dialects import Step
from episodes import (
    Bindings,
    Bound,
    Environment,
    Episode,
    Grade,
    Result,
    Returned,
    StepOutcome,
    Transcript,
    Turn,
)
from registry import ToolType


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """What the model said in a turn."""

    text: str
    thought: str = ""
    step: Step | None = None

    @classmethod
    def of(cls, proposal: Proposal) -> Self:
        """What a proposal says."""
        thought = proposal.thought.text.strip() if proposal.thought is not None else ""
        return cls(text=proposal.text, thought=thought, step=proposal.step)


@final
class Ledger:
    """Changed by the run alone, and only between awaits: a turn is in it wholly or not at all."""

    def __init__(
        self,
        episode: Episode,
        history: History,
        *,
        message_history: tuple[Message, ...] = (),
        codecs: Codecs | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self._episode: Final = episode
        self._history: Final = history
        self._codecs: Final = codecs or {}
        self.message_history = message_history
        self.run_id = uuid4().hex
        self.bindings: Bindings = episode.bindings
        self.transcript = Transcript()
        self.messages: tuple[Message, ...] = ()
        self.pending: Pending | None = None
        self.cut = Cut.NOTHING
        self.tool_calls = 0
        self.tools_s = 0.0
        self.stop = StopReason.RUNNING
        self._steps: tuple[Step, ...] = ()
        self._telemetry: tuple[TurnTelemetry, ...] = ()
        self._usage = Usage()
        self._output: object = None
        self._output_type: ToolType | None = None
        self._grade: Grade | None = None
        self._before = RunTiming()
        self._begun: float | None = None
        self._ended: float | None = None
        if checkpoint is not None:
            self._restore(checkpoint)

    def _restore(self, checkpoint: Checkpoint) -> None:
        """Stand where the checkpoint does. Only a run that has returned stays ended."""
        self.run_id = checkpoint.run_id
        self.message_history = checkpoint.message_history
        self.transcript = checkpoint.transcript
        self.bindings = Bindings((*self._episode.bindings.values(), *checkpoint.bindings.values()))
        self.pending = checkpoint.pending
        self.cut = Cut(checkpoint.cut)
        self.tool_calls = checkpoint.usage.tool_calls
        self.tools_s = checkpoint.timing.tools_s
        self._steps = tuple(turn.step for turn in self.transcript if turn.step is not None and turn.result is not None)
        self._usage = Usage(
            prompt_tokens=checkpoint.usage.prompt_tokens,
            cached_tokens=checkpoint.usage.cached_tokens,
            prefilled_tokens=checkpoint.usage.prefilled_tokens,
            generated_tokens=checkpoint.usage.generated_tokens,
        )
        self._before = checkpoint.timing
        if checkpoint.stop_reason is StopReason.RETURNED:
            self._returned(checkpoint.output, checkpoint.output_type)

    @property
    def next_turn(self) -> int:
        """The number of the turn that comes next or is going on."""
        return len(self.transcript) + 1

    @property
    def generated_tokens(self) -> int:
        return self._usage.generated_tokens

    def is_over(self) -> bool:
        """Whether the run has ended."""
        return self.stop is not StopReason.RUNNING

    def begin(self) -> bool:
        """Start the clock; later calls change nothing. Whether this was the first."""
        if self._begun is not None:
            return False
        self._begun = perf_counter()
        return True

    @property
    def elapsed(self) -> float:
        """Seconds from the first turn until now, or until the end, without those between a checkpoint and going on."""
        until = self._ended if self._ended is not None else perf_counter()
        return self._before.total_s + (until - self._begun if self._begun is not None else 0.0)

    def end(self, reason: StopReason) -> RunResult:
        """Note why and when the run ended; the first reason stays."""
        if not self.is_over():
            self.stop = reason
            self._ended = perf_counter()
        return self.result

    def count(self, proposal: Proposal, starting_s: float) -> None:
        """Enter what a proposal cost, and the oracle's seconds before it."""
        timing = proposal.timing
        self._usage = sum((one.usage for one in proposal.generations), self._usage)
        self._telemetry += (
            TurnTelemetry(
                number=self.next_turn,
                finish=proposal.finish,
                tokens=proposal.generation.tokens,
                reasoning=proposal.thought.tokens if proposal.thought is not None else (),
                steering=proposal.generation.steering,
                usage=sum((one.usage for one in proposal.generations), Usage()),
                model_s=timing.model_s,
                oracle_s=timing.oracle_s + starting_s,
                repetition_allowed=proposal.repetition_allowed,
                cut=self.cut.words,
            ),
        )

    def telemetry_of(self, turn: int) -> TurnTelemetry | None:
        """How the text of a turn came about; None for a step that a checkpoint held."""
        last = self._telemetry[-1] if self._telemetry else None
        return last if last is not None and last.number == turn else None

    def commit(
        self,
        said: Said,
        *,
        observation: str,
        outcome: StepOutcome | None = None,
        error: str | None = None,
    ) -> Turn:
        """Enter a turn: its binding, its step and its record together."""
        turn = Turn(
            number=self.next_turn,
            text=said.text,
            thought=said.thought,
            step=said.step,
            result=Result.of(outcome) if outcome is not None else None,
            observation=observation,
            error=error,
        )
        self.pending = None
        if outcome is not None and said.step is not None:
            self._steps += (said.step,)
        if isinstance(outcome, Bound):
            self.bindings = self.bindings.bind(outcome.binding)
        self.transcript = self.transcript.add(turn)
        if isinstance(outcome, Returned):
            self._returned(outcome.value, outcome.type)
        return turn

    def _returned(self, output: object, kind: ToolType | None) -> None:
        self._output, self._output_type = output, kind
        environment = Environment(before=self._episode.bindings, after=self.bindings)
        self._grade = self._episode.grade(output, environment)
        self.end(StopReason.RETURNED)

    @property
    def usage(self) -> RunUsage:
        """What was used so far."""
        return RunUsage(
            turns=len(self.transcript),
            tool_calls=self.tool_calls,
            prompt_tokens=self._usage.prompt_tokens,
            cached_tokens=self._usage.cached_tokens,
            prefilled_tokens=self._usage.prefilled_tokens,
            generated_tokens=self._usage.generated_tokens,
        )

    @property
    def timing(self) -> RunTiming:
        """The seconds so far."""
        return RunTiming(
            model_s=self._before.model_s + sum(one.model_s for one in self._telemetry),
            oracle_s=self._before.oracle_s + sum(one.oracle_s for one in self._telemetry),
            tools_s=self.tools_s,
            total_s=self.elapsed,
        )

    @property
    def checkpoint(self) -> Checkpoint:
        """Where the run stands."""
        own = self._episode.bindings
        return Checkpoint(
            run_id=self.run_id,
            episode=self._episode.name,
            prompt=self._episode.prompt,
            transcript=self.transcript,
            bindings=Bindings(bound for name, bound in self.bindings.items() if name not in own),
            proposed=self._history.proposed,
            called=self._history.called,
            usage=self.usage,
            timing=self.timing,
            stop_reason=self.stop,
            output=self._output,
            output_type=self._output_type,
            pending=self.pending,
            message_history=self.message_history,
            cut=self.cut.value,
            codecs=self._codecs,
        )

    @property
    def result(self) -> RunResult:
        """The result so far."""
        return RunResult(
            run_id=self.run_id,
            episode=self._episode.name,
            output=self._output,
            steps=self._steps,
            bindings=self.bindings,
            transcript=self.transcript,
            telemetry=self._telemetry,
            usage=self.usage,
            timing=self.timing,
            stop_reason=self.stop,
            grade=self._grade,
            messages=self.messages,
            checkpoint=self.checkpoint,
        )
