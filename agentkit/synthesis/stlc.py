"""Reads the simply typed lambda calculus as `stlc.auf` writes it, by recursive descent; no code of the engine."""

from __future__ import annotations

import re

from agentkit.synthesis.errors import TermError
from agentkit.synthesis.terms import Apply, Arrow, Cursor, Lambda, Term, Type, resolve

_LEXEME = re.compile(r"[ \t\r\n]+|[A-Za-z_][A-Za-z0-9_]*|λ|\\|->|→|[():.]")
_NAME = re.compile(r"[A-Za-z_]")
_ARROWS = ("->", "→")
_LAMBDAS = ("λ", "\\")


def read_stlc(text: str) -> Term:
    """The term of a whole text. Raises `TermError`, and `RecursionError` for one nested too deeply."""
    cursor = Cursor(text, _LEXEME)
    term = _expression(cursor, ())
    cursor.end()
    return term


def read_stlc_type(text: str) -> Type:
    """The type of a whole text. Raises `TermError`, and `RecursionError` for one nested too deeply."""
    cursor = Cursor(text, _LEXEME)
    found = _type(cursor)
    cursor.end()
    return found


def _name(cursor: Cursor) -> str:
    if not _NAME.match(cursor.peek()):
        raise TermError(f"a name is expected where {cursor.peek() or 'the text ends'!r} stands")
    return cursor.take()


def _type(cursor: Cursor) -> Type:
    left: Type
    if cursor.peek() == "(":
        cursor.take()
        left = _type(cursor)
        cursor.take(")")
    else:
        left = _name(cursor)
    if cursor.peek() in _ARROWS:
        cursor.take()
        return Arrow(left, _type(cursor))
    return left


def _expression(cursor: Cursor, binders: tuple[str, ...]) -> Term:
    """Applications associate to the left; a λ reaches as far as it can, so nothing comes after one."""
    if cursor.peek() in _LAMBDAS:
        return _lambda(cursor, binders)
    term = _atom(cursor, binders)
    while cursor.peek() == "(" or _NAME.match(cursor.peek()):
        term = Apply(term, _atom(cursor, binders))
    if cursor.peek() in _LAMBDAS:
        term = Apply(term, _lambda(cursor, binders))
    return term


def _lambda(cursor: Cursor, binders: tuple[str, ...]) -> Term:
    cursor.take(*_LAMBDAS)
    name = _name(cursor)
    cursor.take(":")
    annotation = _type(cursor)
    cursor.take(".")
    return Lambda(annotation, _expression(cursor, (*binders, name)))


def _atom(cursor: Cursor, binders: tuple[str, ...]) -> Term:
    if cursor.peek() != "(":
        return resolve(_name(cursor), binders)
    cursor.take()
    term = _expression(cursor, binders)
    cursor.take(")")
    return term
