"""The tree of errors that the oracle raises; bad *input text* gives verdicts, never exceptions.

AufbauError
├── GrammarError      a grammar that cannot be used; carries line, column and a hint
├── TypeTextError     a goal or context type that is not a type of the grammar
├── StartError        `Oracle.start` asked for something the grammar lacks (symbol, name, ambient key)
└── LimitError        a budget of `aufbau.limits.Limits` is spent
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A place in an `.auf` text: line and column, both counted from 1."""

    line: int = 1
    column: int = 1


class AufbauError(Exception):
    """The root of every error of this package."""


class GrammarError(AufbauError):
    """A grammar that cannot be used: what is wrong, where (1-based), and how to mend it."""

    def __init__(self, message: str, span: Span, hint: str = "", source: str = "") -> None:
        self.message = message
        self.span = span
        self.hint = hint
        self.source = source
        super().__init__(message)

    @property
    def line(self) -> int:
        """Line of the fault, counted from 1."""
        return self.span.line

    @property
    def column(self) -> int:
        """Column of the fault in characters, counted from 1."""
        return self.span.column

    def __str__(self) -> str:
        where = f"{self.source or 'grammar'}:{self.line}:{self.column}"
        return f"{where}: {self.message}" + (f"\n  hint: {self.hint}" if self.hint else "")


class TypeTextError(AufbauError):
    """A goal or context type that the grammar's type fragment does not spell, or spells in two ways."""


class StartError(AufbauError):
    """`Oracle.start` was asked for a symbol or a name that the grammar cannot have."""


class LimitError(AufbauError):
    """A budget is spent; the message names it, its value and how to raise it."""
