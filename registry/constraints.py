"""Constraints of JSON Schema that bound values without shaping their type: checked at each call, on JSON data."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from registry.errors import SchemaError
from registry.schema import resolve

_Test = Callable[[Any, Any], bool]


def _multiple(value: float, step: float) -> bool:
    quotient = value / step
    return math.isclose(quotient, round(quotient), rel_tol=1e-9, abs_tol=1e-9)


def _unique(items: list[object], wanted: bool) -> bool:
    return not wanted or all(item not in items[:index] for index, item in enumerate(items))


_NUMBERS: Final[Mapping[str, _Test]] = {
    "minimum": operator.ge,
    "maximum": operator.le,
    "exclusiveMinimum": operator.gt,
    "exclusiveMaximum": operator.lt,
    "multipleOf": _multiple,
}
_TEXTS: Final[Mapping[str, _Test]] = {
    "minLength": lambda value, bound: len(value) >= bound,
    "maxLength": lambda value, bound: len(value) <= bound,
    "pattern": lambda value, bound: re.search(bound, value) is not None,
}
_LISTS: Final[Mapping[str, _Test]] = {
    "minItems": lambda value, bound: len(value) >= bound,
    "maxItems": lambda value, bound: len(value) <= bound,
    "uniqueItems": _unique,
}
_OBJECTS: Final[Mapping[str, _Test]] = {
    "minProperties": lambda value, bound: len(value) >= bound,
    "maxProperties": lambda value, bound: len(value) <= bound,
}
_MEMBERS: Final[Mapping[str, _Test]] = {
    "enum": lambda value, members: value in members,
    "const": operator.eq,
}


def violations(schema: object, data: object, root: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """What a value breaks of its schema's constraints, one sentence each; null breaks none."""
    if not isinstance(schema, Mapping) or data is None:
        return
    if "$ref" in schema:
        yield from violations(resolve(root, schema["$ref"], "#"), data, root, place)
    for union in ("anyOf", "oneOf", "allOf"):
        # At most one member is more than null, so what is not null meets that one.
        for member in schema.get(union, ()):
            yield from violations(member, data, root, place)
    for word, test in _tests(data).items():
        if word in schema and not test(data, schema[word]):
            yield f"{place or 'the value'} breaks {word} {schema[word]!r}: {data!r}"
    if isinstance(data, list):
        for index, item in enumerate(data):
            yield from violations(schema.get("items"), item, root, f"{place}[{index}]")
    elif isinstance(data, Mapping):
        for key, part in (schema.get("properties") or {}).items():
            if key in data:
                yield from violations(part, data[key], root, f"{place}.{key}" if place else key)


def check_bounds(schema: object, pointer: str = "#") -> None:
    """Raise `SchemaError` for a constraint whose bound makes no sense, before any call."""
    if isinstance(schema, list):
        for index, part in enumerate(schema):
            check_bounds(part, f"{pointer}/{index}")
    if not isinstance(schema, Mapping):
        return
    for word, bound in schema.items():
        number = isinstance(bound, int | float) and not isinstance(bound, bool)
        wanted = "a number" if word in _NUMBERS else "a count" if word in {*_TEXTS, *_LISTS, *_OBJECTS} else None
        if word == "pattern":
            _check_pattern(bound, f"{pointer}/pattern")
        elif word == "uniqueItems" and isinstance(bound, bool):
            pass
        elif wanted and (not number or (wanted == "a count" and bound < 0) or (word == "multipleOf" and bound <= 0)):
            raise SchemaError(f"{pointer}/{word}", f"{bound!r} is not {wanted}")
    for word in ("properties", "$defs", "definitions"):
        for key, part in (schema.get(word) or {}).items():
            check_bounds(part, f"{pointer}/{word}/{key}")
    for word in ("items", "anyOf", "oneOf", "allOf"):
        check_bounds(schema.get(word), f"{pointer}/{word}")


def _check_pattern(pattern: object, pointer: str) -> None:
    try:
        re.compile(pattern)  # type: ignore[call-overload]
    except (re.error, TypeError) as error:
        raise SchemaError(pointer, f"{pattern!r} is no regular expression that Python reads: {error}") from error


def _tests(data: object) -> Mapping[str, _Test]:
    """The constraints that apply to data of this kind: those of other kinds say nothing about it."""
    if isinstance(data, bool):
        return _MEMBERS
    if isinstance(data, int | float):
        return {**_NUMBERS, **_MEMBERS}
    if isinstance(data, str):
        return {**_TEXTS, **_MEMBERS}
    return _LISTS if isinstance(data, list) else _OBJECTS
