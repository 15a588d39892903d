"""The tree of errors that dialects raise; ill-formed text is the oracle's business and gives a verdict instead.

DialectError
├── LoweringError     a registry, or a set of types, that the surface cannot spell
├── ContextError      a name or type in Γ, or a demanded output, that the lowered language cannot hold
├── SpellingError     a value that has no literal in the surface (a handle, a number that is not finite)
├── ReadingError      a syntax tree that is not a step of this dialect
└── TranslationError  a text that is no step of the dialect it is to be translated from
"""

from __future__ import annotations


class DialectError(Exception):
    """The root of every error of this package."""


class LoweringError(DialectError):
    """A registry or a type cannot be lowered; the message names it and says how to mend it."""


class ContextError(DialectError):
    """A binding or an output type lies outside the lowered language; the message names it."""


class SpellingError(DialectError):
    """A value cannot be written as a literal; the message says why and what to write instead."""


class ReadingError(DialectError):
    """A tree was not built by this dialect's grammar, or not at the root that was asked for."""


class TranslationError(DialectError):
    """A text is not a complete step or program; the message says why."""
