"""Terms and types of the two lambda calculi, with bound variables as de Bruijn indices; no code of the engine.

What a term's type is follows from its annotations alone: a λ says what it binds, so there is nothing to infer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentkit.synthesis.errors import TermError

INT, FLOAT, BOOL = "Int", "Float", "Bool"


@dataclass(frozen=True, slots=True)
class Arrow:
    """The type of functions from one type to another."""

    left: Type
    right: Type


Type = str | Arrow
Scope = Mapping[str, Type]


@dataclass(frozen=True, slots=True)
class Bound:
    """A variable that is bound by the λ `index` binders further out."""

    index: int


@dataclass(frozen=True, slots=True)
class Free:
    """A name of the context."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A number or a truth value; a `bool` is none of the numbers here."""

    value: int | float | bool


@dataclass(frozen=True, slots=True)
class Lambda:
    """A function of an argument of the annotated type."""

    annotation: Type
    body: Term


@dataclass(frozen=True, slots=True)
class Apply:
    """An application."""

    function: Term
    argument: Term


@dataclass(frozen=True, slots=True)
class Let:
    """A value of the annotated type, bound in the body; not recursive."""

    annotation: Type
    value: Term
    body: Term


@dataclass(frozen=True, slots=True)
class Operation:
    """Arithmetic: `+ - * /` on integers, the same with a dot on floating numbers."""

    operator: str
    left: Term
    right: Term


Term = Bound | Free | Literal | Lambda | Apply | Let | Operation


def type_of(term: Term, scope: Scope, bound: tuple[Type, ...] = ()) -> Type:
    """The type of a term under the types of its free names and, innermost first, of its bound ones.

    Raises `TermError`, and `RecursionError` for a term nested too deeply.
    """
    match term:
        case Bound(index):
            return bound[index]
        case Free(name):
            if name not in scope:
                raise TermError(f"{name} is not in scope")
            return scope[name]
        case Literal(value):
            return BOOL if isinstance(value, bool) else INT if isinstance(value, int) else FLOAT
        case Lambda(annotation, body):
            return Arrow(annotation, type_of(body, scope, (annotation, *bound)))
        case Apply(function, argument):
            return _applied(type_of(function, scope, bound), type_of(argument, scope, bound))
        case Let(annotation, value, body):
            _demand("what let binds", type_of(value, scope, bound), annotation)
            return type_of(body, scope, (annotation, *bound))
        case Operation(operator, left, right):
            wanted = FLOAT if operator.endswith(".") else INT
            for operand in (left, right):
                _demand(f"an operand of {operator}", type_of(operand, scope, bound), wanted)
            return wanted


def _applied(function: Type, argument: Type) -> Type:
    if isinstance(function, str):
        raise TermError(f"something of type {function} is applied like a function")
    _demand("an argument", argument, function.left)
    return function.right


def _demand(what: str, found: Type, wanted: Type) -> None:
    if found != wanted:
        raise TermError(f"{what} has type {render_type(found)}, but {render_type(wanted)} is demanded")


def render_type(bound: Type) -> str:
    """A type as people write it: arrows associate to the right."""
    if isinstance(bound, str):
        return bound
    left = render_type(bound.left)
    return f"{left if isinstance(bound.left, str) else f'({left})'} -> {render_type(bound.right)}"


class Cursor:
    """A place in the lexemes of a text; what a reader of terms or types reads from."""

    def __init__(self, text: str, lexeme: re.Pattern[str]) -> None:
        """Cut `text` into lexemes, blanks between them left out. Raises `TermError`."""
        self._lexemes: list[str] = []
        at = 0
        while at < len(text):
            found = lexeme.match(text, at)
            if found is None:
                raise TermError(f"no lexeme begins with {text[at : at + 10]!r} (character {at})")
            if found.group().strip(" \t\r\n"):
                self._lexemes.append(found.group())
            at = found.end()
        self._at = 0

    def peek(self, ahead: int = 0) -> str:
        """The next lexeme, or one further on; empty past the end."""
        place = self._at + ahead
        return self._lexemes[place] if place < len(self._lexemes) else ""

    def take(self, *wanted: str) -> str:
        """The next lexeme, which is one of `wanted` where those are given. Raises `TermError`."""
        found = self.peek()
        if not found or (wanted and found not in wanted):
            expected = " or ".join(wanted) or "more"
            raise TermError(f"{expected} is expected where {found or 'the text ends'!r} stands")
        self._at += 1
        return found

    def end(self) -> None:
        """Nothing may follow. Raises `TermError`."""
        if self.peek():
            raise TermError(f"{self.peek()!r} stands after the end")


def resolve(name: str, binders: Sequence[str]) -> Term:
    """The variable that a name means under binders, outermost first."""
    for index, binder in enumerate(reversed(binders)):
        if binder == name:
            return Bound(index)
    return Free(name)
