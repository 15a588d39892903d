"""Tools with types of every kind, and the checks of steps over them that the tests of all dialects share."""

from __future__ import annotations

import dataclasses
import datetime
import enum
from typing import Literal

from aufbau import Verdict
from dialects import LoweredDialect
from registry import Handle, Registry, type_from_hint
from registry.types import FLOAT, INT, STRING, ToolType


class Docs(Handle):
    """A handle."""


class Level(enum.Enum):
    """Members that are spelled by their names."""

    LOW = 1
    HIGH = 2


@dataclasses.dataclass(frozen=True)
class Page:
    """A record with a handle in it."""

    title: str
    size: int
    docs: Docs
    day: datetime.date | None = None


def search(query: str, limit: int = 10, mode: Literal["fast", "exact"] = "fast") -> list[Page]:
    """Search."""
    raise NotImplementedError


def scale(x: float, level: Level) -> float:
    """Scale."""
    raise NotImplementedError


def first(pages: list[Page], default: Page | None = None) -> Page:
    """Take the first."""
    raise NotImplementedError


def read(docs: Docs) -> str:
    """Read."""
    raise NotImplementedError


def on(date: datetime.date, loud: bool) -> int:
    """A parameter whose name is the word for dates."""
    raise NotImplementedError


TOOLS = Registry([search, scale, first, read, on])
CONTEXT: dict[str, ToolType] = {
    "page": type_from_hint(Page),
    "pages": type_from_hint(list[Page]),
    "count": INT,
    "name": STRING,
}


def check_kept(lowered: LoweredDialect, text: str) -> None:
    """The step is not lost at any byte, is read, and what is spelled from it is read back equal."""
    prefix = lowered.start(CONTEXT, FLOAT)
    for byte in text.encode():
        prefix = prefix.feed(bytes((byte,)))
        assert prefix.verdict is not Verdict.LOST, str(prefix.explain())
    tree = prefix.tree()
    assert prefix.verdict is Verdict.SATISFIED and tree is not None
    step = lowered.read_step(tree)
    again = lowered.start(CONTEXT, FLOAT).feed(lowered.render_step(step)).tree()
    assert again is not None and repr(lowered.read_step(again)) == repr(step)


def check_lost(lowered: LoweredDialect, marked: str) -> None:
    """The text up to the bar is not lost, and the byte after it loses it."""
    before, bar, after = marked.partition("|")
    assert bar
    prefix = lowered.start(CONTEXT, FLOAT).feed(before)
    assert prefix.verdict is not Verdict.LOST, str(prefix.explain())
    lost = prefix.feed(after)
    assert (lost.verdict, lost.lost_at) == (Verdict.LOST, len(before.encode()))
