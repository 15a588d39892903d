"""Writes down a run as it goes on: an event handler that gives a `Trace`."""

from __future__ import annotations

import datetime
from time import perf_counter
from types import TracebackType
from typing import Final, Self, final

from agentkit.events import (
    Event,
    RunEnded,
    RunStarted,
    StepProposed,
    TokenGenerated,
    ToolEnded,
    TurnEnded,
    TurnStarted,
)
from agentkit.trace.errors import TraceError
from agentkit.trace.heard import Heard, HeardTurn
from agentkit.trace.model import CallTrace, Trace
from episodes import short


@final
class TraceRecorder:
    """Pass it as `on_event`; afterwards `trace` is the run, whether it ended well or not.

    Observing changes nothing in the run: a token costs one entry of a dictionary, and the oracle judges the tokens
    one by one only when `trace` is asked for. One recorder belongs to one run; events of another raise `TraceError`.
    """

    def __init__(self) -> None:
        self._began: float | None = None
        self._heard: Final = Heard(started_at=datetime.datetime.now(datetime.UTC))
        self._trace: Trace | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Keep what ended the run, for the trace; nothing is swallowed."""
        self._heard.error = error

    def __call__(self, event: Event) -> None:
        """Hear an event."""
        heard = self._heard
        if heard.ended is not None:
            raise TraceError("this recorder holds a run that has ended; make a TraceRecorder for each run")
        now = self._elapsed()
        match event:
            case RunStarted():
                heard.started = event
            case TurnStarted():
                turn = self._turn(event.turn, now)
                turn.messages, turn.start = event.messages, event.start
            case TokenGenerated():
                turn = self._turn(event.turn, now)
                (turn.reasoning if event.reasoning else turn.tokens).append(event.token)
                turn.at_s[id(event.token)] = now
            case StepProposed():
                self._turn(event.turn, now).proposed_s = now
            case ToolEnded():
                self._turn(event.turn, now).calls.append(_call(event))
            case TurnEnded():
                turn = self._turn(event.turn.number, now)
                turn.ended_s, turn.turn = now, event.turn
            case RunEnded():
                heard.ended = event
                for turn in heard.turns.values():
                    turn.ended_s = now if turn.ended_s is None else turn.ended_s

    @property
    def trace(self) -> Trace:
        """The run, as far as it was heard."""
        if self._heard.ended is None:
            return self._heard.trace(self._elapsed())
        if self._trace is None:
            self._trace = self._heard.trace(self._elapsed())
        return self._trace

    def _elapsed(self) -> float:
        """Seconds since the first event."""
        if self._began is None:
            self._began = perf_counter()
        return perf_counter() - self._began

    def _turn(self, number: int, now: float) -> HeardTurn:
        """What was heard of a turn; one whose start was not told begins with its first event."""
        return self._heard.turns.setdefault(number, HeardTurn(started_s=now))


def _call(event: ToolEnded) -> CallTrace:
    """A call as data; a tool may change its values later, so they are written down at once."""
    return CallTrace(
        tool=event.tool,
        arguments=", ".join(f"{name} = {short(value)}" for name, value in event.arguments.items()),
        result=short(event.result) if event.error is None else None,
        error=f"{type(event.error).__name__}: {event.error}" if event.error is not None else None,
        seconds=event.seconds,
    )
