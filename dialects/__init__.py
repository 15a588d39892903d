"""Surfaces for steps: each lowers a registry to a grammar, and reads and spells steps."""

from dialects.base import Dialect, LoweredDialect, Root
from dialects.catalog import DIALECTS, by_name, translate
from dialects.clike import CLikeDialect
from dialects.errors import ContextError, DialectError, LoweringError, ReadingError, SpellingError, TranslationError
from dialects.sexpr import SexprDialect
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
from dialects.xml import XmlDialect

__all__ = [
    "DIALECTS",
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
    "SexprDialect",
    "SpellingError",
    "Step",
    "TranslationError",
    "Universe",
    "XmlDialect",
    "by_name",
    "translate",
]
