"""Blocking work on one model: in a worker thread, one piece at a time, whatever event loops ask."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

Result = TypeVar("Result")


class Exclusive:
    """A turnstile before a model that any number of sessions share, also from several event loops."""

    def __init__(self, name: str) -> None:
        # One thread of each event loop waits for the lock, the others queue in the loop, first come first served.
        self._queue: RunVar[anyio.CapacityLimiter] = RunVar(f"work on {name}")
        self._lock = threading.Lock()

    async def run(self, work: Callable[[], Result]) -> Result:
        """Run `work` in a worker thread while nothing else runs here."""

        def alone() -> Result:
            with self._lock:
                return work()

        try:
            queue = self._queue.get()
        except LookupError:
            queue = anyio.CapacityLimiter(1)
            self._queue.set(queue)
        return await anyio.to_thread.run_sync(alone, limiter=queue)
