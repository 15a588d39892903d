"""MCP both ways: a registry survives the trip over our server and client, and nothing is left when a server fails."""

from __future__ import annotations

import datetime
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentkit import Agent
from agentkit.connect import (
    ConnectError,
    HttpServer,
    McpLost,
    McpRefused,
    McpResultError,
    McpSchemaError,
    McpTimeout,
    McpUnreachable,
    RegistryNotFound,
    StdioServer,
    find_registry,
    mcp_server,
    mcp_tools,
)
from agentkit.connect.mcp_server import serve_http
from agentkit.connect.values import HANDLES, Handles
from agentkit.models import ScriptedModel
from episodes import Episode
from registry import INT, HandleType, MismatchError, ModelRetry, Registry, ToolExecutionError, builtin
from tests.agentkit.connect.served import registry as served

pytest.importorskip("mcp", reason="connections need the extra mcp")
import mcp_types as types
from mcp.server import Server

SERVED = Path(__file__).with_name("served.py")


def children() -> set[int]:
    """The processes that this one has started and that have not ended."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = entry.read_text().rpartition(") ")[2].split()[:2]
        except OSError:
            continue  # it has just ended
        if int(parent) == os.getpid() and state != "Z":
            found.add(int(entry.parent.name))
    return found


def in_process(check: Callable[[Registry], Any], registry: Registry | None = None, **options: Any) -> None:
    """Run a check on a registry that has gone through our server and our client, without a process between."""

    async def main() -> None:
        with registry or served() as source:
            async with mcp_tools(mcp_server(source), **options) as found:
                assert not found.refused
                await check(found.registry)

    anyio.run(main)


def test_signatures_survive_the_trip() -> None:
    async def check(found: Registry) -> None:
        with served() as source:
            assert [tool.signature for tool in found.values()] == [tool.signature for tool in source.values()]
            assert [tool.description for tool in found.values()] == [tool.description for tool in source.values()]
        assert found["write"].parameter("text").description == "What it says."
        # What only tools can make stays so: no text forges it.
        for name in ("docs", "NoteId"):
            assert isinstance(found.find_type(name), HandleType)

    in_process(check)


def test_values_survive_the_trip() -> None:
    async def check(found: Registry) -> None:
        note = await found["write"].call({"text": "hi", "colour": "blue", "due": datetime.date(2030, 1, 2)})
        kind = found["write"].returns
        assert kind.read(note, "text") == "hi"  # type: ignore[union-attr]
        assert kind.read(note, "colours") == ["blue"]  # type: ignore[union-attr]
        assert kind.read(note, "due") == datetime.date(2030, 1, 2)  # type: ignore[union-attr]
        identifier = kind.read(note, "id")  # type: ignore[union-attr]
        assert await found["read"].call({"id": identifier}) == "note n2"
        assert len(await found["notes"].call({"count": 3})) == 3  # type: ignore[arg-type]
        docs = await found["search"].call({"query": "aurora"})
        with builtin() as local:
            assert await found["count"].call({"docs": docs}) == len(local["search"].function(query="aurora"))

    in_process(check)


def test_what_a_tool_reports_is_told_to_the_model() -> None:
    async def check(found: Registry) -> None:
        for name, arguments, told in (
            ("notes", {"count": 10}, "at most 9"),
            ("broken", {"n": 3}, "out of 3"),
        ):
            with pytest.raises(ModelRetry, match=told):
                await found[name].call(arguments)

    in_process(check)


def test_an_episode_is_solved_with_tools_of_a_server() -> None:
    async def main() -> None:
        replies = ['let d = search("aurora");', "let n = count(d);", "return n;"]
        with builtin() as source:
            expected = len(source["search"].function(query="aurora"))
            async with mcp_tools(mcp_server(source)) as found:
                episode = Episode(name="e", prompt="How many?", output_type=INT, expected=expected)
                result = await Agent(ScriptedModel(replies), tools=found.registry).run(episode)
        assert result.grade is not None and result.grade.passed

    anyio.run(main)


# Servers of others

STRING = {"type": "object", "properties": {"s": {"type": "string"}}, "required": ["s"]}


def other(answer: Any, *tools: types.Tool) -> Any:
    """A server that lists these tools and gives this answer."""

    async def list_tools(context: Any, parameters: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=list(tools))

    async def call_tool(context: Any, parameters: Any) -> types.CallToolResult:
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    return Server("other", on_list_tools=list_tools, on_call_tool=call_tool)


def text(*texts: str, **more: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=one) for one in texts], **more)


def tool_of(name: str, schema: dict[str, Any] = STRING, **more: Any) -> types.Tool:
    return types.Tool(name=name, input_schema=schema, **more)


def test_a_tool_without_an_output_schema_gives_a_string() -> None:
    async def main() -> None:
        async with mcp_tools(other(text("a", "b"), tool_of("say-it"))) as found:
            assert found.registry["say_it"].signature == "say_it(s: string) -> string"
            assert await found.registry["say_it"].call({"s": "x"}) == "a\nb"

    anyio.run(main)


def test_structured_results_have_the_types_of_the_output_schema() -> None:
    number = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

    async def main() -> None:
        answer = text("ignored", structured_content={"n": 3, "more": True})
        async with mcp_tools(other(answer, tool_of("get", output_schema=number))) as found:
            get = found.registry["get"]
            assert get.returns.name == "get_result"
            assert get.returns.read(await get.call({"s": "x"}), "n") == 3  # type: ignore[union-attr]

    anyio.run(main)


def test_unsupported_schemas_are_named_and_harm_no_other_tool() -> None:
    union = {"type": "object", "properties": {"x": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}}
    server = other(text("a"), tool_of("good"), tool_of("bad", union), tool_of("good", STRING))

    async def main() -> None:
        async with mcp_tools(server) as found:
            assert list(found.registry) == ["good"]
            assert set(found.refused) == {"bad", "good"}
            assert "#/properties/x/anyOf" in found.refused["bad"]
            assert "exists" in found.refused["good"]
        with pytest.raises(McpSchemaError, match="bad"):
            async with mcp_tools(server, strict=True):
                pass

    anyio.run(main)


PICTURE = types.CallToolResult(content=[types.ImageContent(type="image", data="AA==", mime_type="image/png")])
# what the server answers, the error, what it says
WRONG = [
    (PICTURE, McpResultError, "gave image"),
    (RuntimeError("inside"), McpRefused, "failed"),
]


@pytest.mark.parametrize(("answer", "kind", "told"), WRONG)
def test_wrong_answers_are_typed_errors(answer: Any, kind: type[Exception], told: str) -> None:
    async def main() -> None:
        async with mcp_tools(other(answer, tool_of("t"))) as found:
            with pytest.raises(ToolExecutionError, match=told) as caught:
                await found.registry["t"].call({"s": "x"})
            assert isinstance(caught.value.__cause__, kind)
            assert "other" in str(caught.value)

    anyio.run(main)


def test_an_error_in_the_block_is_itself_and_not_a_group() -> None:
    async def main() -> None:
        with pytest.raises(KeyError, match="mine"):
            async with mcp_tools(other(text("a"), tool_of("t"))):
                raise KeyError("mine")

    anyio.run(main)


# Processes

OURS = StdioServer(command=sys.executable, args=("-m", "agentkit", "serve-mcp", f"{SERVED}:registry"))


@pytest.mark.parametrize("backend", ["asyncio", pytest.param("trio", marks=pytest.mark.slow)])
def test_a_server_of_its_own_process_from_its_start_to_its_death(backend: str) -> None:
    before = children()

    async def main() -> None:
        async with mcp_tools(OURS, timeout=60) as found:
            tools = found.registry
            assert len(children() - before) == 1
            note = await tools["write"].call({"text": "hi"})
            assert tools["write"].returns.read(note, "text") == "hi"  # type: ignore[union-attr]
            # A cancelled call gives control back at once, and the next one is served.
            with anyio.move_on_after(0.3) as scope:
                await tools["hang"].call({"seconds": 30.0})
            assert scope.cancelled_caught
            assert await tools["read"].call({"id": tools["write"].returns.read(note, "id")}) == "note n2"  # type: ignore[union-attr]
            with pytest.raises(ToolExecutionError) as caught:
                await tools["die"].call({"status": 3})
            assert isinstance(caught.value.__cause__, McpLost)
            with pytest.raises(ToolExecutionError) as caught:
                await tools["write"].call({"text": "anybody?"})
            assert isinstance(caught.value.__cause__, McpLost)

    anyio.run(main, backend=backend)
    assert children() == before


@pytest.mark.slow
def test_a_cancelled_block_leaves_no_process() -> None:
    before = children()

    async def main() -> None:
        with anyio.move_on_after(30) as scope:
            async with mcp_tools(OURS, timeout=60) as found:
                scope.cancel()
                await found.registry["hang"].call({"seconds": 30.0})

    anyio.run(main)
    assert children() == before


SILENT = "import sys, time\nprint('booting', file=sys.stderr, flush=True)\ntime.sleep(60)"
UNREACHABLE: list[Any] = [
    (StdioServer(command="/no/such/program"), McpUnreachable, "No such file"),
    (StdioServer(command=sys.executable, args=("-c", "raise SystemExit('no licence')")), McpUnreachable, "no licence"),
    pytest.param(
        StdioServer(command=sys.executable, args=("-c", SILENT)), McpTimeout, "booting", marks=pytest.mark.slow
    ),
]


@pytest.mark.parametrize(("server", "kind", "told"), UNREACHABLE)
def test_servers_that_cannot_be_reached(server: StdioServer, kind: type[Exception], told: str) -> None:
    before = children()

    async def main() -> None:
        with pytest.raises(kind, match=told):
            async with mcp_tools(server, timeout=1):
                pass

    anyio.run(main)
    assert children() == before


def test_streamable_http() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    async def main() -> None:
        with served() as source:
            async with anyio.create_task_group() as group:
                group.start_soon(serve_http, mcp_server(source), "127.0.0.1", port)
                while await anyio.to_thread.run_sync(_refused, port):
                    await anyio.sleep(0.02)
                for server in (
                    f"http://127.0.0.1:{port}/mcp",
                    HttpServer(url=f"http://127.0.0.1:{port}/mcp", headers={"X-Test": "1"}),
                ):
                    async with mcp_tools(server) as found:
                        docs = await found.registry["search"].call({"query": "aurora"})
                        assert await found.registry["count"].call({"docs": docs}) == len(
                            source["search"].function(query="aurora")
                        )
                group.cancel_scope.cancel()
        with pytest.raises((McpUnreachable, McpLost)):
            async with mcp_tools(f"http://127.0.0.1:{port}/mcp", timeout=2):
                pass

    anyio.run(main)


def test_a_port_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, served() as source:
        port = taken.getsockname()[1]
        with pytest.raises(ConnectError, match=f"port {port}: Address already in use"):
            anyio.run(serve_http, mcp_server(source), "127.0.0.1", port)


def test_an_interrupt_ends_a_server_that_waits_for_input() -> None:
    command = [sys.executable, "-m", "agentkit", "serve-mcp", "builtin"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        process.stdin.flush()
        assert b'"id":1' in process.stdout.readline(), "it serves"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr.read().endswith(b"agentkit: interrupted\n")


def _refused(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


# What is served


def test_handles_are_kept_up_to_a_limit() -> None:
    kind, handles = HandleType(name="docs", python_type=object), Handles()
    names = [handles.encode(kind, object()) for _ in range(HANDLES + 1)]
    assert handles.decode(kind, names[1]) is not None
    for forged in (names[0], "docs-0", 7):
        with pytest.raises(MismatchError, match="a docs that a tool returned"):
            handles.decode(kind, forged)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("nothing", "write MODULE:NAME"),
        ("no.such.module:x", "No module"),
        ("no/such/file.py:x", "there is no file no/such/file.py"),
        ("tests.agentkit.connect.served:none", "has no attribute"),
        ("tests.agentkit.connect.served:SERVED", "no attribute"),
        ("json:dumps", "missing"),
        ("sys:path", "is a list"),
    ],
)
def test_what_is_no_registry_is_refused(spec: str, told: str) -> None:
    with pytest.raises(RegistryNotFound, match=told):
        find_registry(spec)


@pytest.mark.parametrize("spec", ["builtin", f"{SERVED}:registry", "tests.agentkit.connect.served:registry"])
def test_registries_are_found(spec: str) -> None:
    with find_registry(spec) as found:
        assert "search" in found
