"""Many generations on one model: what is ready is read in one pass, and everyone has a turn.

The policy. Generations queue in the order of their arrival. A pass takes from the front of the queue up to `max_batch`
generations, each with the next tokens that it needs: the token chosen last, or a portion of its prompt. Portions of
prompts have a bound for the whole pass (`portion` tokens): one that does not fit keeps its place. Who was served goes
to the end. So the first of the queue is served in each pass, and among n generations each is served within n passes,
whatever the others ask; a long prompt delays the others by one portion at a time.

Nobody owns the work: there is no task in the background. One of the waiting callers drives, one pass after the other,
each in a worker thread, until its own generation has ended; then another one goes on. A caller that is cancelled
leaves after the pass at work, which a thread cannot be stopped in, and its generation leaves the queue with it. What
goes wrong in one generation is raised to its own caller; where a pass over several fails, each is read alone.

Each event loop has a queue of its own. Loops take turns by a lock, pass after pass, so a loop that stands still
delays no other.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Protocol

import anyio
import anyio.to_thread
import numpy as np
import numpy.typing as npt
from anyio.lowlevel import RunVar

from agentkit.models.base import TokenRecord

Scores = npt.NDArray[np.float32]
# Seconds between looks at a thread that cannot be waited for otherwise.
_LOOK = 0.001


class Engine(Protocol):
    """Passes of a model; called by one thread at a time."""

    @property
    def max_batch(self) -> int:
        """Generations that a pass may hold."""
        ...

    @property
    def portion(self) -> int:
        """Tokens of prompts that a pass may hold."""
        ...

    def read(self, parts: Sequence[tuple[Any, Sequence[int]]]) -> Sequence[Scores]:
        """Read tokens after those of each reader; the scores of what follows. Where it fails, no reader has changed."""
        ...


class Job(Protocol):
    """A generation, as far as its passes go. All but its creation happens in a worker thread."""

    def start(self) -> None:
        """Find out what is to be read; called once, before anything else."""
        ...

    @property
    def finished(self) -> bool:
        """Nothing more is to be read."""
        ...

    @property
    def reader(self) -> Any:
        """What the generation has read, as the engine keeps it."""
        ...

    def next(self) -> Sequence[int]:
        """The tokens to be read next; not empty while unfinished."""
        ...

    def take(self, read: int, scores: Scores, model_s: float) -> TokenRecord | None:
        """So many of the next tokens have been read: take the scores of what follows, and the seconds it took.

        Returns the token that was chosen, if one was.
        """
        ...


@dataclass(eq=False, slots=True)
class _Entry:
    """A generation in the queue of its loop. What its own work raises is kept for its own caller."""

    job: Job
    # What the caller has not heard of yet.
    records: deque[TokenRecord] = field(default_factory=deque)
    error: BaseException | None = None
    started: bool = False
    ended: bool = False
    # Set when there is something to hear of, or a driver is wanted.
    news: anyio.Event = field(default_factory=anyio.Event)

    def wake(self) -> None:
        news, self.news = self.news, anyio.Event()
        news.set()

    def fail(self, error: Exception) -> None:
        self.error, self.ended = error, True

    def start(self) -> None:
        self.started = True
        try:
            self.job.start()
            self.ended = self.job.finished
        except Exception as error:
            self.fail(error)

    def next(self) -> Sequence[int]:
        try:
            return self.job.next()
        except Exception as error:
            self.fail(error)
            return ()

    def take(self, read: int, scores: Scores, model_s: float) -> None:
        try:
            record = self.job.take(read, scores, model_s)
            if record is not None:
                self.records.append(record)
            self.ended = self.job.finished
        except Exception as error:
            self.fail(error)


class _Queue:
    """The generations of one event loop."""

    def __init__(self) -> None:
        self.entries: list[_Entry] = []
        # Apart from the loop's own, which tools that hang may have used up.
        self.limiter = anyio.CapacityLimiter(1)
        # Of the pass at work; set when its thread is done.
        self.done: threading.Event | None = None


class Batcher:
    """The turnstile of a model that any number of generations share, also from several event loops."""

    def __init__(self, engine: Callable[[], Engine], *, name: str) -> None:
        """`engine` is called in the worker threads, under the lock."""
        self._engine = engine
        self._queues: RunVar[_Queue] = RunVar(f"generations of {name}")
        self._lock = threading.Lock()

    async def run(self, job: Job, on_token: Callable[[TokenRecord], None] | None = None) -> None:
        """See `job` to its end among the others; `on_token` is called here. Raises what the job's own work raised."""
        queue = self._queue()
        entry = _Entry(job)
        queue.entries.append(entry)
        try:
            while True:
                # Asked first: a thread at work may add a last token at any time.
                ended = entry.ended
                while entry.records:
                    record = entry.records.popleft()
                    if on_token is not None:
                        on_token(record)
                if ended and entry.error is not None:
                    raise entry.error
                if ended:
                    return
                if queue.done is None:
                    await self._drive(queue)
                else:
                    await entry.news.wait()
        finally:
            queue.entries.remove(entry)
            try:
                # The pass at work may be about to go on with this generation.
                if queue.done is not None and not entry.ended:
                    await _settled(queue.done)
            finally:
                if queue.entries and queue.done is None:
                    queue.entries[0].wake()

    def _queue(self) -> _Queue:
        try:
            return self._queues.get()
        except LookupError:
            queue: _Queue = _Queue()
            self._queues.set(queue)
            return queue

    async def _drive(self, queue: _Queue) -> None:
        """One pass. However this is cancelled, no thread is at work on it when it returns."""
        entries, done = tuple(queue.entries), threading.Event()
        # Taken by the thread that begins, or by us when none shall begin any more.
        claim = threading.Lock()
        served: list[_Entry] = []

        def work() -> None:
            if not claim.acquire(blocking=False):
                return
            try:
                with self._lock:
                    served.extend(_pass(self._engine(), entries))
            finally:
                done.set()

        queue.done = done
        try:
            await anyio.to_thread.run_sync(work, limiter=queue.limiter)
        finally:
            try:
                if claim.acquire(blocking=False):
                    # Cancelled before a thread began.
                    done.set()
                else:
                    # Where asyncio itself cancels a task, the thread goes on.
                    await _settled(done)
            finally:
                queue.done = None
                late = [entry for entry in served if entry in queue.entries]
                queue.entries[:] = [entry for entry in queue.entries if entry not in late] + late
                for entry in entries:
                    entry.wake()


async def _settled(done: threading.Event) -> None:
    """Wait for a thread, even when cancelled; the cancellation is raised afterwards."""
    kept: BaseException | None = None
    while not done.is_set():
        try:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(_LOOK)
        except anyio.get_cancelled_exc_class() as error:
            # Of asyncio itself, which knows no shield.
            kept = error
    if kept is not None:
        raise kept


# In a worker thread, under the lock


def _pass(engine: Engine, entries: Sequence[_Entry]) -> list[_Entry]:
    """Serve the first of the entries; returns the ones that were."""
    for entry in entries:
        if not entry.started:
            entry.start()
    chosen = _chosen(engine, [entry for entry in entries if not entry.ended])
    if chosen:
        _read(engine, chosen)
    return [entry for entry, _ in chosen]


def _chosen(engine: Engine, waiting: Sequence[_Entry]) -> list[tuple[_Entry, Sequence[int]]]:
    """Who is served next, and the tokens that are read for each."""
    chosen: list[tuple[_Entry, Sequence[int]]] = []
    prompts = 0
    for entry in waiting:
        # Portions end at the same places in any company, so that equal prompts are read equally.
        tokens = entry.next()[: engine.portion]
        if not tokens:
            continue
        if len(tokens) > 1:
            if prompts and prompts + len(tokens) > engine.portion:
                continue
            prompts += len(tokens)
        chosen.append((entry, tokens))
        if len(chosen) == engine.max_batch:
            break
    return chosen


def _read(engine: Engine, chosen: Sequence[tuple[_Entry, Sequence[int]]]) -> None:
    """One pass over all of them; where that fails, one for each."""
    begun = perf_counter()
    try:
        scores = engine.read([(entry.job.reader, tokens) for entry, tokens in chosen])
    except Exception as error:
        if len(chosen) == 1:
            chosen[0][0].fail(error)
        else:
            for one in chosen:
                _read(engine, [one])
        return
    seconds = (perf_counter() - begun) / len(chosen)
    for (entry, tokens), own in zip(chosen, scores, strict=True):
        entry.take(len(tokens), own, seconds)
