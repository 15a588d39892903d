"""Running a synchronous tool beside the event loop, so that one that never returns holds up nothing."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

import anyio.to_thread

T = TypeVar("T")


class _Work(Generic[T]):
    """A call, the thread it runs in, and its outcome."""

    def __init__(self, call: Callable[[], T], name: str) -> None:
        self._call = call
        self._name = name
        self._value: T
        self._error: BaseException | None = None
        # Set when there is an outcome, or when nobody waits for one any more.
        self.released = threading.Event()

    def supervise(self) -> None:
        """Run in one of anyio's worker threads: start the work in a thread of its own and wait for it.

        Python joins anyio's workers when it exits, so a tool that never returned would keep the process alive
        for ever if it ran in one. It runs in a daemon thread; the worker only waits, and can be released.
        The context is copied here, where anyio has already removed the marks of the event loop from it.
        """
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(self._work,), name=self._name, daemon=True).start()
        self.released.wait()

    def _work(self) -> None:
        try:
            self._value = self._call()
        except BaseException as error:  # whatever it is belongs to the caller, who raises it
            self._error = error
        finally:
            self.released.set()

    def outcome(self) -> T:
        if self._error is not None:
            raise self._error
        return self._value


async def run_in_thread(call: Callable[[], T], *, name: str) -> T:
    """The result of `call`, made in a daemon thread; a cancelled caller gets control back at once.

    A thread cannot be stopped: after a cancellation it runs on until `call` returns; its outcome is dropped.
    """
    work = _Work(call, name)
    # A limiter of its own: abandoned tools must not use up the threads that other code shares.
    limiter = anyio.CapacityLimiter(1)
    try:
        await anyio.to_thread.run_sync(work.supervise, abandon_on_cancel=True, limiter=limiter)
    finally:
        work.released.set()
    return work.outcome()
