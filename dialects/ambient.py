"""What a start tells the grammar: the ambient keys that say what may be bound and returned, and what exists under Γ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from dialects.discipline import OPEN_KEY, OUTPUT_KEY
from dialects.realizable import (
    CALL_KEY,
    Results,
    can_call,
    guarded,
    inhabited,
    key_of,
    let_key,
    name_keys,
    return_key,
    telling,
)
from dialects.turns import Distances
from dialects.universe import Universe
from registry import Registry
from registry.types import OptionalType, ToolType


@final
class Ambient:
    """Works out the keys for starts of one lowered language; immutable."""

    def __init__(
        self, universe: Universe, registry: Registry, *, nested: bool, realizable: bool, announced: bool
    ) -> None:
        self._universe, self._registry = universe, registry
        self._nested, self._realizable, self._announced = nested, realizable, announced
        self._distances = Distances(universe, registry, nested=nested)
        self._any = next(iter(universe)).name  # for the keys that only say yes

    def step(
        self, context: Mapping[str, ToolType], output: ToolType | None = None, turns: int | None = None
    ) -> dict[str, str]:
        """The keys of a step; with `turns`, one of which it is, only of steps that still leave a way to return."""
        if not self._realizable:
            return self._all(output)
        types = self._inhabited(context)
        keys = self._of_types(types) | self._names(context)
        callable_ = can_call(self._registry, types)
        if output is None:
            keys |= {OPEN_KEY: self._any} if self._openly(context, types) else {}
        elif output.name in types:
            keys[OUTPUT_KEY] = output.name
        if turns is None:
            return keys | ({CALL_KEY: self._any} if callable_ else {})
        if output is None:
            # After any binding its name can be returned.
            return keys | ({CALL_KEY: self._any} if callable_ and turns > 1 else {})
        return keys | self._timely(context, types, output, turns - 1)

    def program(self, context: Mapping[str, ToolType], output: ToolType | None = None) -> dict[str, str]:
        """The keys of a program, which tells its later steps what its bindings add to them."""
        if not self._realizable:
            return self._all(output)
        types = self._inhabited(context)
        keys = self._of_types(types) | self._names(context)
        callable_ = can_call(self._registry, types)
        if output is None:
            returns = {OPEN_KEY: self._any} if callable_ or self._openly(context, types) else {}
        elif output.name in types:
            returns = {OUTPUT_KEY: output.name}
        elif callable_ and output.name in inhabited(self._universe, self._registry, context, Results.BOUND):
            returns = {return_key(output) if output in guarded(self._universe) else OUTPUT_KEY: output.name}
        else:
            return {}  # no program can return it
        return keys | returns | ({CALL_KEY: self._any} if callable_ else {})

    def _all(self, output: ToolType | None) -> dict[str, str]:
        types = frozenset(self._universe.by_name)
        returns = {OPEN_KEY: self._any} if output is None else {OUTPUT_KEY: output.name}
        return self._of_types(types) | self._names(self._universe.by_name) | returns | {CALL_KEY: self._any}

    def _timely(
        self, context: Mapping[str, ToolType], types: frozenset[str], output: ToolType, left: int
    ) -> dict[str, str]:
        """The keys of bindings after which the output can still be returned, when `left` may be made from here on."""
        bound = tuple(context.values())
        needed = self._distances.bindings(bound, output, left)
        if needed < left:
            return {CALL_KEY: self._any} if can_call(self._registry, types) else {}
        if needed > left or left == 0:
            return {}
        return {
            let_key(kind): kind.name
            for kind in telling(self._universe, self._registry)
            if can_call(self._registry, types, kind)
            and self._distances.bindings((*bound, kind), output, left - 1) < left
        }

    def _of_types(self, types: frozenset[str]) -> dict[str, str]:
        return {key_of(kind): kind.name for kind in guarded(self._universe) if kind.name in types}

    def _names(self, context: Mapping[str, ToolType]) -> dict[str, str]:
        """What can be referred to, where the grammar asks for it."""
        return name_keys(context.values()) if self._announced else {}

    def _inhabited(self, context: Mapping[str, ToolType]) -> frozenset[str]:
        results = Results.NESTED if self._nested else Results.NOWHERE
        return inhabited(self._universe, self._registry, context, results)

    def _openly(self, context: Mapping[str, ToolType], types: frozenset[str]) -> bool:
        """Whether something can be returned where any type may be: something of a type of its own, as null has not."""
        if context or (self._nested and can_call(self._registry, types)):
            return True
        return any(not isinstance(self._universe.by_name[name], OptionalType) for name in types)
