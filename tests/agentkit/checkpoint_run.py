"""A run in a process of its own that is killed inside a tool; `python -m tests.agentkit.checkpoint_run FOLDER TOOL`."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from datetime import date
from enum import Enum
from pathlib import Path
from typing import NewType

from agentkit import Agent, Codec
from agentkit.models import ScriptedModel
from registry import Registry

TASK = "Order tea."
KILL = "AGENTKIT_TEST_KILL"

OrderId = NewType("OrderId", str)


class Size(Enum):
    """How much."""

    SMALL = "small"
    LARGE = "large"


@dataclass(frozen=True)
class Order:
    """A record with an identifier."""

    id: OrderId
    day: date
    size: Size
    prices: list[float]
    note: str | None


class Basket:
    """A handle."""

    def __init__(self, items: list[str]) -> None:
        self.items = items

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Basket) and other.items == self.items

    __hash__ = None  # type: ignore[assignment]


CODECS = {Basket: Codec(encode=lambda basket: basket.items, decode=Basket)}

BEFORE = ('let b = fill("tea");', "let o = order(b);")


def make_registry(folder: Path) -> Registry:
    """Tools that note each call in a file, which outlives the process."""
    registry = Registry()

    def called(name: str) -> None:
        with (folder / "calls").open("a") as file:
            file.write(f"{name}\n")
        if os.environ.get(KILL) == name:
            os.kill(os.getpid(), signal.SIGKILL)

    @registry.tool(pure=True)
    def fill(item: str) -> Basket:
        """Put a thing into a basket."""
        called("fill")
        return Basket([item])

    @registry.tool
    def order(basket: Basket) -> Order:
        """Order what is in the basket."""
        called("order")
        return Order(id=OrderId("o-1"), day=date(2026, 11, 30), size=Size.LARGE, prices=[1.0, float("inf")], note=None)

    @registry.tool
    def pay(order: OrderId) -> bool:
        """Pay an order."""
        called("pay")
        return True

    @registry.tool(idempotent=True)
    def track(order: OrderId) -> str:
        """Ask where an order is."""
        called("track")
        return f"{order} is under way"

    return registry


def make_agent(folder: Path, *replies: str) -> Agent:
    """An agent whose runs can be kept in files."""
    return Agent(ScriptedModel(replies), tools=make_registry(folder), codecs=CODECS)


STEPS = {
    "pay": ("let p = pay(o.id);", "return p;"),
    "track": ("let t = track(o.id);", "return t;"),
}

if __name__ == "__main__":
    place, tool = Path(sys.argv[1]), sys.argv[2]
    os.environ[KILL] = tool
    make_agent(place, *BEFORE, *STEPS[tool]).run_sync(TASK, checkpoint_path=place / "run.json")
