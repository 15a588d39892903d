"""A registry served over MCP by a process of its own, and an agent that uses it: `python examples/mcp_both_ways.py`.

The model is a script, so that this needs no weights; take `Agent("default", …)` for a real one.
"""

from __future__ import annotations

import sys

import anyio

from agentkit import Agent
from agentkit.connect import StdioServer, mcp_tools
from agentkit.models import ScriptedModel

SCRIPT = ['let d = search("aurora");', "let n = count(d);", "return n;"]


async def main() -> None:
    """Start the server, see its tools with their types, solve a task with them, and end it."""
    server = StdioServer(command=sys.executable, args=("-m", "agentkit", "serve-mcp", "builtin"))
    async with mcp_tools(server) as found:
        for tool in found.registry.values():
            print(tool.signature)
        result = await Agent(ScriptedModel(SCRIPT), tools=found.registry).run("How many documents mention the aurora?")
    print(result.output)


if __name__ == "__main__":
    anyio.run(main)
