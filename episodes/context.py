"""Γ with values: names bound to typed values, immutable, so that a failed step leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import final

from episodes.errors import BoundNameError, UnboundNameError, near_miss
from episodes.plain import SHOWN_CHARACTERS, short
from registry.types import ToolType


@dataclass(frozen=True, kw_only=True, slots=True)
class Binding:
    """A name, its type as steps see it, and its value."""

    name: str
    type: ToolType
    value: object

    def short(self, characters: int = SHOWN_CHARACTERS) -> str:
        """The value on one line, cut with its size stated."""
        return short(self.value, characters=characters)

    def __str__(self) -> str:
        return f"{self.name} : {self.type.name} = {self.short()}"


@final
class Bindings(Mapping[str, Binding]):
    """A persistent map from names to bindings, in the order in which they were bound."""

    __slots__ = ("_by_name",)

    def __init__(self, bindings: Iterable[Binding] = ()) -> None:
        self._by_name: dict[str, Binding] = {}
        for binding in bindings:
            _refuse_rebinding(binding.name, self._by_name)
            self._by_name[binding.name] = binding

    def bind(self, binding: Binding) -> Bindings:
        """A map with one binding more. Raises `BoundNameError`, since binders are fresh."""
        return Bindings((*self._by_name.values(), binding))

    def types(self) -> dict[str, ToolType]:
        """Γ as the oracle takes it."""
        return {name: binding.type for name, binding in self._by_name.items()}

    def __getitem__(self, name: str) -> Binding:
        try:
            return self._by_name[name]
        except KeyError:
            raise UnboundNameError(f"{name!r} is not bound; {near_miss(name, self._by_name)}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __eq__(self, other: object) -> bool:
        return self._by_name == other._by_name if isinstance(other, Bindings) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self._by_name))

    def __repr__(self) -> str:
        return f"Bindings({', '.join(map(str, self._by_name.values()))})"


def _refuse_rebinding(name: str, bound: Mapping[str, Binding]) -> None:
    if name in bound:
        raise BoundNameError(f"{name!r} is bound already ({bound[name]}); choose a fresh name")
