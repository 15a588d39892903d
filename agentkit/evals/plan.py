"""What an evaluation attempts: every episode with every model in every mode, so many times."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from agentkit.evals.errors import EvalError
from agentkit.limits import UsageLimits
from agentkit.models import Sampling, StopPolicy
from agentkit.modes import Mode
from episodes import Episode, Suite
from episodes.suite import suite_files
from registry import Registry

# Raised whenever the same settings would give other attempts, so that records of before are not taken for them.
REVISION = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class EvalTask:
    """An episode, and a digest of all that its file and its tools say."""

    episode: Episode
    digest: str


@dataclass(frozen=True, kw_only=True, slots=True)
class EvalSettings:
    """How every attempt is made."""

    temperature: float = 0.0
    seed: int = 0
    """Of the first attempt; each further one has the next."""

    stop_policy: StopPolicy = StopPolicy.STRICT
    dialect: str = "c"
    limits: UsageLimits = field(default_factory=UsageLimits)

    def sampling(self, number: int) -> Sampling:
        """How attempt `number` draws."""
        return Sampling(temperature=self.temperature, seed=self.seed + number)

    def to_data(self) -> dict[str, object]:
        """The settings as JSON-able data."""
        return {
            "temperature": self.temperature,
            "seed": self.seed,
            "stop_policy": self.stop_policy.value,
            "dialect": self.dialect,
            "limits": asdict(self.limits),
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One attempt to be made; equal keys mean that it would be the same again."""

    model: str
    mode: Mode
    task: EvalTask
    number: int
    key: str


@dataclass(frozen=True, kw_only=True, slots=True)
class EvalPlan:
    """All attempts of an evaluation."""

    suite: str
    tasks: tuple[EvalTask, ...]
    models: tuple[str, ...]
    modes: tuple[Mode, ...] = (Mode.DIRECT,)
    repeat: int = 1
    settings: EvalSettings = field(default_factory=EvalSettings)

    def __post_init__(self) -> None:
        """Refuse a plan without an attempt, and one with the same attempt twice."""
        if self.repeat < 1:
            raise EvalError(f"repeat is {self.repeat}; attempt every episode once at least")
        for what in ("tasks", "models", "modes"):
            if not getattr(self, what):
                raise EvalError(f"an evaluation without {what} has nothing to do; name one")
        for what in ("models", "modes"):
            if len(set(getattr(self, what))) < len(getattr(self, what)):
                raise EvalError(f"one of the {what} is named twice; name it once and use repeat")

    def cells(self, model: str) -> Iterator[Cell]:
        """The attempts of one model: each repetition whole before the next, so that a part of them is balanced."""
        for number in range(self.repeat):
            for task in self.tasks:
                for mode in self.modes:
                    key = self._key(model, mode, task, number)
                    yield Cell(model=model, mode=mode, task=task, number=number, key=key)

    @property
    def size(self) -> int:
        """How many attempts there are."""
        return len(self.models) * len(self.modes) * len(self.tasks) * self.repeat

    def _key(self, model: str, mode: Mode, task: EvalTask, number: int) -> str:
        settings = replace(self.settings, seed=self.settings.seed + number).to_data()
        # The seed is the attempt's own, so a wider evaluation finds what a narrower one has made.
        parts = [REVISION, model, mode.value, task.episode.name, task.digest, settings]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]


def load_tasks(path: str | os.PathLike[str], registry: Registry) -> tuple[str, tuple[EvalTask, ...]]:
    """A suite's name and its episodes; `registry` stands in where a file names none. Raises `SpecError`."""
    suite = Suite.load(path, registry)
    tasks = tuple(
        EvalTask(episode=episode, digest=_digest(file, episode.registry_for(registry)))
        for file, episode in zip(suite_files(path), suite, strict=True)
    )
    return suite.name, tasks


def _digest(file: Path, tools: Registry) -> str:
    """Of a file's bytes and its tools' signatures; what a tool does isn't seen."""
    said = [file.read_bytes(), *(tools[name].signature.encode() for name in sorted(tools))]
    return hashlib.sha256(b"\0".join(said)).hexdigest()[:24]
