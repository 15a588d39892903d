"""A suite: the episodes of one folder, in the order of their file names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from episodes.errors import SpecError
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
        """The suite of a folder's `.toml` files, which share one registry. Raises `SpecError`."""
        path = Path(folder)
        if not path.is_dir():
            raise SpecError(f"{path}: is no folder; a suite is a folder of .toml files")
        files = sorted(path.glob("*.toml"))
        if not files:
            raise SpecError(f"{path}: holds no .toml file; an episode is one")
        shared = registry if registry is not None else builtin()
        return cls(name=path.name, episodes=tuple(Episode.from_toml(file, shared) for file in files))

    def __iter__(self) -> Iterator[Episode]:
        return iter(self.episodes)

    def __len__(self) -> int:
        return len(self.episodes)
