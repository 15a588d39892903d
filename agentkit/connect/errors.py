"""The tree of errors of connections; each message says which server or file, and how to mend it.

    ConnectError (an AgentError)
    ├── McpError                    a server of the Model Context Protocol
    │   ├── McpUnreachable          it cannot be started, or nothing answers at its address
    │   ├── McpLost                 it ended, or the connection to it, while it was needed
    │   ├── McpTimeout              no result in time
    │   ├── McpRefused              it refuses a call, or breaks the protocol
    │   ├── McpResultError          a result of a kind that its tool does not state
    │   └── McpSchemaError          a tool whose schema means no type here, where all tools were asked for
    └── RegistryNotFound            nothing of that name is a registry that could be served

Inside a run they are the cause of a `ToolExecutionError`, since a tool call has failed.
"""

from __future__ import annotations

from agentkit.root import AgentError


class ConnectError(AgentError):
    """The root of what connections raise."""


class McpError(ConnectError):
    """Something is wrong with a server; `server` names it."""

    def __init__(self, message: str, *, server: str) -> None:
        super().__init__(f"MCP server {server}: {message}")
        self.server = server


class McpUnreachable(McpError):
    """The server cannot be started, or nothing answers at its address."""


class McpLost(McpError):
    """The server ended, or the connection to it, while a call was waiting or before it."""


class McpTimeout(McpError):
    """The server gave no result in time."""


class McpRefused(McpError):
    """The server refuses a call, or its answer breaks the protocol."""


class McpResultError(McpError):
    """A result of a kind that its tool does not state, such as a picture."""


class McpSchemaError(McpError):
    """A tool of the server has a schema that means no type here."""


class RegistryNotFound(ConnectError):
    """Nothing of the given name is a registry that could be served."""
