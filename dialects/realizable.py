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


def let_key(kind: ToolType) -> str:
    """The ambient key that says: a result of this type may be bound, where not every result may."""
    return f"let {kind.name}"


def return_key(kind: ToolType) -> str:
    """The ambient key that says: this guarded type is what a program returns, once an expression of it exists."""
    return f"return {kind.name}"


def name_key(kind: ToolType) -> str:
    """The ambient key that says: a name of this type is bound."""
    return f"name {kind.name}"


def read_key(kind: ToolType) -> str:
    """The ambient key that says: a name of this type is bound, or a field of this type can be read."""
    return f"read {kind.name}"


def guarded(universe: Universe) -> tuple[ToolType, ...]:
    """The demanded types that no literal has, so that it takes a key: handles, and records that require one."""
    written = _literal(universe, set())
    return tuple(kind for kind in universe if kind.name in universe.demanded and kind.name not in written)


def telling(universe: Universe, registry: Registry) -> tuple[ToolType, ...]:
    """The types of results from which something can be read that no literal has: only they make more steps possible."""
    needy = {kind.name for kind in guarded(universe)}
    results = {tool.returns.name: tool.returns for tool in registry.values()}
    return tuple(kind for kind in results.values() if any(part.name in needy for part in readable([kind])))


def name_keys(bound: Iterable[ToolType]) -> dict[str, str]:
    """The keys of names of these types, with the types that they hold."""
    kinds = list(bound)
    keys = {name_key(kind): kind.name for kind in kinds}
    return keys | {read_key(kind): kind.name for kind in readable(kinds) if isinstance(kind, RecordType)}


def gains(universe: Universe, registry: Registry, kind: ToolType, *, nested: bool) -> tuple[ToolType, ...]:
    """The guarded types that may come to exist when a name of this type is bound; some that need more come too."""
    needy = {guard.name: guard for guard in guarded(universe)}
    found = {part.name for part in readable([kind])} & set(needy)
    # What makes a type inside an expression, and the types that it requires.
    makers = [(record.name, [part.type for part in record.fields if part.required]) for record in universe.written]
    if nested:
        tools = registry.values()
        makers += [(tool.returns.name, [part.type for part in tool.parameters if part.required]) for tool in tools]
    while True:
        more = {result for result, parts in makers if result in needy and any(part.name in found for part in parts)}
        if more <= found:
            return tuple(guard for name, guard in needy.items() if name in found)
        found |= more


class Results(Enum):
    """Where the results of calls can stand in an expression."""

    NOWHERE = "nowhere"  # arguments are no calls: only Γ and literals count
    NESTED = "nested"  # an argument may be a call, but no field is read from one
    BOUND = "bound"  # later steps see results as bound names, with their fields


def inhabited(
    universe: Universe, registry: Registry, context: Mapping[str, ToolType], results: Results
) -> frozenset[str]:
    """Spellings of the types that some expression has."""
    found = {kind.name for kind in readable(context.values())}
    while True:
        found |= _literal(universe, found)
        made = [tool.returns for tool in _callable(registry, found)] if results is not Results.NOWHERE else []
        names = {kind.name for kind in (readable(made) if results is Results.BOUND else made)}
        if names <= found:
            return frozenset(found)
        found |= names


def can_call(registry: Registry, types: Set[str], returns: ToolType | None = None) -> bool:
    """Whether all required arguments of some tool exist, of one that returns that type where one is given."""
    return any(returns is None or tool.returns == returns for tool in _callable(registry, types))


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
            for record in universe.written
            if all(part.type.name in found for part in record.fields if part.required)
        }
        if more <= found:
            return found
        found |= more


def readable(kinds: Iterable[ToolType]) -> list[ToolType]:
    """The types of bound names, and of the fields that can be read from them."""
    waiting, found = list(kinds), []
    while waiting:
        kind = waiting.pop()
        if kind not in found:
            found.append(kind)
            waiting += [part.type for part in kind.fields] if isinstance(kind, RecordType) else []
    return found
