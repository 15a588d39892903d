"""A suite: the episodes of one folder, in the order of their file names, and their evaluation."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from episodes.errors import SpecError
from episodes.evaluation import Attempt, Evaluation, Runner, attempt_episode, work_through
from episodes.spec import Episode
from registry import Registry, builtin


@dataclass(frozen=True, kw_only=True, slots=True)
class Suite:
    """Episodes with different names."""

    name: str
    episodes: tuple[Episode, ...]

    def __post_init__(self) -> None:
        """Refuse an empty suite, and two episodes that results could not tell apart."""
        if not self.episodes:
            raise SpecError(f"suite {self.name!r} has no episode")
        seen: set[str] = set()
        for episode in self.episodes:
            if episode.name in seen:
                raise SpecError(f"suite {self.name!r}: two episodes are called {episode.name!r}; rename one")
            seen.add(episode.name)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], registry: Registry | None = None) -> Suite:
        """The suite of a folder's `.toml` files, or of one file; they share one registry. Raises `SpecError`."""
        path = Path(folder)
        files = suite_files(path)
        shared = registry if registry is not None else builtin()
        name = path.stem if path.is_file() else path.resolve().name
        return cls(name=name, episodes=tuple(Episode.from_toml(file, shared) for file in files))

    async def evaluate(
        self,
        agent: Runner,
        *,
        repeat: int = 1,
        max_concurrency: int = 1,
        on_attempt: Callable[[Attempt], None] | None = None,
    ) -> Evaluation:
        """Attempt every episode `repeat` times, at most `max_concurrency` at once; an attempt that fails is one too.

        `on_attempt` hears of each as it ends. Cancelled, it leaves nothing behind. Repeating tells something only of
        an agent that samples, and without a fixed seed; `agentkit eval` has a seed for each repetition.
        """
        if repeat < 1:
            raise ValueError(f"repeat must be 1 or more, not {repeat}")
        done: dict[tuple[int, int], Attempt] = {}

        async def work(job: tuple[int, int]) -> None:
            number, place = job
            done[place, number] = await attempt_episode(agent, self.episodes[place], number)
            if on_attempt is not None:
                on_attempt(done[place, number])

        jobs = [(number, place) for number in range(repeat) for place in range(len(self.episodes))]
        await work_through(jobs, work, max_concurrency=max_concurrency)
        return Evaluation(suite=self.name, attempts=tuple(done[key] for key in sorted(done)))

    def __iter__(self) -> Iterator[Episode]:
        return iter(self.episodes)

    def __len__(self) -> int:
        return len(self.episodes)


def suite_files(path: str | os.PathLike[str]) -> list[Path]:
    """The files of a suite: those of a folder in the order of their names, or the one itself. Raises `SpecError`."""
    path = Path(path)
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise SpecError(f"{path}: is no folder; a suite is a folder of .toml files")
    files = sorted(path.glob("*.toml"))
    if not files:
        raise SpecError(f"{path}: holds no .toml file; an episode is one")
    return files
