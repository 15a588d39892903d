"""A run as a stream of events: order, errors, leaving early, a slow reader."""

from __future__ import annotations

import anyio
import pytest

from agentkit import (
    Agent,
    Event,
    RunEnded,
    RunStarted,
    StepProposed,
    TokenGenerated,
    ToolEnded,
    ToolFailed,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from agentkit.models import ScriptedModel
from registry import Registry

BACKENDS = pytest.mark.parametrize("backend", ["asyncio", "trio"])


class Desk:
    """Tools, and what became of them."""

    def __init__(self) -> None:
        self.calls = 0
        self.cancelled = 0

    def agent(self, *replies: str) -> Agent:
        registry = Registry()

        @registry.tool
        async def add(a: int, b: int) -> int:
            """Add."""
            self.calls += 1
            return a + b

        @registry.tool
        def explode() -> int:
            """Raise."""
            raise ZeroDivisionError("no fuse")

        @registry.tool
        async def hang() -> int:
            """Never return."""
            try:
                await anyio.sleep_forever()
            except BaseException:
                self.cancelled += 1
                raise
            raise AssertionError

        return Agent(ScriptedModel(replies), tools=registry, nested=True)


@BACKENDS
def test_the_events_of_a_run(backend: str) -> None:
    async def main() -> list[Event]:
        async with Desk().agent("let n = add(add(1, 2), 3);", "return n;").stream("Add.") as events:
            heard = [event async for event in events]
            assert events.result.output == 6
        return heard

    heard = anyio.run(main, backend=backend)
    kinds = [type(event) for event in heard if not isinstance(event, TokenGenerated)]
    pair = [ToolStarted, ToolEnded]
    first, second = [TurnStarted, StepProposed, *pair, *pair, TurnEnded], [TurnStarted, StepProposed, TurnEnded]
    assert kinds == [RunStarted, *first, *second, RunEnded]
    ended = [event for event in heard if isinstance(event, ToolEnded)]
    assert [(one.tool, dict(one.arguments), one.result) for one in ended] == [
        ("add", {"a": 1, "b": 2}, 3),
        ("add", {"a": 3, "b": 3}, 6),
    ]
    assert all(one.seconds >= 0 and one.error is None and one.turn == 1 for one in ended)


@BACKENDS
def test_what_ended_the_run_is_raised_at_the_end(backend: str) -> None:
    heard: list[Event] = []

    async def main() -> None:
        async with Desk().agent("let n = explode();").stream("Fail.") as events:
            async for event in events:
                heard.append(event)

    with pytest.raises(ToolFailed, match="no fuse"):
        anyio.run(main, backend=backend)
    assert isinstance(heard[-1], RunEnded) and isinstance(heard[-1].error, ToolFailed)
    failed = next(event for event in heard if isinstance(event, ToolEnded))
    assert failed.error is not None and failed.result is None


@BACKENDS
def test_leaving_the_block_cancels_the_run(backend: str) -> None:
    desk, also = Desk(), list[Event]()

    async def main() -> None:
        async with desk.agent("let n = hang();").stream("Hang.", on_event=also.append) as events:
            async for event in events:
                if isinstance(event, ToolStarted):
                    break

    anyio.run(main, backend=backend)
    assert desk.cancelled == 1
    assert isinstance(also[-1], RunEnded) and isinstance(also[-2], ToolEnded) and also[-2].error is not None


@BACKENDS
def test_what_the_block_raises_comes_out_as_it_is(backend: str) -> None:
    desk = Desk()

    async def main() -> None:
        async with desk.agent("let n = hang();").stream("Hang.") as events:
            async for event in events:
                if isinstance(event, ToolStarted):
                    raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        anyio.run(main, backend=backend)
    assert desk.cancelled == 1


@BACKENDS
def test_a_slow_reader_holds_the_run_up(backend: str) -> None:
    desk = Desk()
    replies = [f"let n{place} = add({place}, {place});" for place in range(1, 9)]

    async def main() -> int:
        most = 0
        async with desk.agent(*replies, "return n1;").stream("Add.", buffer=4) as events:
            await anyio.wait_all_tasks_blocked()
            assert desk.calls == 1
            async for _event in events:
                await anyio.sleep(0)
                most = max(most, events.waiting)
            assert events.result.output == 2
        return most

    # A turn has some twenty events here.
    assert anyio.run(main, backend=backend) < 30
    assert desk.calls == 8
