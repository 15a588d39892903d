"""Amendments of NESTFUL's stated types: a parameter's gives way where some uses contradict it and another fits all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from episodes.importers.base import InexpressibleError, express
from episodes.importers.nestful_bridges import Bridges, respelled
from episodes.importers.nestful_catalogue import Catalogue, undefined
from episodes.importers.nestful_programs import ANY_REFERENCE, RESULT, Translation, fits, natural
from registry import Registry
from registry.schema import identifier
from registry.types import BOOL, FLOAT, INT, STRING, ListType, OptionalType, ToolType

Target = tuple[str, str]  # a tool and its parameter, as the catalogue calls them

_SCHEMAS = {STRING: "string", INT: "integer", FLOAT: "number", BOOL: "boolean"}


def amend(catalogue: Catalogue, data: Sequence[Mapping[str, Any]]) -> None:
    """Amend parameters of which some use neither is of the stated type nor can be converted to it."""
    registry, bridges = catalogue.registry(lambda _: undefined), Bridges()
    uses: dict[Target, list[object | ToolType]] = {}
    for item in data:
        for target, use in _uses(registry, catalogue, item["output"]):
            uses.setdefault(target, []).append(use)
    for (tool, key), found in uses.items():
        kind = registry[identifier(tool)].parameter(identifier(key)).type
        wanted = kind.item if isinstance(kind, OptionalType) else kind
        for other in _candidates([use for use in found if not _holds(use, wanted, bridges)]):
            schema = _schema(other)
            if schema is not None and all(_holds(use, other, bridges) for use in found):
                catalogue.amended[tool, "in", (key,)] = schema
                break


def _candidates(wrong: Sequence[object]) -> Iterator[ToolType]:
    for value in wrong:
        if isinstance(value, ToolType):
            yield value
            continue
        try:
            yield natural(value)
        except InexpressibleError:
            continue


def _uses(registry: Registry, catalogue: Catalogue, steps: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Target, Any]]:
    """What one program passes to each parameter: a literal, or the type of a reference."""
    translation = Translation(registry=registry, bridges=None)
    for step in steps:
        if step["name"] == RESULT:
            continue
        for key, value in step["arguments"].items():
            if key not in catalogue.specs[step["name"]]["query_parameters"]:
                continue
            if "$var" not in str(value):
                yield (step["name"], key), value
            elif isinstance(value, str) and ANY_REFERENCE.fullmatch(value):
                try:
                    yield (step["name"], key), translation.refer(value)[1]
                except InexpressibleError:
                    continue
        translation.known[identifier(step["label"])] = registry[identifier(step["name"])].returns


def _holds(use: object, kind: ToolType, bridges: Bridges) -> bool:
    """Whether a use is of a type, or can be written out as one."""
    if isinstance(use, ToolType):
        return fits(use, kind) or bridges.conversions(use, kind) is not None
    if isinstance(use, list) and isinstance(kind, ListType):
        return all(_holds(item, kind.item, bridges) for item in use)
    try:
        express(use, kind, "")
    except InexpressibleError:
        try:
            own = natural(use)
            return respelled(use, kind) is not None or bridges.conversions(own, kind, literal=True) is not None
        except InexpressibleError:
            return False
    return True


def _schema(kind: ToolType) -> dict[str, Any] | None:
    """A type as JSON Schema; None for those that only their place can name."""
    if isinstance(kind, ListType):
        items = _schema(kind.item)
        return None if items is None else {"type": "array", "items": items}
    return {"type": _SCHEMAS[kind]} if kind in _SCHEMAS else None
