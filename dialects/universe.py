"""The finite set of types that a lowered language talks about: those of a registry, closed under their parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dialects.errors import LoweringError
from registry import Registry
from registry.types import (
    FLOAT,
    INT,
    DateType,
    EnumType,
    ListType,
    OptionalType,
    RecordType,
    ToolType,
    describe,
    parts_of,
)


@dataclass(frozen=True, slots=True)
class Universe:
    """Types by spelling, in order of first appearance."""

    by_name: dict[str, ToolType]
    demanded: frozenset[str]  # spellings of those that a parameter, or a part of one, has, and of the extra ones

    @classmethod
    def of(cls, registry: Registry, extra: Iterable[ToolType] = ()) -> Universe:
        """All types of the registry's signatures, then the extra ones, each followed by its parts."""
        found: dict[str, ToolType] = {}
        demanded: dict[str, ToolType] = {}
        for tool in registry.values():
            for parameter in tool.parameters:
                _add(found, parameter.type)
                _add(demanded, parameter.type)
            _add(found, tool.returns)
        for kind in extra:
            _add(found, kind)
            _add(demanded, kind)
        if FLOAT.name in found:
            _add(found, INT)  # an int may stand for a float, so it has to be spelled
        return cls(found, frozenset(demanded))

    def __contains__(self, kind: ToolType) -> bool:
        return self.by_name.get(kind.name) == kind

    def __iter__(self) -> Iterator[ToolType]:
        return iter(self.by_name.values())

    def has(self, name: str) -> bool:
        """Whether a type of that spelling occurs."""
        return name in self.by_name

    @property
    def atoms(self) -> tuple[str, ...]:
        """Spellings of the types that are not built from others."""
        return tuple(kind.name for kind in self if not isinstance(kind, ListType | OptionalType))

    @property
    def enums(self) -> tuple[EnumType, ...]:
        """The enumerations."""
        return tuple(kind for kind in self if isinstance(kind, EnumType))

    @property
    def records(self) -> tuple[RecordType, ...]:
        """The records, whose fields can be read."""
        return tuple(kind for kind in self if isinstance(kind, RecordType))

    @property
    def written(self) -> tuple[RecordType, ...]:
        """The records that can be written out: those that something demands, and that are no mere results."""
        return tuple(record for record in self.records if record.name in self.demanded)

    @property
    def has_lists(self) -> bool:
        """Whether some type is a list."""
        return any(isinstance(kind, ListType) for kind in self)

    @property
    def has_optionals(self) -> bool:
        """Whether some type admits null."""
        return any(isinstance(kind, OptionalType) for kind in self)

    @property
    def has_dates(self) -> bool:
        """Whether dates occur."""
        return any(isinstance(kind, DateType) for kind in self)

    @property
    def widens(self) -> bool:
        """Whether an int can stand where a float is demanded."""
        return self.has(FLOAT.name)


def _add(found: dict[str, ToolType], kind: ToolType) -> None:
    """Add a type and its parts. Raises `LoweringError` when its spelling means another type already."""
    known = found.get(kind.name)
    if known is None:
        found[kind.name] = kind
        for part in parts_of(kind):
            _add(found, part)
    elif known != kind:
        raise LoweringError(
            f"two types are spelled {kind.name!r}: {describe(known)} and {describe(kind)}; rename one of them"
        )
