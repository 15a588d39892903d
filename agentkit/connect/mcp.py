"""Tools of MCP servers as typed tools of a registry, through the official SDK: `pip install "aufbau[mcp]"`.

    async with mcp_tools(StdioServer(command="python", args=("server.py",))) as found:
        await Agent(model, tools=found.registry).run(task)

A tool's parameters have the types of its input schema, and its result that of its output schema; a tool without one
gives a string. What a schema says and no type here can, makes that tool, and no other, unusable: `found.refused` names
each with the reason.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import IO, Any, Final

import anyio

from agentkit.connect.errors import (
    McpError,
    McpLost,
    McpRefused,
    McpResultError,
    McpSchemaError,
    McpTimeout,
    McpUnreachable,
)
from agentkit.models import MissingExtraError
from registry import STRING, ModelRetry, Registry, RegistryError, Tool, tool_from_json_schema

# Pages of a tool list; a server that never ends it is not waited for.
_PAGES: Final = 100
# Characters at the end of what a server wrote to its error stream, as an error shows them.
_TAIL: Final = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class StdioServer:
    """A server that is started as a process and ended with the connection.

    Of this process's environment it gets PATH and the like alone; `env` adds to that.
    """

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] | None = None
    cwd: str | None = None

    def __str__(self) -> str:
        text = " ".join(" ".join((self.command, *self.args)).split())
        return text if len(text) <= 100 else f"{text[:100]}…"


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpServer:
    """A server at an address, by streamable HTTP."""

    url: str
    headers: Mapping[str, str] | None = None

    def __str__(self) -> str:
        return self.url


@dataclass(frozen=True, kw_only=True, slots=True)
class McpTools:
    """What a server offers."""

    server: str
    registry: Registry
    refused: Mapping[str, str]
    """The tools that have no type here, with the reason."""


@asynccontextmanager
async def mcp_tools(
    server: StdioServer | HttpServer | str | object,
    *,
    timeout: float = 30.0,
    strict: bool = False,
) -> AsyncIterator[McpTools]:
    """Connect to a server and give its tools; leaving the block ends the server that was started.

    A server is one to start, an address, or a `Server` of the SDK in this process, such as `mcp_server` makes.

    The tools work in this event loop and inside this block. `timeout` is in seconds, for each request; that a server
    is silent takes the SDK 10 s more to find out. With `strict`, a tool that has no type here is an `McpSchemaError`.
    What a server reports as a tool's error is a `ModelRetry`, since the protocol means it for the model. Raises
    `McpError`.
    """
    target = HttpServer(url=server) if isinstance(server, str) else server
    with _unwrapped(), tempfile.TemporaryFile() as log:
        connection = _Connection(target, timeout, log)
        async with connection.opened():
            yield await connection.tools(strict)


class _Connection:
    """A client of the SDK, with errors of ours."""

    def __init__(self, target: Any, timeout: float, log: IO[bytes]) -> None:
        try:
            self._sdk: Final[Any] = import_module("mcp")
            self._http: Final[Any] = import_module("mcp.client.streamable_http")
            self._codes: Final[Any] = import_module("mcp_types")
            self._web: Final[Any] = import_module("httpx2")
        except ModuleNotFoundError as error:
            raise MissingExtraError("mcp", extra="mcp", purpose="connecting to an MCP server") from error
        self._target: Final = target
        self._server: Final = str(target) if isinstance(target, StdioServer | HttpServer) else str(target.name)
        self._timeout: Final = timeout
        self._log: Final = log
        self._client: Any = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """The connection, while the block lasts."""
        async with AsyncExitStack() as stack:
            transport = await self._transport(stack)
            client = self._sdk.Client(transport, read_timeout_seconds=self._timeout)
            # A time limit around this would be left before the client's own tasks are; its requests have one.
            with self._told("no connection", McpUnreachable), _unwrapped():
                self._client = await stack.enter_async_context(client)
            yield

    async def _transport(self, stack: AsyncExitStack) -> Any:
        target = self._target
        if isinstance(target, StdioServer):
            parameters = self._sdk.StdioServerParameters(
                command=target.command, args=list(target.args), env=dict(target.env or {}), cwd=target.cwd
            )
            return self._sdk.stdio_client(parameters, errlog=self._log)
        if not isinstance(target, HttpServer):
            return target
        client = self._web.AsyncClient(headers=dict(target.headers or {}), timeout=self._timeout)
        await stack.enter_async_context(client)
        return self._http.streamable_http_client(target.url, http_client=client)

    async def tools(self, strict: bool) -> McpTools:
        """The server's tools as typed ones."""
        registry, refused = Registry(), dict[str, str]()
        for definition in await self._definitions():
            name = str(definition["name"])
            try:
                registry.add(self._tool(name, definition))
            except RegistryError as error:
                if strict:
                    raise McpSchemaError(str(error), server=self._server) from error
                refused[name] = str(error)
        return McpTools(server=self._server, registry=registry, refused=refused)

    async def _definitions(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        cursor = None
        for _ in range(_PAGES):
            with self._told("it did not list its tools", McpRefused):
                page = await self._client.list_tools(cursor=cursor)
            for tool in page.tools:
                data = tool.model_dump(by_alias=True, mode="json", exclude_none=True)
                found.append({key: data[key] for key in _KEYS if key in data})
            cursor = page.next_cursor
            if cursor is None:
                break
        return found

    def _tool(self, name: str, definition: dict[str, Any]) -> Tool:
        output = definition.get("outputSchema")
        inner = _wrapped(output) if output is not None else None
        returns: Any = STRING if output is None else inner if inner is not None else output
        definition = {key: value for key, value in definition.items() if key != "outputSchema"}
        call = self._caller(name, text=output is None, wrapped=inner is not None)
        return tool_from_json_schema(definition, call, returns=returns, opaque_results=True)

    def _caller(self, name: str, *, text: bool, wrapped: bool) -> Callable[..., Coroutine[Any, Any, object]]:
        async def call(**arguments: object) -> object:
            with self._told(f"tool {name!r} failed", McpRefused):
                result = await self._client.call_tool(name, arguments)
            if result.is_error:
                raise ModelRetry(self._text(name, result) or f"{name} reports an error without saying which")
            if text:
                return self._text(name, result)
            content = result.structured_content
            return content["result"] if wrapped and isinstance(content, dict) and "result" in content else content

        return call

    def _text(self, name: str, result: Any) -> str:
        other = sorted({block.type for block in result.content if block.type != "text"})
        if other:
            raise McpResultError(f"tool {name!r} gave {', '.join(other)}, not text", server=self._server)
        return "\n".join(block.text for block in result.content)

    @contextmanager
    def _told(self, what: str, otherwise: type[McpError]) -> Iterator[None]:
        """Errors of the SDK and of the system as errors of ours, that name the server."""
        server = self._server
        try:
            yield
        except TimeoutError as error:
            raise McpTimeout(f"{what}: no answer within {self._timeout:g} s{self._said()}", server=server) from error
        except self._sdk.MCPError as error:
            lost = otherwise if self._client is None else McpLost
            kinds = {self._codes.CONNECTION_CLOSED: lost, self._codes.REQUEST_TIMEOUT: McpTimeout}
            kind = kinds.get(error.code, otherwise)
            raise kind(f"{what}: {error.message} (code {error.code}){self._said()}", server=server) from error
        except (
            OSError,
            self._web.HTTPError,
            anyio.ClosedResourceError,
            anyio.BrokenResourceError,
            anyio.EndOfStream,
        ) as error:
            kind = otherwise if self._client is None else McpLost
            raise kind(f"{what}: {type(error).__name__}: {error}{self._said()}", server=server) from error
        except (ValueError, RuntimeError) as error:
            raise otherwise(f"{what}: {type(error).__name__}: {error}{self._said()}", server=server) from error

    def _said(self) -> str:
        """The end of what the server wrote to its error stream."""
        self._log.seek(0)
        said = self._log.read().decode(errors="replace").strip()
        return f"; it wrote: …{said[-_TAIL:]}" if said else ""


_KEYS: Final = ("name", "description", "title", "inputSchema", "outputSchema")


def _wrapped(output: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The schema of the one value that a result is wrapped around, since older servers may give objects alone."""
    properties = output.get("properties")
    if not isinstance(properties, Mapping) or list(properties) != ["result"] or output.get("required") != ["result"]:
        return None
    inner = properties["result"]
    return {**inner, "$defs": output["$defs"]} if isinstance(inner, Mapping) and "$defs" in output else inner


@contextmanager
def _unwrapped() -> Iterator[None]:
    """Errors that pass through the SDK's task groups, taken out of their groups again."""
    try:
        yield
    except BaseExceptionGroup as group:
        errors = list(_leaves(group))
        kinds = [error for error in errors if not isinstance(error, anyio.get_cancelled_exc_class())]
        if len(kinds) == 1:
            raise kinds[0] from kinds[0].__cause__
        raise


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _leaves(part)
    else:
        yield error
