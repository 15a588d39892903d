"""Progress of long preparations: a callback, and the bar that shows it on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

# Called with what is being done and the part of it that is finished, from 0 to 1.
ProgressCallback = Callable[[str, float], None]


@contextmanager
def terminal_progress() -> Iterator[ProgressCallback]:
    """One bar for each step on standard error; where that is no terminal, one line for each step instead."""
    console = Console(stderr=True)
    if not console.is_terminal:
        said: set[str] = set()

        def say(step: str, _part: float) -> None:
            if step not in said:
                said.add(step)
                console.print(f"{step} …", highlight=False)

        yield say
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    with Progress(*columns, TimeElapsedColumn(), console=console) as bars:
        tasks: dict[str, TaskID] = {}

        def draw(step: str, part: float) -> None:
            if step not in tasks:
                for earlier in tasks.values():
                    bars.update(earlier, completed=1.0)
                tasks[step] = bars.add_task(step, total=1.0)
            bars.update(tasks[step], completed=part)

        yield draw
