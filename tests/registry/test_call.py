"""Calling tools: checked both ways, on asyncio and trio, with time limits, errors and cancellation."""

import asyncio
import contextvars
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from registry import ArgumentError, ModelRetry, ResultError, ToolExecutionError, ToolTimeoutError, tool

VARIABLE = contextvars.ContextVar("VARIABLE", default="unset")


@tool
def double(x: float, times: int = 2) -> float:
    return x * times


@tool
async def double_async(x: float, times: int = 2) -> float:
    await anyio.sleep(0)
    return x * times


@tool
def wrong() -> int:
    return "5"  # type: ignore[return-value]


@tool
async def wrong_async() -> list[int]:
    return [1, "2"]  # type: ignore[list-item]


@tool
def broken() -> int:
    raise KeyError("gone")


@tool
async def broken_async() -> int:
    raise KeyError("gone")


@tool
def retry() -> int:
    raise ModelRetry("try a smaller number")


@tool
async def retry_async() -> int:
    raise ModelRetry("try a smaller number")


@tool
async def own_timeout() -> int:
    raise TimeoutError("the server did not answer")


@tool
def number_of_nothing() -> int:
    raise StopIteration


@tool
def where() -> str:
    return f"{threading.current_thread().name} {threading.current_thread().daemon} {VARIABLE.get()}"


@tool
def loop_of_its_own() -> int:
    async def five() -> int:
        await anyio.sleep(0)
        return 5

    return anyio.run(five) + asyncio.run(five())


VALUES: list[tuple[Any, dict[str, object], object]] = [
    (double, {"x": 2}, 4.0),
    (double, {"x": 2.5, "times": 3}, 7.5),
    (double_async, {"x": 2}, 4.0),
    (loop_of_its_own, {}, 10),
]


@pytest.mark.anyio
@pytest.mark.parametrize(("called", "arguments", "value"), VALUES)
async def test_value(called: Any, arguments: dict[str, object], value: object) -> None:
    result = await called.call(arguments, timeout=30)
    assert result == value
    assert type(result) is type(value)


FAILURES: list[tuple[Any, dict[str, object], type[Exception], str]] = [
    (double, {"x": "2"}, ArgumentError, "double: argument 'x': expected float, got '2' (str)"),
    (double_async, {}, ArgumentError, "double_async: argument 'x': missing; give a float"),
    (wrong, {}, ResultError, "wrong: result: expected int, got '5' (str); mend the tool"),
    (wrong_async, {}, ResultError, "wrong_async: result: expected int at [1], got '2' (str)"),
    (broken, {}, ToolExecutionError, "broken: raised KeyError: 'gone'"),
    (broken_async, {}, ToolExecutionError, "broken_async: raised KeyError: 'gone'"),
    (retry, {}, ModelRetry, "try a smaller number"),
    (retry_async, {}, ModelRetry, "try a smaller number"),
    (own_timeout, {}, ToolExecutionError, "own_timeout: raised TimeoutError"),
    (number_of_nothing, {}, ToolExecutionError, "number_of_nothing: raised"),
]


@pytest.mark.anyio
@pytest.mark.parametrize(("called", "arguments", "error", "message"), FAILURES)
async def test_failure(called: Any, arguments: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        await called.call(arguments)
    assert type(raised.value) is error
    assert message in str(raised.value)


@pytest.mark.anyio
async def test_the_original_exception_is_the_cause() -> None:
    for called in (broken, broken_async):
        with pytest.raises(ToolExecutionError) as raised:
            await called.call({})
        assert isinstance(raised.value.__cause__, KeyError)
        assert raised.value.error is raised.value.__cause__


@pytest.mark.anyio
async def test_sync_tools_run_in_a_daemon_thread_within_the_callers_context() -> None:
    VARIABLE.set("set")
    assert await where.call({}) == "tool where True set"


@pytest.mark.anyio
async def test_sync_tools_do_not_hold_up_the_loop() -> None:
    both = threading.Barrier(2, timeout=30)

    @tool
    def meet() -> bool:
        both.wait()
        return True

    async with anyio.create_task_group() as group:
        group.start_soon(meet.call, {})
        group.start_soon(meet.call, {})
    assert both.broken is False


@pytest.mark.anyio
async def test_a_sync_tool_that_never_returns_gives_control_back() -> None:
    release = threading.Event()

    @tool
    def stuck() -> bool:
        return release.wait()

    start = time.monotonic()
    # More of them than the worker threads that anyio lends: abandoned ones must not use these up.
    for _ in range(45):
        with pytest.raises(ToolTimeoutError) as raised:
            await stuck.call({}, timeout=0.01)
    assert time.monotonic() - start < 20
    assert "stuck: no result within 0.01 s" in str(raised.value)
    release.set()


@pytest.mark.anyio
async def test_an_async_tool_is_cancelled_by_its_time_limit() -> None:
    ended: list[str] = []

    @tool
    async def slow() -> bool:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("cancelled")
        return True

    with pytest.raises(ToolTimeoutError):
        await slow.call({}, timeout=0.01)
    assert ended == ["cancelled"]


@pytest.mark.anyio
@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf")])
async def test_time_limits_are_positive(timeout: float) -> None:
    with pytest.raises(ValueError, match="positive number of seconds"):
        await double.call({"x": 1}, timeout=timeout)


def _stuck(release: threading.Event, started: threading.Event) -> Callable[[], bool]:
    def stuck() -> bool:
        started.set()
        return release.wait()

    return stuck


@pytest.mark.anyio
async def test_cancellation_passes_through() -> None:
    release, started = threading.Event(), threading.Event()
    stuck = tool(_stuck(release, started))
    deadline = time.monotonic() + 30
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: stuck.call({}, timeout=60))
            while not started.is_set():
                assert time.monotonic() < deadline
                await anyio.sleep(0.01)
            scope.cancel()
    assert scope.cancelled_caught
    release.set()
    while any(thread.name == "tool stuck" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        await anyio.sleep(0.01)


STUCK_PROGRAM = """
import anyio, threading
from registry import ToolTimeoutError, tool

@tool
def stuck() -> bool:
    return threading.Event().wait()

async def main() -> None:
    try:
        await stuck.call({}, timeout=0.05)
    except ToolTimeoutError as error:
        print(error)

anyio.run(main, backend=BACKEND)
"""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_process_ends_in_spite_of_a_tool_that_never_returns(backend: str) -> None:
    program = STUCK_PROGRAM.replace("BACKEND", repr(backend))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "stuck: no result within 0.05 s; allow more time or make the tool faster\n"
