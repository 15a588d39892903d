"""The settings of a study, read from TOML: models, modes, seeds, tasks and budgets."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentkit.models import StopPolicy
from agentkit.modes import Mode
from agentkit.study.errors import ConfigError
from agentkit.study.task import SHIPPED, Task, load_tasks

# Raised whenever prompts or the way of attempting change, so that older records are not taken for new ones.
METHOD = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSource:
    """A model's name in records, and what it is loaded from; None where the caller must say."""

    name: str
    source: str | None

    @property
    def variable(self) -> str:
        """The environment variable that may name the source."""
        return "AUFBAU_STUDY_" + re.sub(r"[^A-Z0-9]+", "_", self.name.upper())


@dataclass(frozen=True, kw_only=True, slots=True)
class StudyConfig:
    """What is attempted, and within which budgets."""

    name: str
    models: tuple[ModelSource, ...]
    modes: tuple[Mode, ...]
    seeds: tuple[int, ...]
    tasks: tuple[Task, ...]
    # Folders of tool episodes.
    episodes: tuple[Path, ...]
    temperature: float
    # Tokens of an answer, and of the reasoning before it.
    max_tokens: int
    reasoning_tokens: int
    # Turns of an episode.
    turn_limit: int
    stop_policy: StopPolicy

    @property
    def digest(self) -> str:
        """Changes with every setting that one attempt depends on; which attempts there are is no part of it."""
        data = [METHOD, self.temperature, self.max_tokens, self.reasoning_tokens, self.turn_limit]
        return hashlib.sha256(json.dumps([*data, self.stop_policy.value]).encode()).hexdigest()[:12]

    @classmethod
    def load(cls, path: str | Path) -> StudyConfig:
        """The settings of a file; what it names is found from its folder. Raises `ConfigError` or `TaskError`."""
        file = Path(path)
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file}: can't be read ({error}); examples/study.toml shows what it holds") from error
        return cls.parse(text, folder=file.parent, source=str(file))

    @classmethod
    def parse(cls, text: str, *, folder: Path, source: str = "<toml>") -> StudyConfig:
        """The settings of a TOML text. Raises `ConfigError` or `TaskError`."""
        try:
            table = _StudyTable.model_validate(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{source}: not TOML: {error}") from error
        except ValidationError as error:
            faults = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
            raise ConfigError(f"{source}: {faults}") from error
        _all_different(source, "model", [model.name for model in table.model])
        _all_different(source, "modes", table.modes)
        _all_different(source, "seeds", table.seeds)
        _all_different(source, "suites", table.suites)
        tasks = [task for suite in table.suites for task in load_tasks(suite if suite in SHIPPED else folder / suite)]
        _all_different(source, "tasks", [task.id for task in tasks])
        return cls(
            name=table.name,
            models=tuple(ModelSource(name=model.name, source=model.source) for model in table.model),
            modes=tuple(_member(Mode, mode, source, "modes") for mode in table.modes),
            seeds=tuple(table.seeds),
            tasks=tuple(tasks),
            episodes=tuple(folder / name for name in table.episodes),
            temperature=table.temperature,
            max_tokens=table.max_tokens,
            reasoning_tokens=table.reasoning_tokens,
            turn_limit=table.turn_limit,
            stop_policy=_member(StopPolicy, table.stop_policy, source, "stop_policy"),
        )

    def model(self, name: str, given: Mapping[str, str]) -> str:
        """What to load for a model: what the caller gives, the environment names, or the file says."""
        for model in self.models:
            if model.name == name:
                source = given.get(name) or os.environ.get(model.variable) or model.source
                if not source:
                    raise ConfigError(
                        f"model {name!r} has no source; give --model '{name}=PATH' or set {model.variable} to a"
                        " folder, a .gguf file or a Hugging Face id"
                    )
                return source
        raise ConfigError(
            f"there is no model {name!r} in the study; it has {', '.join(one.name for one in self.models)}"
        )


class _ModelTable(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = Field(min_length=1)
    source: str | None = None


class _StudyTable(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: str
    model: list[_ModelTable] = Field(min_length=1)
    modes: list[str] = Field(default=[mode.value for mode in Mode], min_length=1)
    seeds: list[int] = Field(default=[0], min_length=1)
    suites: list[str] = list(SHIPPED)
    episodes: list[str] = []
    temperature: float = Field(default=0.0, ge=0)
    max_tokens: int = Field(default=96, gt=0)
    reasoning_tokens: int = Field(default=64, gt=0)
    turn_limit: int = Field(default=6, gt=0)
    stop_policy: str = StopPolicy.STRICT.value


def _all_different(source: str, key: str, values: list[Any]) -> None:
    for value in values:
        if values.count(value) > 1:
            raise ConfigError(f"{source}: {key}: {value!r} stands there twice")


def _member(enum: type[Any], value: str, source: str, key: str) -> Any:
    try:
        return enum(value)
    except ValueError:
        known = ", ".join(one.value for one in enum)
        raise ConfigError(f"{source}: {key}: {value!r} is unknown; known are {known}") from None
