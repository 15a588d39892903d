"""A registry served as an MCP server, over stdio or streamable HTTP: `agentkit serve-mcp MODULE:REGISTRY`."""

from __future__ import annotations

import argparse
import contextlib
import inspect
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import anyio

from agentkit.connect.errors import ConnectError, RegistryNotFound
from agentkit.connect.values import Handles, input_schema, output_schema
from agentkit.models import MissingExtraError
from registry import MismatchError, ModelRetry, Registry, RegistryError, Tool, builtin


def mcp_server(registry: Registry, *, name: str = "agentkit", timeout: float | None = None) -> Any:
    """A `Server` of the official SDK with the tools of a registry; `timeout` is in seconds for each call.

    Arguments are checked as strictly as in a run. What a caller can mend (an argument of the wrong type, a
    `ModelRetry`) and what a tool raises is told in the result; handles go out as identifiers for later calls.
    """
    server, types = _sdk()
    tools = [
        types.Tool(
            name=tool.name,
            description=tool.description or None,
            input_schema=input_schema(tool),
            output_schema=output_schema(tool),
        )
        for tool in registry.values()
    ]
    handles: Final = Handles()

    async def list_tools(context: Any, parameters: Any) -> Any:
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Any, parameters: Any) -> Any:
        try:
            result = await _call(registry[parameters.name], parameters.arguments or {}, handles, timeout)
        except (RegistryError, ModelRetry) as error:
            return types.CallToolResult(content=[types.TextContent(type="text", text=str(error))], is_error=True)
        text = json.dumps(result["result"], ensure_ascii=False)
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], structured_content=result)

    return server.Server(name, on_list_tools=list_tools, on_call_tool=call_tool)


async def _call(tool: Tool, arguments: dict[str, Any], handles: Handles, timeout: float | None) -> dict[str, object]:
    values = {}
    for name, data in arguments.items():
        kind = tool.parameter(name).type
        try:
            values[name] = handles.decode(kind, data)
        except MismatchError as error:
            raise ModelRetry(f"{tool.name}: argument {name!r}: {error}") from error
    return {"result": handles.encode(tool.returns, await tool.call(values, timeout=timeout))}


def _sdk() -> tuple[Any, Any]:
    try:
        return import_module("mcp.server"), import_module("mcp_types")
    except ModuleNotFoundError as error:
        raise MissingExtraError("mcp", extra="mcp", purpose="serving tools over MCP") from error


def find_registry(spec: str) -> Registry:
    """The registry of `MODULE:NAME` or `FILE.py:NAME`, or a function that makes one; `builtin` has the built-in tools.

    Raises `RegistryNotFound`.
    """
    if spec == "builtin":
        return builtin()
    where, _, name = spec.rpartition(":")
    if not where or not name:
        raise RegistryNotFound(f"{spec!r} names no registry; write MODULE:NAME, FILE.py:NAME or builtin")
    path = Path(where)
    if path.suffix == ".py" and not path.is_file():
        raise RegistryNotFound(f"{spec!r}: there is no file {where}; write MODULE:NAME, FILE.py:NAME or builtin")
    folder, module = (str(path.absolute().parent), path.stem) if path.suffix == ".py" else (str(Path.cwd()), where)
    sys.path.insert(0, folder)
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise RegistryNotFound(f"{spec!r}: {error}") from error
    finally:
        sys.path.remove(folder)
    registry = found() if _makes(found, spec) else found
    if not isinstance(registry, Registry):
        raise RegistryNotFound(f"{spec!r} is a {type(registry).__name__}, not a Registry nor a function that makes one")
    return registry


def _makes(found: object, spec: str) -> bool:
    """Whether it is a function that makes a registry, which needs no arguments for it."""
    if isinstance(found, Registry) or not callable(found):
        return False
    try:
        inspect.signature(found).bind()
    except (TypeError, ValueError) as error:
        raise RegistryNotFound(f"{spec!r} is no registry, and as a function it cannot make one: {error}") from error
    return True


async def serve_stdio(server: Any) -> None:
    """Serve one client over this process's standard streams, until it closes them."""
    stdio = import_module("mcp.server.stdio")
    async with stdio.stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def serve_http(server: Any, host: str, port: int) -> None:
    """Serve any number of clients at http://HOST:PORT/mcp, until cancelled or told to end by a signal.

    Raises `ConnectError` where it can't listen there.
    """
    uvicorn = import_module("uvicorn")
    try:
        # Uvicorn would end the process; what it is given it closes.
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise ConnectError(f"can't listen at {host}, port {port}: {error.strerror}; give another --http") from error
    app = server.streamable_http_app(host=host)
    config = uvicorn.Config(app, host=host, port=port, log_level="warning", timeout_graceful_shutdown=1)
    serving, ended = uvicorn.Server(config), anyio.Event()

    async def serve() -> None:
        # Cancelled, uvicorn would leave its socket open; told to end, it closes everything.
        with anyio.CancelScope(shield=True):
            await serving.serve(sockets=[listening])
        ended.set()

    async with anyio.create_task_group() as group:
        group.start_soon(serve)
        try:
            await ended.wait()
        finally:
            serving.should_exit = True


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port; ports are the numbers from 1 to 65535")
    return int(text)


def add_parser(commands: Any) -> None:
    """Add `serve-mcp` to a parser's subcommands."""
    parser = commands.add_parser("serve-mcp", help="serve the tools of a registry over the Model Context Protocol")
    parser.add_argument(
        "registry", metavar="MODULE:REGISTRY", help="also FILE.py:REGISTRY; builtin: the built-in tools"
    )
    parser.add_argument("--http", type=_port, metavar="PORT", help="serve streamable HTTP there (default: stdio)")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen at (default: this machine alone)")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="for each call (default: none)")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    registry = find_registry(options.registry)
    with contextlib.closing(registry):
        server = mcp_server(registry, timeout=options.timeout)
        if options.http is None:
            with _ending_at_once(registry):
                anyio.run(serve_stdio, server)
        else:
            anyio.run(serve_http, server, options.host, options.http)
    return 0


@contextlib.contextmanager
def _ending_at_once(registry: Registry) -> Iterator[None]:
    """Within the block Ctrl-C ends the process.

    A cancellation would wait for the thread that reads standard input, which nothing but input can stop.
    """

    def end(number: int, frame: object) -> None:
        registry.close()
        print("agentkit: interrupted", file=sys.stderr, flush=True)
        os._exit(128 + number)

    before = signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
