"""Deterministic values of a type, for tools whose functions are not there to be called."""

from __future__ import annotations

import datetime
import hashlib

from registry.types import (
    BOOL,
    FLOAT,
    INT,
    STRING,
    DateType,
    EnumType,
    HandleType,
    Identifier,
    ListType,
    OptionalType,
    RecordType,
    ToolType,
)


def stand_in(kind: ToolType, seed: str) -> object:
    """A value of a type, the same for the same seed and most likely another for another."""
    number = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:4])
    match kind:
        case OptionalType():
            return stand_in(kind.item, seed)
        case ListType():
            return [stand_in(kind.item, f"{seed}[{index}]") for index in range(2)]
        case RecordType():
            return kind.build({part.name: stand_in(part.type, f"{seed}.{part.name}") for part in kind.fields})
        case EnumType():
            return kind.validate(kind.members[number % len(kind.members)])
        case DateType():
            return datetime.date(2000, 1, 1) + datetime.timedelta(days=number % 10_000)
        case HandleType():
            if kind.item is None:
                return f"<{kind.name} {seed}>"
            return Identifier(type=kind.name, value=stand_in(kind.item, seed))
    # Texts are numerals, so that a conversion of one to a number has something to read.
    values = {STRING: str(number), INT: number % 1_000_000, FLOAT: number % 100_000 / 100, BOOL: bool(number % 2)}
    return values[kind]
