"""Which types some expression has, decided exactly: a least fixed point over a finite universe.

A step is cut off as soon as it demands what Γ cannot provide, by premises on ambient keys: `'some docs' ∈ Γ` holds
when an expression of type docs exists. Γ does not change inside a step, so the caller can set the keys beforehand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from enum import Enum

from dialects.universe import Universe
from registry import Registry, Tool
from registry.types import HandleType, RecordType, ToolType

# The ambient key that says: some tool can be called.
CALL_KEY = "some call"


def key_of(kind: ToolType) -> str:
    """The ambient key that says: an expression of this type exists."""
    return f"some {kind.name}"


def guarded(universe: Universe) -> tuple[ToolType, ...]:
    """The types that no literal has, so that demanding them needs a key: handles, and records that require one."""
    written = _literal(universe, set())
    return tuple(kind for kind in universe if kind.name not in written)


class Results(Enum):
    """Where the results of calls can stand in an expression."""

    NOWHERE = "nowhere"  # arguments are no calls: only Γ and literals count
    NESTED = "nested"  # an argument may be a call, but no field is read from one
    BOUND = "bound"  # later steps see results as bound names, with their fields


def inhabited(
    universe: Universe, registry: Registry, context: Mapping[str, ToolType], results: Results
) -> frozenset[str]:
    """Spellings of the types that some expression has."""
    found = {kind.name for kind in _readable(context.values())}
    while True:
        found |= _literal(universe, found)
        made = [tool.returns for tool in _callable(registry, found)] if results is not Results.NOWHERE else []
        names = {kind.name for kind in (_readable(made) if results is Results.BOUND else made)}
        if names <= found:
            return frozenset(found)
        found |= names


def can_call(registry: Registry, types: Set[str]) -> bool:
    """Whether some tool's required arguments all exist."""
    return bool(_callable(registry, types))


def _callable(registry: Registry, types: Set[str]) -> list[Tool]:
    return [
        tool for tool in registry.values() if all(part.type.name in types for part in tool.parameters if part.required)
    ]


def _literal(universe: Universe, given: set[str]) -> set[str]:
    """Types of literals whose parts may also come from `given`; lists may be empty, and null is optional."""
    found = set(given) | {kind.name for kind in universe if not isinstance(kind, HandleType | RecordType)}
    while True:
        more = {
            record.name
            for record in universe.records
            if all(part.type.name in found for part in record.fields if part.required)
        }
        if more <= found:
            return found
        found |= more


def _readable(kinds: Iterable[ToolType]) -> list[ToolType]:
    """The types of bound names, and of the fields that can be read from them."""
    waiting, found = list(kinds), []
    while waiting:
        kind = waiting.pop()
        if kind not in found:
            found.append(kind)
            waiting += [part.type for part in kind.fields] if isinstance(kind, RecordType) else []
    return found
