"""The books of one run: what it has done and used so far, and the result that follows from them."""

from __future__ import annotations

from time import perf_counter
from typing import Final, final

from agentkit.decoding import Proposal
from agentkit.models import Usage
from agentkit.result import RunResult, RunTiming, RunUsage, StopReason, TurnTelemetry
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


@final
class Ledger:
    """Changed by the run alone, and only between awaits: a turn is in it wholly or not at all."""

    def __init__(self, episode: Episode) -> None:
        self._episode: Final = episode
        self.bindings: Bindings = episode.bindings
        self.transcript = Transcript()
        self.tool_calls = 0
        self.tools_s = 0.0
        self.stop = StopReason.RUNNING
        self._steps: tuple[Step, ...] = ()
        self._telemetry: tuple[TurnTelemetry, ...] = ()
        self._usage = Usage()
        self._output: object = None
        self._grade: Grade | None = None
        self._begun: float | None = None
        self._ended: float | None = None

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
        """Seconds from the first turn until now, or until the end."""
        until = self._ended if self._ended is not None else perf_counter()
        return until - self._begun if self._begun is not None else 0.0

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
            ),
        )

    def commit(
        self,
        proposal: Proposal,
        *,
        observation: str,
        outcome: StepOutcome | None = None,
        error: str | None = None,
    ) -> Turn:
        """Enter a turn: its binding, its step and its record together."""
        turn = Turn(
            number=self.next_turn,
            text=proposal.text,
            thought=proposal.thought.text.strip() if proposal.thought is not None else "",
            step=proposal.step,
            result=Result.of(outcome) if outcome is not None else None,
            observation=observation,
            error=error,
        )
        if outcome is not None and proposal.step is not None:
            self._steps += (proposal.step,)
        if isinstance(outcome, Bound):
            self.bindings = self.bindings.bind(outcome.binding)
        self.transcript = self.transcript.add(turn)
        if isinstance(outcome, Returned):
            self._output = outcome.value
            environment = Environment(before=self._episode.bindings, after=self.bindings)
            self._grade = self._episode.grade(outcome.value, environment)
            self.end(StopReason.RETURNED)
        return turn

    @property
    def result(self) -> RunResult:
        """The result so far."""
        usage = self._usage
        return RunResult(
            episode=self._episode.name,
            output=self._output,
            steps=self._steps,
            bindings=self.bindings,
            transcript=self.transcript,
            telemetry=self._telemetry,
            usage=RunUsage(
                turns=len(self.transcript),
                tool_calls=self.tool_calls,
                prompt_tokens=usage.prompt_tokens,
                cached_tokens=usage.cached_tokens,
                prefilled_tokens=usage.prefilled_tokens,
                generated_tokens=usage.generated_tokens,
            ),
            timing=RunTiming(
                model_s=sum(one.model_s for one in self._telemetry),
                oracle_s=sum(one.oracle_s for one in self._telemetry),
                tools_s=self.tools_s,
                total_s=self.elapsed,
            ),
            stop_reason=self.stop,
            grade=self._grade,
        )
