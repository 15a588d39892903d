"""Many runs on one model: each comes to what it would alone, and runs that are cancelled anywhere leave nothing."""

from __future__ import annotations

import gc
import math
import os
import random
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from agentkit import Agent, PromptVariant, RunError, RunResult, StopReason, TokenGenerated, UsageLimits
from agentkit.models import Sampling, TransformersModel
from agentkit.models.packed import Packing
from episodes import Episode
from registry import Registry, tool, type_from_hint
from tests.agentkit.models_toys import byte_level_tokenizer, tiny_llama

TOKENIZER = byte_level_tokenizer()
torch.set_num_threads(1)


class Ticket:
    """What a run has to return, so that it has to call its tool."""


@tool
def block(a: int) -> Ticket:
    """Work in a thread."""
    time.sleep(0.004)
    return Ticket()


@tool
async def hold(a: int) -> Ticket:
    """Hold a socket and a file for a moment."""
    one, other = socket.socketpair()
    with one, other, tempfile.TemporaryFile():
        await anyio.sleep(0.02)
    return Ticket()


@tool
async def spawn(a: int) -> Ticket:
    """Wait for a process."""
    async with await anyio.open_process(["sleep", "0.1"]) as process:
        await process.wait()
    return Ticket()


@tool
async def stuck(a: int) -> Ticket:
    """Never come back."""
    await anyio.sleep_forever()
    raise AssertionError


@tool
def burst(a: int) -> Ticket:
    """Raise an error."""
    raise RuntimeError("the disk is full")


TOOLS = Registry([block, hold, spawn, stuck, burst])


def tiny(**settings: Any) -> TransformersModel:
    return TransformersModel(tiny_llama(len(TOKENIZER), context=8192), TOKENIZER, name="tiny", **settings)


def agent_of(model: TransformersModel, seed: int | None = None, tool_timeout: float = 60.0) -> Agent:
    sampling = Sampling() if seed is None else Sampling(temperature=1.0, seed=seed)
    limits = UsageLimits(turn_limit=3, tokens_per_step=24, tool_timeout=tool_timeout)
    return Agent(model, sampling=sampling, usage_limits=limits, prompt=PromptVariant.ZERO_SHOT)


def episode(tool: str, number: int) -> Episode:
    output = type_from_hint(Ticket)
    return Episode(name=f"{tool} {number}", prompt=f"Cat {number}", registry=TOOLS, tools=(tool,), output_type=output)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_failing_run_never_touches_its_neighbours(backend: str) -> None:
    model = tiny(reproducible=True)
    agent = agent_of(model, tool_timeout=2.0)
    cancelled = episode("hold", 5)
    tasks = [episode(tool, i) for i, tool in enumerate(["hold", "stuck", "block", "burst", "hold"])] + [cancelled]

    async def run(task: Episode) -> tuple[Any, ...]:
        heard = []
        with anyio.CancelScope() as scope:

            def hear(event: object) -> None:
                if isinstance(event, TokenGenerated):
                    heard.append(event.token.token)
                    if task is cancelled and len(heard) == 3:
                        scope.cancel()

            try:
                result = await agent.run(task, on_event=hear)
            except RunError as error:
                result = error.result
            return result.stop_reason, tuple(turn.text for turn in result.turns), tuple(heard)
        return "cancelled", (), tuple(heard[:3])

    async def main() -> None:
        alone = {task.name: await run(task) for task in tasks}
        together: dict[str, tuple[Any, ...]] = {}

        async def one(task: Episode) -> None:
            together[task.name] = await run(task)

        async with anyio.create_task_group() as group:
            for task in tasks:
                group.start_soon(one, task)
        assert together == alone
        stops = [together[task.name][0] for task in tasks]
        assert stops[1] is stops[3] is StopReason.TOOL_FAILED and stops[5] == "cancelled"
        assert {stops[0], stops[2], stops[4]} <= {StopReason.RETURNED, StopReason.LIMIT}

    anyio.run(main, backend=backend)


# What cancelled runs leave


def held() -> Counter[str]:
    """What the process holds: threads, and where the system says so, child processes, sockets and files."""
    found = Counter(threads=threading.active_count())
    files = Path("/proc/self/fd")
    if files.is_dir():
        for entry in files.iterdir():
            # The folder's own is gone by now.
            if entry.is_symlink():
                found["sockets" if os.readlink(entry).startswith("socket:") else "files"] += 1
        for entry in Path("/proc/self/task").iterdir():
            children = entry / "children"
            found["processes"] += len(children.read_text().split()) if children.exists() else 0
    return found


def tasks_alive(backend: str) -> int:
    if backend == "trio":
        import trio

        return trio.lowlevel.current_statistics().tasks_living
    import asyncio

    return len(asyncio.all_tasks())


def cancel_many(model: TransformersModel, backend: str, runs: int, at_once: int = 8) -> Counter[str]:
    """Run so many episodes, each cancelled at a random moment, after a few that are not; how they ended."""
    draw = random.Random(0)
    ended: Counter[str] = Counter()

    async def one(number: int, longest: float) -> None:
        task = episode(draw.choice(["block", "hold", "block", "hold", "spawn"]), number)
        with anyio.move_on_after(draw.uniform(0.0, longest)) as scope:
            try:
                result: RunResult = await agent_of(model, seed=number).run(task)
            except RunError as error:
                # The model may not come to its answer in so few turns.
                result = error.result
            ended[result.stop_reason.value] += 1
        ended["cancelled"] += scope.cancelled_caught

    async def main() -> None:
        assert model.reads_alone is None
        begun = time.perf_counter()
        async with anyio.create_task_group() as group:
            for number in range(at_once):
                group.start_soon(one, number, math.inf)
        # Twice as long, so that some are cancelled in their tools and some come to their end.
        longest = 2 * (time.perf_counter() - begun)
        assert not ended.pop("cancelled")
        ended.clear()
        alive, places = tasks_alive(backend), anyio.CapacityLimiter(at_once)

        async def placed(number: int) -> None:
            async with places:
                await one(number, longest)

        async with anyio.create_task_group() as group:
            for number in range(runs):
                group.start_soon(placed, number)
        assert tasks_alive(backend) == alive
        # Only of those closed last, whose beginnings others may share.
        gc.collect()
        engine = model._engine()
        assert isinstance(engine, Packing) and len(engine._living) <= 2
        # The model is as good as before.
        await one(runs, math.inf)
        assert ended.total() == runs + 1

    anyio.run(main, backend=backend)
    return ended


def settles(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Does it come true in a while? Threads take a moment to end, and trio keeps idle ones for ten seconds."""
    end = time.perf_counter() + seconds
    while not condition() and time.perf_counter() < end:
        time.sleep(0.01)
    return condition()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("runs", [60, pytest.param(1_000, marks=[pytest.mark.slow, pytest.mark.timeout(1_800)])])
def test_runs_cancelled_anywhere_leave_nothing(runs: int, backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    model = tiny(share_prefixes=True)
    cancel_many(model, backend, 2, at_once=2)  # What is imported and kept for good, such as the idle threads of trio.
    before = held()
    ended = cancel_many(model, backend, runs)
    settles(lambda: held() <= before)
    after = held()
    with capsys.disabled():
        print(f"\n{runs} runs on {backend}: {dict(ended)}; held before {dict(before)}, after {dict(after)}")
    assert ended["cancelled"] > runs / 5
    assert after <= before
