"""From a function to a tool's signature: its parameters and its result, each with a type."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from registry.ambient import CallContext, ContextParameter
from registry.errors import MismatchError, SignatureError
from registry.hints import SUPPORTED_HINTS, UnsupportedHint, annotated_description, read_hint, snake_case
from registry.types import ToolType


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """One parameter; `default` means something only where the parameter is not required."""

    name: str
    type: ToolType
    required: bool = True
    default: object = field(default=None, hash=False)
    description: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Signature:
    """The typed parameters, in the order of declaration, and the type of the result."""

    parameters: tuple[Parameter, ...]
    returns: ToolType
    context: ContextParameter | None = None


_VARIADIC = {
    inspect.Parameter.VAR_POSITIONAL: "it takes any number of arguments; take one list[T] instead",
    inspect.Parameter.VAR_KEYWORD: "it takes any keyword; declare each parameter, or take a record",
    inspect.Parameter.POSITIONAL_ONLY: "it has no name for its caller; drop the / after it",
}


def read_signature(function: Callable[..., Any], tool: str, descriptions: Mapping[str, str]) -> Signature:
    """The signature of a function; raises `SignatureError` naming the tool and the parameter."""
    if not isinstance(function, types.FunctionType | types.MethodType):
        raise SignatureError(f"tool {tool!r}: {function!r} is not a function or a bound method; wrap it in one")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise SignatureError(f"tool {tool!r} is a generator; return a list instead")
    signature = inspect.signature(function)
    declared = list(signature.parameters.values())
    context = _context(function, tool, declared[0]) if declared else None
    parameters = tuple(
        _parameter(function, tool, parameter, descriptions.get(parameter.name, ""))
        for parameter in (declared if context is None else declared[1:])
    )
    if signature.return_annotation is inspect.Signature.empty:
        raise SignatureError(f"tool {tool!r} has no return annotation; say what it returns: {SUPPORTED_HINTS}")
    place = f"tool {tool!r}, result"
    returns, _ = _read(function, signature.return_annotation, place, snake_case(f"{tool}_result"))
    return Signature(parameters=parameters, returns=returns, context=context)


def _context(function: Callable[..., Any], tool: str, first: inspect.Parameter) -> ContextParameter | None:
    """The first parameter, where its hint says that the caller gives it."""
    if first.annotation is inspect.Parameter.empty or first.kind in _VARIADIC:
        return None
    try:
        hint = _resolved(function, first.annotation)
    except UnsupportedHint:
        return None  # it is refused where it is read as an ordinary parameter, with its place
    base = typing.get_origin(hint) or hint
    if not isinstance(base, type) or not issubclass(base, CallContext):
        return None
    return ContextParameter(name=first.name, hint=hint, type=base)


def _parameter(function: Callable[..., Any], tool: str, parameter: inspect.Parameter, description: str) -> Parameter:
    place = f"tool {tool!r}, parameter {parameter.name!r}"
    if parameter.kind in _VARIADIC:
        raise SignatureError(f"{place}: {_VARIADIC[parameter.kind]}")
    if parameter.annotation is inspect.Parameter.empty:
        raise SignatureError(f"{place} has no type hint; supported are {SUPPORTED_HINTS}")
    if _context(function, tool, parameter) is not None:
        raise SignatureError(f"{place}: what the run gives comes first; move it to the front of the parameters")
    kind, annotated = _read(function, parameter.annotation, place, snake_case(f"{tool}_{parameter.name}"))
    required = parameter.default is inspect.Parameter.empty
    default = None
    if not required:
        try:
            default = kind.validate(parameter.default)
        except MismatchError as error:
            remedy = "; write T | None" if parameter.default is None else ""
            raise SignatureError(f"{place}: the default is not of the parameter's type: {error}{remedy}") from error
    return Parameter(
        name=parameter.name,
        type=kind,
        required=required,
        default=default,
        description=annotated or description,
    )


def _read(function: Callable[..., Any], annotation: object, place: str, anonymous: str) -> tuple[ToolType, str | None]:
    """The type and the description of one annotation."""
    try:
        hint = _resolved(function, annotation)
        return read_hint(hint, anonymous), annotated_description(hint)
    except UnsupportedHint as error:
        raise SignatureError(f"{place}: {error}; supported are {SUPPORTED_HINTS}") from error


def _resolved(function: Callable[..., Any], annotation: object) -> object:
    """An annotation that was written or kept as text, evaluated where its function was defined."""
    if annotation is None:
        return None
    namespace = getattr(inspect.unwrap(function), "__globals__", {})
    holder = types.SimpleNamespace(__annotations__={"hint": annotation})
    try:
        return typing.get_type_hints(holder, globalns=namespace, include_extras=True)["hint"]
    except (NameError, SyntaxError, AttributeError, TypeError) as error:
        raise UnsupportedHint(
            f"the hint {annotation!r} cannot be read ({error}); names in it must be known at the top level "
            "of the module"
        ) from error
