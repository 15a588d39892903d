"""The attempts of a study in a fixed order, of which every beginning is balanced."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentkit.study.task import Task
from episodes import Episode


@dataclass(frozen=True, kw_only=True, slots=True)
class EpisodeTask:
    """An episode of tool calls in one dialect, as a task of the study."""

    suite: str
    episode: Episode
    dialect: str
    # Changes with the episode's file.
    digest: str

    @property
    def name(self) -> str:
        """The episode's name; the dialect is told where it is not the plain one."""
        return self.episode.name if self.dialect == "c" else f"{self.episode.name} ({self.dialect})"

    @property
    def id(self) -> str:
        """The task's name among all tasks of a study."""
        return f"{self.suite}/{self.name}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """One task under one seed: all modes are attempted one after the other, so that pairs are whole."""

    task: Task | EpisodeTask
    seed: int


def groups(
    tasks: Sequence[Task | EpisodeTask], seeds: Sequence[int], *, shard: tuple[int, int] = (1, 1)
) -> Iterator[Group]:
    """Seed after seed all tasks, those of each suite spread evenly; of a shard (i, n) every n-th, from the i-th on."""
    part, parts = shard
    if not 1 <= part <= parts:
        raise ValueError(f"shard {part}/{parts} does not exist; shards of {parts} are 1/{parts} to {parts}/{parts}")
    place = 0
    for seed in seeds:
        for task in spread(tasks, seed):
            if place % parts == part - 1:
                yield Group(task=task, seed=seed)
            place += 1


def spread(tasks: Sequence[Task | EpisodeTask], seed: int) -> list[Task | EpisodeTask]:
    """All tasks, each suite's in random order and at even distances."""
    draw = random.Random(seed)
    placed: list[tuple[float, str, Task | EpisodeTask]] = []
    for suite in sorted({task.suite for task in tasks}):
        own = [task for task in tasks if task.suite == suite]
        draw.shuffle(own)
        offset = draw.random()
        placed += [((number + offset) / len(own), suite, task) for number, task in enumerate(own)]
    return [task for _, _, task in sorted(placed, key=lambda one: one[:2])]
