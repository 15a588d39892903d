"""How many bindings it takes before a type can be returned, decided exactly up to a bound of the search.

Bindings only ever add to what can be read, so what matters of a Γ is the set of types that can be read from it and that
no literal has (`guarded`). A binding adds those of its tool's result. The least number of bindings is the length of a
shortest path between such sets; it is searched breadth first over the types that the wanted one can depend on. This is
a covering problem, so the sets are bounded in number. Past the bound the answer is a lower bound: then a step may be
admitted that leads nowhere, and none is cut off that leads somewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

from dialects.realizable import guarded, readable
from dialects.universe import Universe
from registry import Registry
from registry.types import ToolType

# Sets of types that one search looks at. Each takes about 10 µs for every tool that matters.
MAX_STATES = 2_000


@dataclass(frozen=True, slots=True)
class _Maker:
    """What a tool or a record needs and gives, of the guarded types."""

    needs: frozenset[str]
    gives: frozenset[str]


@final
class Distances:
    """Numbers of bindings, for one registry; immutable."""

    def __init__(self, universe: Universe, registry: Registry, *, nested: bool, max_states: int = MAX_STATES) -> None:
        self._guarded = frozenset(kind.name for kind in guarded(universe))
        self._max_states = max_states
        required = [(tool, [part.type for part in tool.parameters if part.required]) for tool in registry.values()]
        makers = (_Maker(self._kept(needs), self._readable([tool.returns])) for tool, needs in required)
        # What one binding does, and what an expression inside a step does without any.
        self._tools = tuple(dict.fromkeys(maker for maker in makers if maker.gives))
        inner = [
            _Maker(self._kept(part.type for part in record.fields if part.required), self._kept([record]))
            for record in universe.written
        ]
        if nested:  # the result itself stands in an expression, and its fields do not
            inner += [_Maker(self._kept(needs), self._kept([tool.returns])) for tool, needs in required]
        self._inner = tuple(dict.fromkeys(maker for maker in inner if maker.gives))

    def bindings(self, bound: Iterable[ToolType], output: ToolType, at_most: int) -> int:
        """The least number of bindings after which `output` can be returned; `at_most` + 1 when it takes more.

        Never too many, and exact unless the search meets its bound.
        """
        wanted = self._kept([output])
        tools, inner = self._relevant(wanted)
        seen = level = {self._readable(bound)}
        for depth in range(at_most + 1):
            reached = [self._closed(state, inner) for state in level]
            if any(wanted <= closed for closed in reached):
                return depth
            level = {
                state | tool.gives
                for state, closed in zip(level, reached, strict=True)
                for tool in tools
                if tool.needs <= closed and not tool.gives <= state
            } - seen
            seen = seen | level
            if not level:
                break
            if len(seen) > self._max_states:
                return max(depth + 1, self._rounds(level, wanted, tools, inner, depth + 1, at_most))
        return at_most + 1

    def _rounds(
        self,
        states: Iterable[frozenset[str]],
        wanted: frozenset[str],
        tools: tuple[_Maker, ...],
        inner: tuple[_Maker, ...],
        depth: int,
        at_most: int,
    ) -> int:
        """A lower bound from these states on: every tool that can be called is, each time."""
        state = frozenset().union(*states)
        while depth <= at_most:
            closed = self._closed(state, inner)
            if wanted <= closed:
                return depth
            more = state.union(*(tool.gives for tool in tools if tool.needs <= closed))
            if more == state:
                break
            state, depth = more, depth + 1
        return at_most + 1

    def _closed(self, state: frozenset[str], inner: tuple[_Maker, ...]) -> frozenset[str]:
        """The guarded types that some expression has, where those of `state` can be read."""
        while True:
            more = state.union(*(maker.gives for maker in inner if maker.needs <= state))
            if more == state:
                return state
            state = more

    def _relevant(self, wanted: frozenset[str]) -> tuple[tuple[_Maker, ...], tuple[_Maker, ...]]:
        """Tools and inner makers that `wanted` can depend on, their gifts cut to that."""
        needed = wanted
        while True:
            more = needed.union(*(maker.needs for maker in (*self._tools, *self._inner) if maker.gives & needed))
            if more == needed:
                break
            needed = more
        tools = (_Maker(maker.needs, maker.gives & needed) for maker in self._tools if maker.gives & needed)
        return tuple(dict.fromkeys(tools)), tuple(maker for maker in self._inner if maker.gives & needed)

    def _readable(self, kinds: Iterable[ToolType]) -> frozenset[str]:
        return self._kept(readable(kinds))

    def _kept(self, kinds: Iterable[ToolType]) -> frozenset[str]:
        return frozenset(kind.name for kind in kinds) & self._guarded
