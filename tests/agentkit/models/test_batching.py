"""Generations in one queue: who shares a pass, who waits how long, and what one leaves behind that fails or goes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkit.models import TokenRecord
from agentkit.models.batching import Batcher

BACKENDS = ["asyncio", "trio"]
BAD = 666


def record(token: int) -> TokenRecord:
    return TokenRecord(token=token, text=b"", entropy=0.0, first_choice=True, rejected=0, logprob=0.0)


@dataclass
class Engine:
    """Adds up what is read; the score is the sum so far. A bad token breaks the pass."""

    max_batch: int = 4
    portion: int = 8
    passes: list[list[tuple[str, int]]] = field(default_factory=list)
    threads: set[int] = field(default_factory=set)
    at_work: int = 0
    seconds: float = 0.0

    def read(self, parts: Sequence[tuple[Any, Sequence[int]]]) -> list[npt.NDArray[np.float32]]:
        self.at_work += 1
        assert self.at_work == 1
        try:
            time.sleep(self.seconds)
            self.threads.add(threading.get_ident())
            self.passes.append([(job.name, len(tokens)) for job, tokens in parts])
            if any(BAD in tokens for _, tokens in parts):
                raise IndexError(BAD)
            for job, tokens in parts:
                job.read.extend(tokens)
            return [np.array([sum(job.read)], dtype=np.float32) for job, _ in parts]
        finally:
            self.at_work -= 1


@dataclass
class Job:
    """Reads its prompt, then chooses tokens: each is one more than the sum of what was read, modulo 7."""

    name: str
    prompt: list[int]
    count: int
    read: list[int] = field(default_factory=list)
    chosen: list[int] = field(default_factory=list)
    pending: list[int] = field(default_factory=list)
    fails: Callable[[Job], bool] = lambda job: False
    starts: bool = True

    @property
    def reader(self) -> Job:
        return self

    @property
    def finished(self) -> bool:
        return len(self.chosen) >= self.count

    def start(self) -> None:
        if not self.starts:
            raise ValueError(f"{self.name} cannot start")
        self.pending = self.prompt

    def next(self) -> Sequence[int]:
        return self.pending

    def take(self, read: int, scores: npt.NDArray[np.float32], model_s: float) -> TokenRecord | None:
        self.pending = self.pending[read:]
        if self.fails(self):
            raise ValueError(f"{self.name} fails")
        if self.pending:
            return None
        self.chosen.append(int(scores[0]) % 7 + 1)
        self.pending = self.chosen[-1:]
        return record(self.chosen[-1])

    def expected(self) -> list[int]:
        read, chosen = list(self.prompt), list[int]()
        while len(chosen) < self.count:
            chosen.append(sum(read) % 7 + 1)
            read.append(chosen[-1])
        return chosen


async def all_of(batcher: Batcher, jobs: Sequence[Job]) -> dict[str, Any]:
    """Run them all at once: what each caller heard, or the error it got."""
    heard: dict[str, Any] = {}

    async def one(job: Job) -> None:
        told: list[int | None] = []
        try:
            await batcher.run(job, lambda token: told.append(token.token))
        except (ValueError, IndexError) as error:
            heard[job.name] = error
        else:
            heard[job.name] = told

    async with anyio.create_task_group() as group:
        for job in jobs:
            group.start_soon(one, job)
    return heard


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.tuples(st.integers(1, 30), st.integers(0, 6)), min_size=1, max_size=9),
    max_batch=st.integers(1, 5),
    portion=st.integers(2, 12),
    backend=st.sampled_from(BACKENDS),
)
def test_everyone_is_served_in_turn(sizes: list[tuple[int, int]], max_batch: int, portion: int, backend: str) -> None:
    engine = Engine(max_batch=max_batch, portion=portion)
    jobs = [Job(str(i), [i + 1] * prompt, count) for i, (prompt, count) in enumerate(sizes)]
    heard = anyio.run(all_of, Batcher(lambda: engine, name="sums"), jobs, backend=backend)
    assert heard == {job.name: job.expected() for job in jobs}
    for job in jobs:
        # In any company a prompt is cut at the same places, and nobody waits for more passes than there are others.
        own = [dict(one).get(job.name) for one in engine.passes]
        served = [place for place, size in enumerate(own) if size]
        prompt = [min(portion, len(job.prompt) - begun) for begun in range(0, len(job.prompt), portion)]
        assert [own[place] for place in served] == (prompt + [1] * (job.count - 1) if job.count else [])
        assert all(then - now <= len(jobs) for now, then in zip([-1, *served], served, strict=False))
    for one in engine.passes:
        assert 1 <= len(one) <= max_batch
        assert len(dict(one)) == len(one)
        assert sum(size for _, size in one if size > 1) <= portion


def test_a_pass_is_shared() -> None:
    engine = Engine()
    jobs = [Job(str(i), [i + 1], 10) for i in range(4)]
    anyio.run(all_of, Batcher(lambda: engine, name="sums"), jobs)
    # The first to come does not wait for the others.
    assert len(engine.passes) <= 12
    assert threading.get_ident() not in engine.threads


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("odd", "words"),
    [
        (Job("odd", [1], 5, starts=False), "odd cannot start"),
        (Job("odd", [1], 5, fails=lambda job: len(job.chosen) == 3), "odd fails"),
        (Job("odd", [1, BAD], 5), "666"),
    ],
    ids=["start", "take", "pass"],
)
def test_what_fails_fails_alone(odd: Job, words: str, backend: str) -> None:
    engine = Engine()
    odd = Job(odd.name, odd.prompt, odd.count, fails=odd.fails, starts=odd.starts)
    jobs = [Job("0", [3], 6), odd, Job("1", [1, 2, 3], 8), Job("2", [9] * 20, 2)]
    heard = anyio.run(all_of, Batcher(lambda: engine, name="sums"), jobs, backend=backend)
    error = heard.pop("odd")
    assert isinstance(error, Exception) and words in str(error)
    assert heard == {job.name: job.expected() for job in jobs if job is not odd}


def test_a_model_that_cannot_be_had_is_told_to_everyone() -> None:
    def engine() -> Engine:
        raise ValueError("no memory")

    heard = anyio.run(all_of, Batcher(engine, name="none"), [Job(str(i), [1], 2) for i in range(5)])
    assert [str(error) for error in heard.values()] == ["no memory"] * 5
    assert len(set(map(id, heard.values()))) == 5


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("leaver", range(4))
@pytest.mark.parametrize("way", ["cancelled", "raising"])
def test_who_leaves_disturbs_nobody(leaver: int, way: str, backend: str) -> None:
    engine = Engine(seconds=0.001)
    batcher = Batcher(lambda: engine, name="sums")
    jobs = [Job(str(i), [i + 1], 3 + 4 * i) for i in range(4)]
    jobs[leaver].count = 100_000
    heard: dict[str, list[int | None]] = {job.name: [] for job in jobs}

    async def main() -> None:
        async def one(job: Job, scope: anyio.CancelScope) -> None:
            def hear(token: TokenRecord) -> None:
                heard[job.name].append(token.token)
                if job is jobs[leaver] and len(heard[job.name]) == 2:
                    if way == "raising":
                        raise KeyError(job.name)
                    scope.cancel()

            with scope:
                try:
                    await batcher.run(job, hear)
                except KeyError:
                    assert way == "raising"
                # Once the caller has its word, nothing goes on with the job.
                if job is jobs[leaver]:
                    count = len(job.chosen)
                    with anyio.CancelScope(shield=True):
                        await anyio.sleep(0.02)
                    assert len(job.chosen) == count <= 4

        async with anyio.create_task_group() as group:
            for job in jobs:
                group.start_soon(one, job, anyio.CancelScope())

    anyio.run(main, backend=backend)
    assert {job.name: heard[job.name] for job in jobs if job is not jobs[leaver]} == {
        job.name: job.expected() for job in jobs if job is not jobs[leaver]
    }


def test_tasks_that_asyncio_cancels_wait_for_the_thread() -> None:
    engine = Engine(seconds=0.005)
    batcher = Batcher(lambda: engine, name="sums")

    async def main() -> None:
        jobs = [Job(str(i), [i + 1], 100_000 if i < 3 else 30) for i in range(4)]
        tasks = [asyncio.ensure_future(batcher.run(job)) for job in jobs]
        await asyncio.sleep(0.02)
        for task in tasks[:3]:
            task.cancel()
            await asyncio.sleep(0)
            # Twice, as an impatient caller does.
            task.cancel()
        for task in tasks[:3]:
            with pytest.raises(asyncio.CancelledError):
                await task
        counts = [len(job.chosen) for job in jobs[:3]]
        await tasks[3]
        assert [len(job.chosen) for job in jobs[:3]] == counts
        assert jobs[3].chosen == jobs[3].expected()

    asyncio.run(main())


@pytest.mark.parametrize("backend", BACKENDS)
def test_all_leave_at_once(backend: str) -> None:
    engine = Engine()
    batcher = Batcher(lambda: engine, name="sums")

    async def main() -> None:
        for ticks in range(12):
            # Also while a thread is asked for that never begins.
            with anyio.fail_after(5):
                async with anyio.create_task_group() as group:
                    for i in range(3):
                        group.start_soon(batcher.run, Job(str(i), [1], 100_000))
                    for _ in range(ticks):
                        await anyio.lowlevel.checkpoint()
                    group.cancel_scope.cancel()
        last = Job("last", [1], 4)
        await batcher.run(last)
        assert last.chosen == last.expected()

    anyio.run(main, backend=backend)


def test_event_loops_take_turns() -> None:
    engine = Engine(seconds=0.001)
    batcher = Batcher(lambda: engine, name="sums")
    jobs = {name: [Job(f"{name} {i}", [i + 1], 20) for i in range(3)] for name in (*BACKENDS, "asyncio too")}
    heard: dict[str, dict[str, Any]] = {}

    gate = threading.Barrier(len(jobs))

    async def together(name: str) -> dict[str, Any]:
        gate.wait()  # until all loops run
        return await all_of(batcher, jobs[name])

    def loop(name: str) -> None:
        heard[name] = anyio.run(together, name, backend=name.split()[0])

    threads = [threading.Thread(target=loop, args=(name,)) for name in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heard == {name: {job.name: job.expected() for job in some} for name, some in jobs.items()}
    whose = [one[0][0].rsplit(" ", 1)[0] for one in engine.passes]
    # None of them is done before another one begins.
    assert all(whose.index(name) < 20 for name in jobs)
