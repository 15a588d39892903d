"""What a step says, independent of any surface: frozen trees that readers build and renderers spell."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

LiteralValue = str | int | float | bool | datetime.date | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Literal:
    """A value written out: string (an enum member is one too), number, truth value, date or null."""

    value: LiteralValue


@dataclass(frozen=True, kw_only=True, slots=True)
class Reference:
    """A bound name, and the fields read from its value one after the other."""

    name: str
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ListLiteral:
    """A list whose items are written out."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordLiteral:
    """A record of the named type; fields left out take their defaults."""

    type: str
    fields: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """A tool applied to arguments, each by its parameter's name, in the order of declaration."""

    tool: str
    arguments: tuple[tuple[str, Expression], ...]


Expression = Literal | Reference | ListLiteral | RecordLiteral | Call


@dataclass(frozen=True, kw_only=True, slots=True)
class Let:
    """Bind a fresh name to the result of a call."""

    name: str
    call: Call


@dataclass(frozen=True, kw_only=True, slots=True)
class Return:
    """End the run with a value."""

    value: Expression


Step = Let | Return


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """Several steps, of which only the last returns."""

    steps: tuple[Step, ...]
