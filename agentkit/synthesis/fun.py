"""Reads finite lambda as `fun.auf` writes it, by recursive descent; no code of the engine."""

from __future__ import annotations

import re

from agentkit.synthesis.errors import TermError
from agentkit.synthesis.terms import (
    BOOL,
    FLOAT,
    INT,
    Apply,
    Arrow,
    Cursor,
    Lambda,
    Let,
    Literal,
    Operation,
    Term,
    Type,
    resolve,
)

_LEXEME = re.compile(r"[ \t\r\n]+|[a-z][A-Za-z0-9_]*|Int|Float|Bool|[0-9]+\.[0-9]+|[0-9]+|=>|->|[-+*/]\.|[-+*/():=;]")
_NAME = re.compile(r"[a-z]")
_WORDS = frozenset(("let", "true", "false"))
_SUMS = ("+", "-", "+.", "-.")
_PRODUCTS = ("*", "/", "*.", "/.")


def read_fun(text: str) -> Term:
    """The term of a whole text. Raises `TermError`, and `RecursionError` for one nested too deeply."""
    cursor = Cursor(text, _LEXEME)
    term = _expression(cursor, ())
    cursor.end()
    return term


def read_fun_type(text: str) -> Type:
    """The type of a whole text. Raises `TermError`, and `RecursionError` for one nested too deeply."""
    cursor = Cursor(text, _LEXEME)
    found = _type(cursor)
    cursor.end()
    return found


def _type(cursor: Cursor) -> Type:
    left: Type
    if cursor.peek() == "(":
        cursor.take()
        left = _type(cursor)
        cursor.take(")")
    else:
        left = cursor.take(INT, FLOAT, BOOL)
    if cursor.peek() == "->":
        cursor.take()
        return Arrow(left, _type(cursor))
    return left


def _is_name(lexeme: str) -> bool:
    return bool(_NAME.match(lexeme)) and lexeme not in _WORDS


def _name(cursor: Cursor) -> str:
    if not _is_name(cursor.peek()):
        raise TermError(f"a name is expected where {cursor.peek() or 'the text ends'!r} stands")
    return cursor.take()


def _expression(cursor: Cursor, binders: tuple[str, ...]) -> Term:
    if cursor.peek() == "let":
        return _let(cursor, binders)
    if cursor.peek() == "(" and _is_name(cursor.peek(1)) and cursor.peek(2) == ":":
        return _lambda(cursor, binders)
    term = _product(cursor, binders)
    while cursor.peek() in _SUMS:
        operator = cursor.take()
        term = Operation(operator, term, _product(cursor, binders))
    return term


def _let(cursor: Cursor, binders: tuple[str, ...]) -> Term:
    cursor.take("let")
    name = _name(cursor)
    cursor.take(":")
    annotation = _type(cursor)
    cursor.take("=")
    value = _expression(cursor, binders)
    cursor.take(";")
    return Let(annotation, value, _expression(cursor, (*binders, name)))


def _lambda(cursor: Cursor, binders: tuple[str, ...]) -> Term:
    cursor.take("(")
    name = _name(cursor)
    cursor.take(":")
    annotation = _type(cursor)
    cursor.take(")")
    cursor.take("=>")
    return Lambda(annotation, _expression(cursor, (*binders, name)))


def _product(cursor: Cursor, binders: tuple[str, ...]) -> Term:
    term = _application(cursor, binders)
    while cursor.peek() in _PRODUCTS:
        operator = cursor.take()
        term = Operation(operator, term, _application(cursor, binders))
    return term


def _application(cursor: Cursor, binders: tuple[str, ...]) -> Term:
    term = _atom(cursor, binders)
    while cursor.peek() == "(":
        cursor.take()
        term = Apply(term, _expression(cursor, binders))
        cursor.take(")")
    return term


def _atom(cursor: Cursor, binders: tuple[str, ...]) -> Term:
    lexeme = cursor.peek()
    if lexeme == "(":
        cursor.take()
        term = _expression(cursor, binders)
        cursor.take(")")
        return term
    if lexeme in ("true", "false"):
        return Literal(cursor.take() == "true")
    if lexeme[:1].isdigit():
        return Literal(float(cursor.take()) if "." in lexeme else int(cursor.take()))
    return resolve(_name(cursor), binders)
