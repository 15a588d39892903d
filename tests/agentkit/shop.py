"""A few typed tools that write down what they were called with, for the tests of complaints."""

from __future__ import annotations

from typing import NewType

from agentkit import Agent
from agentkit.models import ScriptedModel
from aufbau import Verdict
from dialects import CLikeDialect
from registry import Registry, ToolType


class Papers:
    """Found papers: a handle."""


OrderId = NewType("OrderId", str)


class Shop:
    """Tools that write down what they were called with."""

    def __init__(self) -> None:
        self.calls: list[object] = []
        self.registry = Registry()

        @self.registry.tool
        def roll(sides: int) -> int:
            """Roll a die."""
            self.calls.append(sides)
            return sides

        @self.registry.tool
        def join(words: list[str]) -> str:
            """Join words."""
            self.calls.append(words)
            return " ".join(words)

        @self.registry.tool
        def say(text: str) -> str:
            """Say it."""
            self.calls.append(text)
            return text

        @self.registry.tool(pure=True)
        def find(query: str) -> Papers:
            """Find papers."""
            self.calls.append(query)
            return Papers()

        @self.registry.tool
        def pages(papers: Papers) -> int:
            """Count pages."""
            self.calls.append(papers)
            return 12

        @self.registry.tool
        def order(item: str) -> OrderId:
            """Order something."""
            return OrderId(f"o-{item}")

        @self.registry.tool
        def cancel(order: OrderId) -> bool:
            """Cancel an order."""
            self.calls.append(order)
            return True

    def verdict(self, text: str, **bound: ToolType) -> Verdict:
        """What the oracle says of a step under these names."""
        return CLikeDialect().lower(self.registry).start(bound).feed(text).verdict

    def scripted(self, *replies: str, **options: object) -> Agent:
        """An agent whose model gives these replies."""
        return Agent(ScriptedModel(replies), tools=self.registry, **options)  # type: ignore[arg-type]
