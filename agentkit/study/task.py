"""Tasks as data: what a program is asked for, how it begins, a reference, and how an answer is graded."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentkit.study.errors import TaskError
from agentkit.synthesis.graders import GradeKind
from agentkit.synthesis.harness import UnitTest
from agentkit.synthesis.languages import Language

# The files of tasks that ship with the package, by name.
SHIPPED = ("stlc", "ml", "c", "fun", "ml_behaviour", "c_behaviour")


class Resolution(Enum):
    """How an answer is graded."""

    # The compiler accepts the program with the required type: validity.
    COMPILE = "compile"
    # The compiled program gives the expected values in unit tests: behaviour.
    BEHAVIOUR = "behaviour"
    # A term equal to the reference up to beta and eta: correctness of a term.
    EQUIVALENT = "equivalent"
    # A term of the required type, by a checker that shares no code with the oracle: validity.
    TYPED = "typed"


_KINDS = {
    Resolution.COMPILE: GradeKind.VALIDITY,
    Resolution.TYPED: GradeKind.VALIDITY,
    Resolution.BEHAVIOUR: GradeKind.BEHAVIOUR,
    Resolution.EQUIVALENT: GradeKind.EQUIVALENCE,
}
_GRADED: Mapping[Resolution, tuple[Language, ...]] = {
    Resolution.COMPILE: (Language.ML, Language.C, Language.CORE_ML, Language.CORE_C),
    Resolution.BEHAVIOUR: (Language.ML, Language.C, Language.CORE_ML, Language.CORE_C),
    Resolution.EQUIVALENT: (Language.STLC, Language.FUN),
    Resolution.TYPED: (Language.STLC, Language.FUN),
}
# Where every live prefix has a completion (`aufbau check --classify`), so no constrained answer may end unfinished.
COVERED = (Language.FUN, Language.CORE_ML, Language.CORE_C)


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """One program to write."""

    suite: str
    name: str
    language: Language
    prompt: str
    resolution: Resolution
    # The type of the program, or in C the prototype of its function.
    goal: str
    # A program that passes.
    reference: str
    # What every answer begins with.
    prefix: str = ""
    # Names in scope, with their types.
    context: tuple[tuple[str, str], ...] = ()
    tests: tuple[UnitTest, ...] = ()

    @property
    def id(self) -> str:
        """The task's name among all tasks of a study."""
        return f"{self.suite}/{self.name}"

    @property
    def kind(self) -> GradeKind:
        """What a pass of this task says. Figures of different kinds are never added up."""
        return _KINDS[self.resolution]

    @property
    def family(self) -> str:
        """The language as reports group it: a covered fragment counts with its language."""
        return self.language.value.removeprefix("core_")

    @property
    def covered(self) -> bool:
        """Whether its grammar excludes dead ends."""
        return self.language in COVERED

    @property
    def digest(self) -> str:
        """Changes with anything that an attempt at the task depends on."""
        data = {**asdict(self), "language": self.language.value, "resolution": self.resolution.value}
        return hashlib.sha256(json.dumps(data, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:12]


class _TaskTable(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = Field(min_length=1)
    language: str
    prompt: str = Field(min_length=1)
    resolution: str
    goal: str = Field(min_length=1)
    reference: str = Field(min_length=1)
    prefix: str = ""
    context: dict[str, str] = {}
    tests: list[list[str]] = []


def load_tasks(suite: str | Path) -> tuple[Task, ...]:
    """The tasks of a shipped suite, by name, or of a TOML file. Raises `TaskError`."""
    if isinstance(suite, str) and suite in SHIPPED:
        text, name = (files("agentkit.study") / "tasks" / f"{suite}.toml").read_text(encoding="utf-8"), suite
    else:
        path = Path(suite)
        try:
            text, name = path.read_text(encoding="utf-8"), path.stem
        except (OSError, UnicodeDecodeError) as error:
            raise TaskError(
                f"{path}: can't be read ({error}); name a file of tasks, or one of {', '.join(SHIPPED)}"
            ) from error
    return read_tasks(text, suite=name, source=str(suite))


def read_tasks(text: str, *, suite: str, source: str = "<toml>") -> tuple[Task, ...]:
    """The tasks of a TOML text: `[[task]]` tables, and above them keys that hold for all that don't say otherwise."""
    try:
        shared = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TaskError(f"{source}: not TOML: {error}") from error
    tables = shared.pop("task", [])
    if not isinstance(tables, list) or not tables:
        raise TaskError(f"{source}: holds no [[task]]")
    tasks = tuple(_task(suite, shared, table, f"{source}, task {place}") for place, table in enumerate(tables, 1))
    names: set[str] = set()
    for task in tasks:
        if task.name in names:
            raise TaskError(f"{source}: two tasks are called {task.name!r}; rename one")
        names.add(task.name)
    return tasks


def _task(suite: str, shared: Mapping[str, Any], table: Mapping[str, Any], where: str) -> Task:
    try:
        found = _TaskTable.model_validate({**shared, **table})
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise TaskError(f"{where}: {faults}") from error
    where = f"{where} ({found.name})"
    language = _member(Language, found.language, "language", where)
    resolution = _member(Resolution, found.resolution, "resolution", where)
    if language not in _GRADED[resolution]:
        able = ", ".join(str(one) for one in _GRADED[resolution])
        raise TaskError(f"{where}: resolution {resolution.value!r} grades {able}, not {language}")
    reference = found.reference.strip("\n")
    if not reference.startswith(found.prefix):
        raise TaskError(f"{where}: the reference does not begin with the prefix {found.prefix!r}")
    if bool(found.tests) != (resolution is Resolution.BEHAVIOUR):
        raise TaskError(f"{where}: tests are what resolution 'behaviour' needs, and no other one takes")
    return Task(
        suite=suite,
        name=found.name,
        language=language,
        prompt=found.prompt.strip(),
        resolution=resolution,
        goal=found.goal,
        reference=reference,
        prefix=found.prefix,
        context=tuple(found.context.items()),
        tests=tuple(_tests(found.tests, where)),
    )


def _member(enum: type[Any], value: str, key: str, where: str) -> Any:
    try:
        return enum(value)
    except ValueError:
        known = ", ".join(one.value for one in enum)
        raise TaskError(f"{where}: {key} {value!r} is unknown; known are {known}") from None


def _tests(rows: Sequence[Sequence[str]], where: str) -> Iterator[UnitTest]:
    for row in rows:
        if len(row) != 2:
            raise TaskError(f"{where}: a test is a pair of texts, [call, expected value], not {list(row)!r}")
        yield UnitTest(call=row[0], expect=row[1])
