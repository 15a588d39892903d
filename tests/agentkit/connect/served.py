"""Tools that tests serve over MCP from a process of its own: good ones, one that hangs, one that ends the process."""

from __future__ import annotations

import datetime
import enum
import os
import time
from dataclasses import dataclass
from typing import Annotated

from registry import ModelRetry, Nominal, Registry, builtin, tool


class Colour(enum.Enum):
    """Two colours."""

    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Note:
    """A note."""

    id: Annotated[str, Nominal("NoteId")]
    text: str
    colours: list[Colour]
    due: datetime.date | None = None


@tool
def write(text: str, colour: Colour = Colour.RED, due: datetime.date | None = None) -> Note:
    """Write a note.

    Args:
        text: What it says.
    """
    print("a tool may print, though the protocol uses the standard streams")
    return Note(id=f"n{len(text)}", text=text, colours=[colour], due=due)


@tool
def read(id: Annotated[str, Nominal("NoteId")]) -> str:
    """Read a note."""
    return f"note {id}"


@tool
def notes(count: int) -> list[Note]:
    """Some notes."""
    if count > 9:
        raise ModelRetry("at most 9")
    return [Note(id=f"n{n}", text="x", colours=[]) for n in range(count)]


@tool
def broken(n: int) -> int:
    """Fail."""
    raise RuntimeError(f"out of {n}")


@tool
def hang(seconds: float) -> int:
    """Take long."""
    time.sleep(seconds)
    return 1


@tool
def die(status: int) -> int:
    """End the server."""
    os._exit(status)


def registry() -> Registry:
    """The built-in tools, and these."""
    return builtin().with_tools(write, read, notes, broken, hang, die)
