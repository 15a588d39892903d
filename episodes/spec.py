"""What an episode is: a task, the tools and names it starts with, what it must return, how it is judged."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import get_args

from dialects import DIALECTS
from episodes.context import Bindings
from episodes.errors import SpecError, near_miss
from episodes.grading import Environment, Grade, Grader, equals
from episodes.limits import EpisodeLimits
from episodes.toml import read_episode, read_file
from registry import Registry, UnknownToolError
from registry.types import ToolType


@dataclass(frozen=True, kw_only=True, slots=True)
class Episode:
    """A task for an agent. Raises `SpecError` when it could not be run."""

    name: str
    prompt: str
    tools: tuple[str, ...] | None = None  # names of the registry's tools; None: all of them
    registry: Registry | None = None  # None: the agent's
    bindings: Bindings = field(default_factory=Bindings)  # Γ before the first step
    dialect: str | None = None  # name of the dialect that steps are written in; None: the agent's
    prefix: str = ""  # text with which the first step begins, in that dialect
    output_type: ToolType | None = None  # what a return must have; None: any type. `type_from_hint(int)` gives one
    limits: EpisodeLimits = field(default_factory=EpisodeLimits)
    grader: Grader | None = None  # None: equal to `expected`, if that is given
    expected: object = None
    reference: str = ""  # a program in the C-like dialect that solves it

    def __post_init__(self) -> None:
        """Check what can be checked without running."""
        if not self.name.strip():
            raise SpecError("an episode needs a name; it is how results refer to it")
        if not self.prompt.strip():
            raise SpecError(f"episode {self.name!r} is empty: its prompt says nothing; write the task there")
        if self.output_type is not None and not isinstance(self.output_type, get_args(ToolType)):
            raise SpecError(
                f"episode {self.name!r}: output_type is {self.output_type!r}, which is a Python hint; "
                "write type_from_hint(…) of it (from registry)"
            )
        if self.dialect is not None and self.dialect not in DIALECTS:
            raise SpecError(
                f"episode {self.name!r}: no dialect is called {self.dialect!r}; {near_miss(self.dialect, DIALECTS)}"
            )
        if self.registry is not None:
            self.registry_for(self.registry)

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str], registry: Registry | None = None) -> Episode:
        """The episode of a TOML file; `registry` stands in where the file names none (else the built-in one)."""
        return cls.parse(read_file(path), registry, source=str(path))

    load = from_toml

    @classmethod
    def parse(cls, text: str, registry: Registry | None = None, *, source: str = "<toml>") -> Episode:
        """The episode of a TOML text; its name is the stem of `source` unless it says another."""
        fields = read_episode(text, registry, source=source)
        try:
            return cls(**fields)
        except SpecError as error:
            raise SpecError(f"{source}: {error}") from error

    def registry_for(self, default: Registry) -> Registry:
        """The tools of a run: the episode's registry or else `default`, restricted to `tools`."""
        registry = self.registry if self.registry is not None else default
        if self.tools is None:
            return registry
        try:
            return registry.select(*self.tools)
        except UnknownToolError as error:
            raise SpecError(f"episode {self.name!r}: tools: {error}") from error

    def grade(self, output: object, environment: Environment | None = None) -> Grade | None:
        """The judgement of an output; None when the episode has no way to judge."""
        grader = self.grader
        if grader is None and self.expected is not None:
            grader = equals(self.expected)
        return None if grader is None else grader(output, environment or Environment(before=self.bindings))
