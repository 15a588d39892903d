"""A run as an asynchronous stream of its events, for callers who would rather loop than be called back."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from typing import Final, final

import anyio

from agentkit.events import Event, EventHandler
from agentkit.result import RunResult
from agentkit.run import Run

BUFFERED_EVENTS: Final = 256
"""Events that may wait for a slow reader before the run waits, too."""


@final
class EventStream(AsyncIterator[Event]):
    """Iterate to get the events of the run, to its end; what ended the run early is raised there.

    The run waits between two turns while `buffer` events or more are unread, so that at most these and the events of
    one turn are held, whose number `UsageLimits.tokens_per_step` bounds.
    """

    def __init__(self, buffer: int = BUFFERED_EVENTS) -> None:
        self._buffer: Final = buffer
        self._events: Final[deque[Event]] = deque()
        self._changed = anyio.Event()
        self._run: Run | None = None
        self._done = False
        self._error: Exception | None = None

    @property
    def result(self) -> RunResult:
        """The result so far; the whole one once the loop is over."""
        if self._run is None:
            raise RuntimeError("the run has not begun: its result is known from the first event on")
        return self._run.result

    @property
    def waiting(self) -> int:
        """Events that were told and not read yet."""
        return len(self._events)

    def hear(self, also: EventHandler | None) -> EventHandler:
        """The handler that fills the stream, after telling another one."""

        def handler(event: Event) -> None:
            if also is not None:
                also(event)
            self._events.append(event)
            self._wake()

        return handler

    async def drive(self, run: Run) -> None:
        """Take the run to its end, no faster than it is read."""
        self._run = run
        async for _ in run:
            while len(self._events) >= self._buffer:
                await self._changed.wait()

    def close(self, error: Exception | None) -> None:
        """No more events will come."""
        self._done, self._error = True, error
        self._wake()

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> Event:
        while not self._events:
            if self._done:
                if self._error is not None:
                    raise self._error
                raise StopAsyncIteration
            await self._changed.wait()
        event = self._events.popleft()
        self._wake()
        return event

    def _wake(self) -> None:
        """Let whoever waits look again."""
        self._changed.set()
        self._changed = anyio.Event()
