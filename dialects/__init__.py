"""Surfaces for steps: each lowers a registry to a grammar, and reads and spells steps."""

from dialects.base import Dialect, LoweredDialect, Root
from dialects.clike import CLikeDialect
from dialects.errors import ContextError, DialectError, LoweringError, ReadingError, SpellingError
from dialects.steps import (
    Call,
    Expression,
    Let,
    ListLiteral,
    Literal,
    Program,
    RecordLiteral,
    Reference,
    Return,
    Step,
)
from dialects.universe import Universe

__all__ = [
    "CLikeDialect",
    "Call",
    "ContextError",
    "Dialect",
    "DialectError",
    "Expression",
    "Let",
    "ListLiteral",
    "Literal",
    "LoweredDialect",
    "LoweringError",
    "Program",
    "ReadingError",
    "RecordLiteral",
    "Reference",
    "Return",
    "Root",
    "SpellingError",
    "Step",
    "Universe",
]
