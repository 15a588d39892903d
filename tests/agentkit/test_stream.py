"""A run as a stream of events: order, errors, leaving early, a slow reader."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import anyio
import pytest

from agentkit import (
    Agent,
    ConfigurationError,
    Event,
    EventStream,
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
from agentkit.models import FunctionModel, ScriptedModel
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


@BACKENDS
@pytest.mark.parametrize("reply", ["return 1;", "let n = hang();"])
def test_three_tasks_may_enter_read_and_leave(backend: str, reply: str) -> None:
    desk, stack = Desk(), AsyncExitStack()
    streams: list[EventStream] = []
    heard: list[Event] = []

    async def enter() -> None:
        streams.append(await stack.enter_async_context(desk.agent(reply).stream("Go.")))

    async def read() -> None:
        async for event in streams[0]:
            heard.append(event)
            if isinstance(event, ToolStarted):
                break

    async def main() -> None:
        for step in (enter, read, stack.aclose):
            async with anyio.create_task_group() as group:
                group.start_soon(step)

    anyio.run(main, backend=backend)
    assert desk.cancelled == ("hang" in reply)
    assert isinstance(heard[-1], ToolStarted if desk.cancelled else RunEnded)


@BACKENDS
def test_a_deadline_around_the_block_ends_the_run(backend: str) -> None:
    desk = Desk()

    async def main() -> None:
        with anyio.move_on_after(0.1) as scope:
            async with desk.agent("let n = hang();").stream("Hang.") as events:
                async for _event in events:
                    pass
        assert scope.cancelled_caught and desk.cancelled == 1

    anyio.run(main, backend=backend)


@BACKENDS
def test_an_interruption_of_the_run_is_raised_in_the_reader(backend: str) -> None:
    def answer(messages: object, prefix: object) -> str:
        raise KeyboardInterrupt

    async def main() -> None:
        async with Agent(FunctionModel(answer)).stream("Go.") as events:
            async for _event in events:
                pass

    with pytest.raises(KeyboardInterrupt):
        anyio.run(main, backend=backend)


def test_a_reader_cancelled_by_asyncio_leaves_no_task() -> None:
    desk = Desk()

    async def read() -> None:
        async with desk.agent("let n = hang();").stream("Hang.") as events:
            async for _event in events:
                pass

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(read(), 0.1)
        assert desk.cancelled == 1
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


@BACKENDS
def test_another_task_that_still_reads_comes_to_an_end(backend: str) -> None:
    desk, heard = Desk(), list[Event]()

    async def read(stream: EventStream) -> None:
        async for event in stream:
            heard.append(event)

    async def main() -> None:
        async with anyio.create_task_group() as group, desk.agent("let n = hang();").stream("Hang.") as events:
            group.start_soon(read, events)
            await anyio.wait_all_tasks_blocked()

    anyio.run(main, backend=backend)
    assert isinstance(heard[-1], RunEnded) and desk.cancelled == 1


def test_a_buffer_holds_something() -> None:
    async def main(buffer: int) -> int:
        with anyio.fail_after(10):
            async with Desk().agent("return 1;").stream("Go.", buffer=buffer) as events:
                return len([event async for event in events])

    assert anyio.run(main, 1) > 3
    with pytest.raises(ConfigurationError, match="buffer=0"):
        anyio.run(main, 0)
