"""A run as an asynchronous stream of its events, for callers who would rather loop than be called back."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, final

import anyio

from agentkit.errors import ConfigurationError
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
        """Raises `ConfigurationError` for a buffer that holds nothing: the run would wait for ever."""
        if buffer < 1:
            raise ConfigurationError(f"buffer={buffer!r}: one event at least must wait for its reader")
        self._buffer: Final = buffer
        self._events: Final[deque[Event]] = deque()
        self._changed = anyio.Event()
        self._run: Run | None = None
        self._done = False
        self._error: BaseException | None = None

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

    def close(self, error: BaseException | None) -> None:
        """No more events will come; `error` is raised after the last one."""
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


@final
class Background:
    """Work in a task of its own that no block holds: begun in one task, it may be ended in another.

    A task group would be a cancel scope of the task that entered it, which only that task may leave. The price is that
    nobody hears of what the work raises, so it must hand on its errors itself.
    """

    def __init__(self, work: Callable[[], Awaitable[None]]) -> None:
        """Begin, with the context variables of the caller."""
        self._work: Final = work
        self._scope: Final = anyio.CancelScope()
        self._done: Final = anyio.Event()
        self._task: Final = _spawn(self._run)

    async def _run(self) -> None:
        try:
            with self._scope:
                await self._work()
        finally:
            self._done.set()

    @property
    def ending(self) -> bool:
        """Whether `end` was called."""
        return self._scope.cancel_called

    async def end(self) -> None:
        """Cancel what is left of the work and wait for its end, even when cancelled; that is raised afterwards."""
        self._scope.cancel()
        kept: BaseException | None = None
        while not self._done.is_set():
            try:
                with anyio.CancelScope(shield=True):
                    await self._done.wait()
            except anyio.get_cancelled_exc_class() as error:
                # Of asyncio itself, which knows no shield.
                kept = error
        if kept is not None:
            raise kept


def _spawn(main: Callable[[], Any]) -> object:
    """Begin a task that belongs to the event loop; asyncio keeps it only as long as the returned object is kept."""
    if anyio.get_cancelled_exc_class() is asyncio.CancelledError:
        return asyncio.get_running_loop().create_task(main())
    from trio.lowlevel import spawn_system_task

    return spawn_system_task(main, context=contextvars.copy_context())
