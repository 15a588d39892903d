"""What every importer gives: cases with a gold program and the suite's own grader, or why there is none."""

from __future__ import annotations

import datetime
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from dialects import Expression, ListLiteral, Literal, Program, RecordLiteral
from episodes.errors import EpisodeError, SuiteError
from registry import MismatchError, Registry
from registry.jsonvalues import json_name
from registry.types import DateType, EnumType, HandleType, ListType, OptionalType, RecordType, ScalarType, ToolType


class Reason(StrEnum):
    """Why a gold program lies outside the types that its source states."""

    LITERAL_TYPE = "a literal is not of the type that its parameter states"
    REFERENCE_TYPE = "a reference is not of the type that its parameter states"
    UNKNOWN_FIELD = "a reference reads a field that the source does not describe"
    UNBOUND = "a reference has no earlier result"
    UNKNOWN_TOOL = "a call names a tool that the task does not offer"
    UNKNOWN_PARAMETER = "an argument has no parameter"
    MISSING_PARAMETER = "a required parameter has no argument"
    COMPUTED = "an argument computes with references"
    INDEX = "a reference takes an item of a list"


class InexpressibleError(EpisodeError):
    """A gold program leaves the types that its source states; an importer makes an `Inexpressible` of it."""

    def __init__(self, reason: Reason, detail: str) -> None:
        self.reason = reason
        self.detail = detail
        super().__init__(f"{reason}: {detail}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Graded:
    """The word of a suite's own grader, and why, where it did not pass."""

    passed: bool
    why: str = ""


Execute = Callable[[Sequence[Program]], Graded]


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One task: its typed tools and its gold programs, one for each turn of the user."""

    suite: str
    name: str
    prompts: tuple[str, ...]
    registry: Registry
    programs: tuple[Program, ...]
    execute: Execute = field(repr=False)  # runs programs in a fresh environment and asks the suite's grader
    baseline: Callable[[], Graded] = field(repr=False)  # the suite's grader on the suite's own run of its gold
    output_types: tuple[ToolType | None, ...] = ()  # of each program; () leaves all open
    types: tuple[ToolType, ...] = ()  # that occur in output types only
    added: int = 0  # steps that convert values, which the source does without saying so

    def output_type(self, turn: int) -> ToolType | None:
        """The type that a turn's return has, None where it is open."""
        return self.output_types[turn] if self.output_types else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Inexpressible:
    """A task whose gold program lies outside the stated types."""

    suite: str
    name: str
    reason: Reason
    detail: str


class Importer(Protocol):
    """Reads one suite from its installed package."""

    @property
    def name(self) -> str:
        """The suite's name in commands and results."""
        ...

    @property
    def notes(self) -> Mapping[str, str]:
        """What has no stated type, or one that was set by hand, by place: how it is handled."""
        ...

    def cases(self) -> Iterator[Case | Inexpressible]:
        """Every task of the suite."""
        ...


def need(module: str, package: str) -> Any:
    """An outside module. Raises `SuiteError` that says how to install its package."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise SuiteError(f"the suite needs {module} ({error}); install it: pip install {package}") from error


def express(data: object, kind: ToolType, place: str) -> Expression:
    """The literal that denotes JSON data at a type. Raises `InexpressibleError` where the data is not of it."""
    match kind:
        case OptionalType():
            return Literal(value=None) if data is None else express(data, kind.item, place)
        case ListType() if isinstance(data, list | tuple):
            return ListLiteral(items=tuple(express(item, kind.item, place) for item in data))
        case RecordType() if isinstance(data, Mapping):
            return _record(data, kind, place)
        case EnumType() if isinstance(data, str) and data in kind.members:
            return Literal(value=kind.members[kind.members.index(data)])
        case DateType() if isinstance(data, str):
            return Literal(value=_date(data, place))
        case ScalarType():
            try:
                kind.validate(data)
            except MismatchError as error:
                raise InexpressibleError(Reason.LITERAL_TYPE, f"{place}: {error}") from error
            if isinstance(data, str | int | float):
                return Literal(value=data)
    what = "only an earlier result can stand there" if isinstance(kind, HandleType) else f"got {data!r}"
    raise InexpressibleError(Reason.LITERAL_TYPE, f"{place}: expected {kind.name}, {what}")


def _record(data: Mapping[Any, Any], kind: RecordType, place: str) -> RecordLiteral:
    names = {json_name(kind, part.name): part for part in kind.fields}
    for key in data:
        if key not in names:
            raise InexpressibleError(Reason.UNKNOWN_PARAMETER, f"{place}: {kind.name} has no field {key!r}")
    missing = [key for key, part in names.items() if part.required and key not in data]
    if missing:
        raise InexpressibleError(Reason.MISSING_PARAMETER, f"{place}: {kind.name} lacks {missing[0]!r}")
    # In the order of declaration, in which dialects write fields.
    fields = (
        (part.name, express(data[key], part.type, f"{place}.{key}")) for key, part in names.items() if key in data
    )
    return RecordLiteral(type=kind.name, fields=tuple(fields))


def _date(text: str, place: str) -> datetime.date:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError as error:
        raise InexpressibleError(Reason.LITERAL_TYPE, f"{place}: {error}") from error
