"""What a run's events said, with their times, and the trace that follows from it."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from agentkit.events import RunEnded, RunStarted
from agentkit.models import Message, TokenRecord
from agentkit.result import RunResult, RunTiming, RunUsage, StopReason, TurnTelemetry
from agentkit.trace.model import BindingTrace, CallTrace, MessageTrace, TokenTrace, Trace, TurnTrace
from aufbau import Prefix, Verdict
from episodes import Bindings, Turn, short


@dataclass(slots=True)
class HeardTurn:
    """What the events of one turn said; times are seconds since the run began."""

    started_s: float
    messages: tuple[Message, ...] = ()
    start: Prefix | None = None
    tokens: list[TokenRecord] = field(default_factory=list)
    reasoning: list[TokenRecord] = field(default_factory=list)
    # By identity, since equal records are not one and the same token; the lists keep them alive.
    at_s: dict[int, float] = field(default_factory=dict)
    proposed_s: float | None = None
    calls: list[CallTrace] = field(default_factory=list)
    ended_s: float | None = None
    turn: Turn | None = None

    @property
    def tool_s(self) -> float | None:
        """From the proposal of the step to the end of the turn."""
        if self.proposed_s is None or self.ended_s is None:
            return None
        return self.ended_s - self.proposed_s


@dataclass(slots=True)
class Heard:
    """What the events of one run said."""

    started_at: datetime.datetime
    started: RunStarted | None = None
    turns: dict[int, HeardTurn] = field(default_factory=dict)
    ended: RunEnded | None = None
    error: BaseException | None = None

    def trace(self, elapsed: float) -> Trace:
        """The run as data; the oracle judges the tokens here, and not while the run goes on."""
        result = self.ended.result if self.ended is not None else None
        started, grade = self.started, result.grade if result is not None else None
        turns = tuple(self._turns(result))
        error = self.ended.error if self.ended is not None and self.ended.error is not None else self.error
        episode = started.episode if started is not None else None
        return Trace(
            episode=result.episode if result is not None else episode.name if episode is not None else "",
            prompt=episode.prompt if episode is not None else "",
            model=started.model if started is not None else "",
            mode=started.mode if started is not None else None,
            temperature=started.sampling.temperature if started is not None else None,
            seed=started.sampling.seed if started is not None else None,
            started_at=self.started_at.isoformat(timespec="milliseconds"),
            bindings=_bindings(episode.bindings) if episode is not None else _initial(result, turns),
            turns=turns,
            stop_reason=result.stop_reason if result is not None else StopReason.RUNNING,
            error=f"{type(error).__name__}: {error}" if error is not None else None,
            output=short(result.output) if result is not None and result.stop_reason is StopReason.RETURNED else None,
            passed=grade.passed if grade is not None else None,
            grade=grade.reason if grade is not None else "",
            usage=result.usage if result is not None else RunUsage(turns=len(turns)),
            timing=result.timing if result is not None else RunTiming(total_s=elapsed),
        )

    def _turns(self, result: RunResult | None) -> Iterator[TurnTrace]:
        committed = {number: heard.turn for number, heard in self.turns.items() if heard.turn is not None}
        told: dict[int, TurnTelemetry] = {}
        if result is not None:
            # A turn that ends the run is in the result without an event of its own.
            committed |= {turn.number: turn for turn in result.turns}
            told = {one.number: one for one in result.telemetry}
        free = self.started is not None and not self.started.mode.masked
        for number in sorted({*self.turns, *committed}):
            heard = self.turns.get(number) or HeardTurn(started_s=0.0)
            trace = _generated(number, heard, told.get(number), free)
            turn = committed.get(number)
            yield trace if turn is None else _executed(trace, turn, result)


def _generated(number: int, heard: HeardTurn, told: TurnTelemetry | None, free: bool) -> TurnTrace:
    """What the model did in a turn; the telemetry's tokens are those that were not taken back."""
    tokens = told.tokens if told is not None else tuple(heard.tokens)
    trace = TurnTrace(
        number=number,
        started_s=heard.started_s,
        ended_s=heard.ended_s,
        messages=tuple(MessageTrace(role=one.role, content=one.content) for one in heard.messages),
        reasoning=tuple(_judged(told.reasoning if told is not None else heard.reasoning, heard.at_s, None, free)),
        begun=heard.start.text.decode(errors="replace") if heard.start is not None else "",
        text=b"".join(token.text for token in tokens).decode(errors="replace"),
        tokens=tuple(_judged(tokens, heard.at_s, heard.start, free)),
        taken_back=max(0, len(heard.tokens) - len(tokens)),
        tool_s=heard.tool_s,
        calls=tuple(heard.calls),
    )
    if told is None:
        return trace
    return replace(
        trace,
        finish=told.finish,
        steering=told.steering,
        cut=told.cut,
        prompt_tokens=told.usage.prompt_tokens or None,
        prefilled_tokens=told.usage.prefilled_tokens if told.usage.prompt_tokens else None,
        model_s=told.model_s,
        oracle_s=told.oracle_s,
    )


def _judged(
    records: Iterable[TokenRecord], at_s: dict[int, float], prefix: Prefix | None, free: bool
) -> Iterator[TokenTrace]:
    """The tokens, each with the oracle's verdict on the text up to it."""
    for record in records:
        if prefix is not None and prefix.verdict is not Verdict.LOST:
            # A free answer is judged without the white space that it begins with.
            prefix = prefix.feed(record.text.lstrip() if free and not prefix.text else record.text)
        verdict = prefix.verdict if prefix is not None else None
        yield TokenTrace.of(record, verdict=verdict, at_s=at_s.get(id(record)))


def _executed(trace: TurnTrace, turn: Turn, result: RunResult | None) -> TurnTrace:
    """The same turn with what came of its step."""
    bound, returned, given = None, None, turn.result
    if given is not None and given.name is not None:
        known = result.bindings if result is not None else {}
        value = known[given.name].short() if given.name in known else short(given.value)
        bound = BindingTrace(name=given.name, type=given.type or "", value=value)
    elif given is not None:
        returned = short(given.value)
    return replace(
        trace,
        thought=turn.thought,
        text=turn.text,
        bound=bound,
        returned=returned,
        observation=turn.observation,
        error=turn.error,
    )


def _bindings(bindings: Bindings) -> tuple[BindingTrace, ...]:
    return tuple(BindingTrace(name=name, type=bound.type.name, value=bound.short()) for name, bound in bindings.items())


def _initial(result: RunResult | None, turns: Iterable[TurnTrace]) -> tuple[BindingTrace, ...]:
    """Γ before the first turn, of a run that did not tell it: what no turn has bound."""
    later = {turn.bound.name for turn in turns if turn.bound is not None}
    every = _bindings(result.bindings) if result is not None else ()
    return tuple(binding for binding in every if binding.name not in later)
