"""Reads episodes from TOML: every fault is named with file, line, what was expected, and the nearest known key."""

from __future__ import annotations

import importlib
import os
import re
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from episodes.context import Binding, Bindings
from episodes.errors import BoundNameError, SpecError, near_miss
from episodes.grading import Grader, approx, contains, equals, one_of
from episodes.limits import EpisodeLimits
from episodes.values import value_from_data
from registry import MismatchError, Registry, UnknownTypeError, builtin
from registry.types import ToolType


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _BindingTable(_Table):
    type: str
    value: Any


class _GraderTable(_Table):
    kind: Literal["equals", "approx", "contains", "one_of"]
    tolerance: float | None = Field(default=None, ge=0)


class _LimitsTable(_Table):
    turn_limit: int | None = Field(default=None, gt=0)
    token_limit: int | None = Field(default=None, gt=0)
    tokens_per_step: int | None = Field(default=None, gt=0)
    tool_call_limit: int | None = Field(default=None, gt=0)
    repeat_limit: int | None = Field(default=None, gt=0)
    tool_timeout: float | None = Field(default=None, gt=0)
    turn_timeout: float | None = Field(default=None, gt=0)
    run_timeout: float | None = Field(default=None, gt=0)


class _EpisodeTable(_Table):
    prompt: str
    name: str | None = None
    tools: list[str] | None = None
    registry: str | None = None
    bindings: dict[str, _BindingTable] = {}
    dialect: str | None = None
    prefix: str = ""
    output_type: str | None = None
    limits: _LimitsTable = _LimitsTable()
    grader: _GraderTable | None = None
    expected: Any = None
    reference: str = ""
    markers: list[str] = []  # read by the pytest plugin alone, as marks of the episode's test


def read_file(path: str | os.PathLike[str]) -> str:
    """The text of a file. Raises `SpecError`."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise SpecError(f"{path}: can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: is not UTF-8 (byte {error.start}); save it as UTF-8") from error


def read_episode(text: str, registry: Registry | None = None, *, source: str = "<toml>") -> dict[str, Any]:
    """The fields of the `Episode` that a TOML text describes. Raises `SpecError` that names `source`."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{source}: not TOML: {error}") from error
    try:
        table = _EpisodeTable.model_validate(data)
    except ValidationError as error:
        raise SpecError("\n".join(_faults(error, text, source))) from error
    try:
        return _fields(table, registry, Path(source).stem)
    except _At as fault:
        raise SpecError(f"{source}:{_line(text, fault.path)}: {'.'.join(fault.path)}: {fault}") from fault.__cause__


class _At(Exception):
    """A fault of one key, before it knows its file."""

    def __init__(self, message: str, *path: str) -> None:
        self.path = path
        super().__init__(message)


def _fields(table: _EpisodeTable, default: Registry | None, stem: str) -> dict[str, Any]:
    registry = _named_registry(table.registry) if table.registry is not None else default or builtin()
    output_type = None if table.output_type is None else _type(registry, table.output_type, "output_type")
    unknown = [name for name in table.tools or () if name not in registry]
    if unknown:
        raise _At(f"no tool is called {unknown[0]!r}; {near_miss(unknown[0], registry)}", "tools")
    return {
        "name": table.name if table.name is not None else stem,
        "prompt": table.prompt,
        "tools": None if table.tools is None else tuple(table.tools),
        "registry": registry,
        "bindings": _bindings(table, registry),
        "dialect": table.dialect,
        "prefix": table.prefix,
        "output_type": output_type,
        "limits": EpisodeLimits(**table.limits.model_dump()),
        "grader": _grader(table, output_type),
        "expected": table.expected,
        "reference": table.reference,
    }


def _named_registry(name: str) -> Registry:
    """The registry at `module:attribute`, or what a function there returns; importing the module runs its code."""
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise _At(f"expected module:attribute, got {name!r}", "registry")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except ImportError as error:
        raise _At(f"module {module!r} can't be imported: {error}", "registry") from error
    except AttributeError as error:
        raise _At(f"module {module!r} has no attribute {attribute!r}", "registry") from error
    made = found() if callable(found) and not isinstance(found, Registry) else found
    if not isinstance(made, Registry):
        raise _At(f"{name} is a {type(made).__name__}; expected a Registry or a function that makes one", "registry")
    return made


def _type(registry: Registry, text: str, *path: str) -> ToolType:
    try:
        return registry.find_type(text)
    except UnknownTypeError as error:
        raise _At(str(error), *path) from error


def _bindings(table: _EpisodeTable, registry: Registry) -> Bindings:
    bindings = Bindings()
    for name, given in table.bindings.items():
        kind = _type(registry, given.type, "bindings", name, "type")
        try:
            bindings = bindings.bind(Binding(name=name, type=kind, value=value_from_data(given.value, kind)))
        except (MismatchError, BoundNameError) as error:
            raise _At(str(error), "bindings", name) from error
    return bindings


def _grader(table: _EpisodeTable, output_type: ToolType | None) -> Grader | None:
    expected, kind = table.expected, table.grader.kind if table.grader else "equals"
    tolerance = table.grader.tolerance if table.grader else None
    if expected is None:
        if table.grader is not None:
            raise _At("a grader needs something to compare with; give the key expected", "grader")
        return None
    if (tolerance is None) == (kind == "approx"):
        raise _At("a tolerance goes with the kind approx, and with no other", "grader", "tolerance")
    options = expected if kind == "one_of" else [expected]
    if not isinstance(options, list) or not options:
        raise _At("with the grader one_of this is a list of at least one value", "expected")
    if output_type is not None and kind != "contains":
        try:
            options = [value_from_data(option, output_type) for option in options]
        except MismatchError as error:
            raise _At(f"not a value of the output type: {error}", "expected") from error
    if kind == "approx":
        if isinstance(expected, bool) or not isinstance(expected, int | float) or tolerance is None:
            raise _At(f"with the grader approx this is a number, not {expected!r}", "expected")
        return approx(expected, tolerance)
    if kind == "contains":
        return contains(expected)
    return one_of(*options) if kind == "one_of" else equals(options[0])


def _faults(error: ValidationError, text: str, source: str) -> list[str]:
    """One line for each fault that pydantic found."""
    lines = []
    for fault in error.errors():
        path = tuple(str(part) for part in fault["loc"])
        where = f"{source}:{_line(text, path)}"
        if fault["type"] == "extra_forbidden":
            known = _known_keys(path[:-1])
            lines.append(f"{where}: unknown key {'.'.join(path)!r}; {near_miss(path[-1], known)}")
        elif fault["type"] == "missing":
            lines.append(f"{where}: the key {'.'.join(path)!r} is missing; an episode needs it")
        else:
            expected = fault["msg"].removeprefix("Input should be ")
            lines.append(f"{where}: {'.'.join(path)}: expected {expected}, got {fault['input']!r}")
    return lines


def _known_keys(table: tuple[str, ...]) -> list[str]:
    models: dict[str, type[_Table]] = {
        "bindings": _BindingTable,
        "grader": _GraderTable,
        "limits": _LimitsTable,
    }
    return list(models[table[0]].model_fields if table else _EpisodeTable.model_fields)


def _line(text: str, path: tuple[str, ...]) -> int:
    """The line on which the longest known part of a key path stands; 1 when none of it does."""
    best, line = 0, 1
    table: tuple[str, ...] = ()
    for number, raw in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[+([^\[\]]+)\]+\s*(#.*)?$", raw)
        key = re.match(r"\s*([^=#\[\]]+?)\s*=", raw)
        if header:
            table = _dotted(header[1])
        elif not key:
            continue
        here = table if header else (*table, *_dotted(key[1] if key else ""))
        if here == path[: len(here)] and len(here) > best:
            best, line = len(here), number
    return line


def _dotted(text: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in text.split("."))
