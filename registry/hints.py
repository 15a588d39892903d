"""From type hints to types: every hint means exactly one type, or is refused with the reason."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import inspect
import re
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin

import typing_extensions
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from registry.errors import SignatureError
from registry.types import (
    BOOL,
    DATE,
    FLOAT,
    INT,
    RESERVED_TYPE_NAMES,
    STRING,
    EnumType,
    Field,
    Handle,
    HandleType,
    ListType,
    OptionalType,
    RecordType,
    ToolType,
    nominal,
)

SUPPORTED_HINTS = (
    "str, int, float, bool, datetime.date, Literal of strings, enum classes, list[T], T | None, "
    "pydantic models and dataclasses as records, classes of your own as handles, "
    "and NewType or Annotated[str, Nominal(...)] for identifiers"
)

_SIMPLE: Mapping[object, ToolType] = {str: STRING, int: INT, float: FLOAT, bool: BOOL, datetime.date: DATE}

_REMEDIES: Mapping[object, str] = {
    Any: "say which type it is",
    None: "return something that says what was done, such as a bool or a str",
    types.NoneType: "return something that says what was done, such as a bool or a str",
    dict: "declare a dataclass or a pydantic model with the keys as fields",
    list: "say of what: list[str], for instance",
    tuple: "use a dataclass, or list[T]",
    set: "use list[T]",
    frozenset: "use list[T]",
    datetime.datetime: "use datetime.date, or str in ISO format",
    bytes: "use str, or a class of your own as a handle",
    object: "say which type it is",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Nominal:
    """Marks a text or an int as an identifier: `Annotated[str, Nominal("FileId")]`.

    Such a value comes from a tool's result only, so that a step can refer to one but never write one.
    """

    name: str


class UnsupportedHint(Exception):
    """Why a hint means no type; whoever asked makes a `SignatureError` of it, which adds the place."""


def type_from_hint(hint: object, *, name: str = "output") -> ToolType:
    """The type that a hint means; `name` is the spelling of a Literal that has no name of its own."""
    try:
        return read_hint(hint, name)
    except UnsupportedHint as error:
        raise SignatureError(f"{error}; supported are {SUPPORTED_HINTS}") from error


def read_hint(hint: object, anonymous: str, within: tuple[type, ...] = ()) -> ToolType:
    """The type that a hint means; `within` are the records that are being read, to notice recursion."""
    simple = _SIMPLE.get(hint) if isinstance(hint, type) else None
    if simple is not None:
        return simple
    if isinstance(hint, typing_extensions.TypeAliasType):
        return read_hint(hint.__value__, snake_case(hint.__name__), within)
    origin = get_origin(hint)
    if origin is Annotated:
        marks = [extra for extra in get_args(hint)[1:] if isinstance(extra, Nominal)]
        if marks:
            return _identifier(marks[-1].name, get_args(hint)[0], anonymous)
        # The class of a record applies the constraints of its own fields; elsewhere nothing would.
        if not within:
            annotated_description(hint)
        return read_hint(get_args(hint)[0], anonymous, within)
    if origin is Literal:
        return _literal(hint, anonymous)
    if origin in (Union, types.UnionType):
        return _union(hint, anonymous, within)
    if origin is list:
        return ListType(read_hint(get_args(hint)[0], anonymous, within))
    if isinstance(hint, NewType):
        return _identifier(snake_case(hint.__name__), hint.__supertype__, anonymous)
    if isinstance(hint, type) and origin is None:
        return _class(hint, within)
    raise UnsupportedHint(_refusal(hint))


def annotated_description(hint: object) -> str | None:
    """The text in `Annotated[T, "..."]` or `Annotated[T, Field(description="...")]`; nothing else may be."""
    if get_origin(hint) is not Annotated:
        return None
    description = None
    for extra in get_args(hint)[1:]:
        if isinstance(extra, str):
            description = extra
        elif isinstance(extra, Nominal):
            pass  # its meaning is the type's
        elif isinstance(extra, FieldInfo) and not extra.metadata and extra.is_required():
            description = extra.description or description
        else:
            raise UnsupportedHint(
                f"{shown_hint(hint)} carries {extra!r}, which a type cannot promise; "
                "keep the description, test the value in the tool and raise ModelRetry"
            )
    return description


def snake_case(name: str) -> str:
    """`SearchResult` as `search_result`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def shown_hint(hint: object) -> str:
    """A hint as its author wrote it, as far as Python keeps that."""
    return hint.__name__ if isinstance(hint, type) and get_origin(hint) is None else str(hint)


def _identifier(name: str, item: object, anonymous: str) -> HandleType:
    kind = read_hint(item, anonymous)
    if kind not in (STRING, INT):
        raise UnsupportedHint(f"the identifier {name} is made of {kind.name}; only str and int can be identifiers")
    return nominal(_type_name(name), kind)


def _literal(hint: object, anonymous: str) -> EnumType:
    members = get_args(hint)
    if not all(type(member) is str for member in members):
        raise UnsupportedHint(f"{hint} has members that are not strings; only strings can be members")
    return EnumType(name=_type_name(anonymous), members=tuple(dict.fromkeys(members)))


def _union(hint: object, anonymous: str, within: tuple[type, ...]) -> ToolType:
    others = [member for member in get_args(hint) if member is not types.NoneType]
    if len(others) != 1 or len(others) == len(get_args(hint)):
        raise UnsupportedHint(f"{hint} is a union of several types; use one of them, or T | None")
    item = read_hint(others[0], anonymous, within)
    # An alias may hide an inner None: nothing tells `None` from a missing optional.
    return item if isinstance(item, OptionalType) else OptionalType(item)


def _class(hint: type, within: tuple[type, ...]) -> ToolType:
    if issubclass(hint, enum.Enum):
        return _enum(hint)
    if issubclass(hint, Handle) and hint is not Handle:
        return HandleType(name=_type_name(snake_case(hint.__name__)), python_type=hint)
    if dataclasses.is_dataclass(hint) or issubclass(hint, BaseModel):
        return _record(hint, within)
    unchecked = typing_extensions.is_protocol(hint) or typing_extensions.is_typeddict(hint)
    builtin = any(base.__module__ == "builtins" for base in hint.__mro__ if base is not object)
    if hint in _REMEDIES or hint.__module__ == "typing" or unchecked or builtin or hint is Handle:
        raise UnsupportedHint(_refusal(hint))
    return HandleType(name=_type_name(snake_case(hint.__name__)), python_type=hint)


def _enum(hint: type[enum.Enum]) -> EnumType:
    """Members are spelled by their values where all of these are strings, else by their names."""
    values = [member.value for member in hint]
    if not values:
        raise UnsupportedHint(f"the enum {hint.__name__} has no members")
    texts = values if all(isinstance(value, str) for value in values) else [member.name for member in hint]
    return EnumType(name=_type_name(hint.__name__), members=tuple(map(str, texts)), python_type=hint)


def _record(hint: type, within: tuple[type, ...]) -> RecordType:
    if hint in within:
        chain = " -> ".join(record.__name__ for record in (*within[within.index(hint) :], hint))
        raise UnsupportedHint(
            f"the record {hint.__name__} contains itself ({chain}); make it a handle: class X(Handle)"
        )
    name = _type_name(hint.__name__)
    fields = []
    for part, annotation, required, default in _record_fields(hint):
        try:
            kind = read_hint(annotation, snake_case(f"{name}_{part}"), (*within, hint))
        except UnsupportedHint as error:
            raise UnsupportedHint(f"field {part!r} of {name}: {error}") from error
        fields.append(Field(name=part, type=kind, required=required, default=default))
    return RecordType(name=name, fields=tuple(fields), python_type=hint)


def _record_fields(hint: type) -> Iterator[tuple[str, object, bool, object]]:
    """Name, annotation, whether it is required, and default of each field."""
    try:
        yield from _model_fields(hint) if issubclass(hint, BaseModel) else _dataclass_fields(hint)
    except NameError as error:
        raise UnsupportedHint(f"{hint.__name__}: {error}; declare it at the top level of a module") from error


def _model_fields(hint: type[BaseModel]) -> Iterator[tuple[str, object, bool, object]]:
    hint.model_rebuild()
    by_name = hint.model_config.get("populate_by_name") or hint.model_config.get("validate_by_name")
    for name, info in hint.model_fields.items():
        if info.validation_alias is not None and not by_name:
            raise UnsupportedHint(
                f"field {name!r} of {hint.__name__} can only be set by an alias; set validate_by_name in its config"
            )
        default = None if info.default is PydanticUndefined else info.default
        marks = [extra for extra in info.metadata if isinstance(extra, Nominal)]
        yield name, Annotated[info.annotation, marks[-1]] if marks else info.annotation, info.is_required(), default


def _dataclass_fields(hint: Any) -> Iterator[tuple[str, object, bool, object]]:
    annotations = typing.get_type_hints(hint, include_extras=True)
    fields = dataclasses.fields(hint)
    # What is written out must be constructible from its fields.
    if odd := {part.name for part in fields} ^ set(inspect.signature(hint).parameters):
        raise UnsupportedHint(
            f"the constructor of {hint.__name__} does not take just its fields ({', '.join(sorted(odd))}); "
            "make it a handle: class X(Handle)"
        )
    for part in fields:
        absent = part.default is dataclasses.MISSING
        required = absent and part.default_factory is dataclasses.MISSING
        yield part.name, annotations[part.name], required, None if absent else part.default


def _type_name(name: str) -> str:
    if name in RESERVED_TYPE_NAMES:
        raise UnsupportedHint(f"the type name {name!r} is taken by a built-in type; rename the class")
    if not name.isidentifier():
        raise UnsupportedHint(f"the type name {name!r} is not an identifier; give it a name by subclassing")
    return name


def _refusal(hint: object) -> str:
    origin = get_origin(hint) or hint
    # By identity: a hint can be anything, also something that has no hash.
    remedy = next((text for known, text in _REMEDIES.items() if known is origin), None)
    if (
        remedy is None
        and isinstance(origin, type)
        and issubclass(origin, str | int | float | bool | list | dict | tuple)
    ):
        remedy = "a subclass of a built-in type is neither that type nor a handle; hold the value in a class"
    return f"the hint {shown_hint(hint)} is not supported" + (f" ({remedy})" if remedy else "")
