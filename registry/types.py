"""The types of tools: frozen values that know their spelling, and check Python values strictly.

Scalars, dates and enumerations have literals; lists, optionals and records are built from other types; a
handle is nominal: only a tool can make one. Equal spelling means the same type within one registry.

A handle of an identifier (`Nominal`) brands what a tool returned: inside runs the value is an `Identifier`, which no
literal makes, and tools get back the plain value (`brand`, `release`).
"""

from __future__ import annotations

import datetime
import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from pydantic import ConfigDict, TypeAdapter, ValidationError

from registry.errors import MismatchError, near_misses


@cache
def _strict(python_type: type) -> TypeAdapter[object]:
    return TypeAdapter(python_type, config=ConfigDict(strict=True))


def _check_leaf(name: str, python_type: type, value: object) -> object:
    try:
        return _strict(python_type).validate_python(value)
    except ValidationError:
        raise MismatchError(name, value) from None


class Handle:
    """A base that makes a class nominal whose form (dataclass, model) would otherwise make it a record."""

    __slots__ = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Identifier(Handle):
    """A value that a tool returned as an identifier: two are equal when their types and values are."""

    type: str
    value: object

    def __str__(self) -> str:
        return f"{self.type}({self.value!r})"


class Absent(enum.Enum):
    """The content of a field that was left out and has no default."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT


@dataclass(frozen=True, kw_only=True, slots=True)
class ScalarType:
    """`string`, `int`, `float` or `bool`. An int is accepted as a float; a bool is neither."""

    name: str
    python_type: type

    def validate(self, value: object) -> object:
        """The value, an int given for a float made one; raises `MismatchError`."""
        return _check_leaf(self.name, self.python_type, value)


@dataclass(frozen=True, kw_only=True, slots=True)
class DateType:
    """A calendar date, without a time."""

    @property
    def name(self) -> str:
        return "date"

    def validate(self, value: object) -> object:
        """The date; a datetime or a text is none, and raises `MismatchError`."""
        return _check_leaf(self.name, datetime.date, value)


@dataclass(frozen=True, kw_only=True, slots=True)
class EnumType:
    """One of several texts: a member of `python_type` where the hint was an enum class, else the text."""

    name: str
    members: tuple[str, ...]
    python_type: type[enum.Enum] | None = None

    def validate(self, value: object) -> object:
        """The member that is given or spelled; raises `MismatchError`."""
        if self.python_type is None:
            if type(value) is str and value in self.members:
                return value
        elif isinstance(value, self.python_type):
            return value
        elif type(value) is str and value in self.members:
            return list(self.python_type)[self.members.index(value)]
        raise MismatchError(f"{self.name} ({' | '.join(map(repr, self.members))})", value)

    def spelling(self, value: object) -> str:
        """The text of a member."""
        member = self.validate(value)
        if self.python_type is None:
            return str(member)
        return self.members[list(self.python_type).index(member)]  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class ListType:
    """A list whose items are all of one type."""

    item: ToolType

    @property
    def name(self) -> str:
        return f"list[{self.item.name}]"

    def validate(self, value: object) -> object:
        """A new list of the checked items; raises `MismatchError`, also for a tuple or a text."""
        if not isinstance(value, list):
            raise MismatchError(self.name, value)
        return [_check_part(self.item, item, f"[{index}]") for index, item in enumerate(value)]


@dataclass(frozen=True, slots=True)
class OptionalType:
    """A value or None."""

    item: ToolType

    @property
    def name(self) -> str:
        return f"optional[{self.item.name}]"

    def validate(self, value: object) -> object:
        """None or the checked value; raises `MismatchError`."""
        try:
            return None if value is None else self.item.validate(value)
        except MismatchError as error:
            if error.path:
                raise
            raise MismatchError(self.name, value) from None


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """A field of a record; `default` is None where there is none or where it is computed afresh each time."""

    name: str
    type: ToolType
    required: bool = True
    default: object = field(default=None, compare=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordType:
    """A pydantic model or a dataclass, whose fields can be read and which can be written out."""

    name: str
    fields: tuple[Field, ...] = field(compare=False)
    python_type: type

    def validate(self, value: object) -> object:
        """The record itself, its fields checked one by one; raises `MismatchError`."""
        if not isinstance(value, self.python_type):
            raise MismatchError(self.name, value)
        for part in self.fields:
            if part.required or getattr(value, part.name, None) is not ABSENT:
                self.read(value, part.name)
        return value

    def read(self, value: object, name: str) -> object:
        """The checked value of a field; raises `MismatchError` if it is missing, left out or ill-typed."""
        part = self.field(name)
        try:
            content = getattr(value, name)
        except AttributeError:
            raise MismatchError(f"{self.name} with a field {name!r}", value) from None
        if content is ABSENT:
            raise MismatchError(f"{self.name} whose field {name!r} is not left out", value)
        return _brand_part(part.type, content, f".{name}")

    def build(self, values: Mapping[str, object]) -> object:
        """A record from values of its fields, those with a default may lack; raises `MismatchError`."""
        checked = {name: _check_part(self.field(name).type, value, f".{name}") for name, value in values.items()}
        missing = [part.name for part in self.fields if part.required and part.name not in checked]
        if missing:
            raise MismatchError(f"{self.name} with {', '.join(map(repr, missing))}", dict(values))
        try:
            return self.python_type(**{name: release(self.field(name).type, item) for name, item in checked.items()})
        except ValueError as error:
            # A constraint of the class itself: pydantic's validation error is a ValueError.
            raise MismatchError(f"{self.name} ({_reason(error)})", dict(values)) from error

    def field(self, name: str) -> Field:
        """The field of that name; raises `MismatchError` with near misses."""
        for part in self.fields:
            if part.name == name:
                return part
        known = near_misses(name, (part.name for part in self.fields))
        raise MismatchError(f"a field of {self.name} ({known})", name)


@dataclass(frozen=True, kw_only=True, slots=True)
class HandleType:
    """A class without literals: its values come from tools only, and are passed on as they are.

    With `item` it is a type of identifiers: values of that type which a tool returned, branded as `Identifier`.
    """

    name: str
    python_type: type
    item: ToolType | None = None

    def validate(self, value: object) -> object:
        """The value itself; raises `MismatchError` unless it is an instance, an identifier of this very type."""
        if not isinstance(value, self.python_type):
            raise MismatchError(self.name, value)
        if self.item is not None and (not isinstance(value, Identifier) or value.type != self.name):
            raise MismatchError(self.name, value)
        return value


def nominal(name: str, item: ToolType) -> HandleType:
    """The type of identifiers of that name, whose plain values are of type `item`."""
    return HandleType(name=name, python_type=Identifier, item=item)


ToolType = ScalarType | DateType | EnumType | ListType | OptionalType | RecordType | HandleType

STRING = ScalarType(name="string", python_type=str)
INT = ScalarType(name="int", python_type=int)
FLOAT = ScalarType(name="float", python_type=float)
BOOL = ScalarType(name="bool", python_type=bool)
DATE = DateType()

BUILT_IN_TYPES: tuple[ToolType, ...] = (STRING, INT, FLOAT, BOOL, DATE)
# Spellings that no class may take, lest one text mean two types.
RESERVED_TYPE_NAMES = frozenset(kind.name for kind in BUILT_IN_TYPES) | {"list", "optional"}


def brand(kind: ToolType, value: object) -> object:
    """What a tool returned, or a field holds, as a value of its type; raises `MismatchError`.

    Like `validate`, but identifiers, which tools know as plain values, are branded.
    """
    match kind:
        case HandleType() if kind.item is not None and not isinstance(value, Identifier):
            return Identifier(type=kind.name, value=kind.item.validate(value))
        case ListType() if isinstance(value, list):
            return [_brand_part(kind.item, item, f"[{index}]") for index, item in enumerate(value)]
        case OptionalType() if value is not None:
            return brand(kind.item, value)
    return kind.validate(value)


def release(kind: ToolType, value: object) -> object:
    """A checked value as tools know it: identifiers become plain values again."""
    match kind:
        case HandleType() if isinstance(value, Identifier):
            return value.value
        case ListType() if isinstance(value, list):
            return [release(kind.item, item) for item in value]
        case OptionalType() if value is not None:
            return release(kind.item, value)
    return value


def parts_of(kind: ToolType) -> Iterator[ToolType]:
    """The types that a type is directly built from."""
    if isinstance(kind, ListType | OptionalType):
        yield kind.item
    elif isinstance(kind, RecordType):
        for part in kind.fields:
            yield part.type


def describe(kind: ToolType) -> str:
    """A type with the Python class behind it, where there is one: what tells apart two of one spelling."""
    python_type = getattr(kind, "python_type", None)
    if python_type is not None:
        return f"{kind.name} (the class {python_type.__module__}.{python_type.__qualname__})"
    if isinstance(kind, EnumType):
        return f"{kind.name} ({' | '.join(map(repr, kind.members))})"
    return kind.name


def _check_part(kind: ToolType, value: object, step: str) -> object:
    try:
        return kind.validate(value)
    except MismatchError as error:
        raise error.inside(step) from None


def _brand_part(kind: ToolType, value: object, step: str) -> object:
    try:
        return brand(kind, value)
    except MismatchError as error:
        raise error.inside(step) from None


def _reason(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(f"{'.'.join(map(str, item['loc'])) or 'value'}: {item['msg']}" for item in error.errors())
    return str(error)
