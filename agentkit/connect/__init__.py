"""Connections to other tools' worlds: MCP servers as registries, registries as MCP servers, inspect-ai evaluations."""

from agentkit.connect.errors import (
    ConnectError,
    McpError,
    McpLost,
    McpRefused,
    McpResultError,
    McpSchemaError,
    McpTimeout,
    McpUnreachable,
    RegistryNotFound,
)
from agentkit.connect.mcp import HttpServer, McpTools, StdioServer, mcp_tools
from agentkit.connect.mcp_server import find_registry, mcp_server

__all__ = [
    "ConnectError",
    "HttpServer",
    "McpError",
    "McpLost",
    "McpRefused",
    "McpResultError",
    "McpSchemaError",
    "McpTimeout",
    "McpTools",
    "McpUnreachable",
    "RegistryNotFound",
    "StdioServer",
    "find_registry",
    "mcp_server",
    "mcp_tools",
]
