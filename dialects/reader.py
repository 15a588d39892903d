"""Builds steps from the oracle's syntax trees, by the labels of `dialects.discipline`: the same for every surface."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from aufbau import Node
from dialects.errors import ReadingError
from dialects.literals import read_date
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

# Expressions inside expressions. A bound, because reading and evaluating recurse; no sensible step comes near it.
MAX_DEPTH = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Reader:
    """Reads trees; only how a string literal denotes its text differs from surface to surface."""

    read_text: Callable[[str], str]

    def step(self, node: Node) -> Step:
        """The step of a tree whose root is a step."""
        node = _labelled(node)
        match node.rule:
            case "let":
                call = self.expression(node.child("call"))
                if not isinstance(call, Call):
                    raise ReadingError(f"a let binds a call, not {node.child('call').text!r}")
                return Let(name=node.child("x").text, call=call)
            case "return" | "open":
                return Return(value=self.expression(node.child("value")))
        raise ReadingError(f"{node.text!r} is no step: its rule is {node.rule}, not let, return or open")

    def program(self, node: Node) -> Program:
        """The steps of a tree whose root is a program."""
        steps = []
        node = _labelled(node)
        while node.rule == "sequence":
            steps.append(self.step(node.child("first")))
            node = _labelled(node.child("rest"))
        return Program(steps=(*steps, self.step(node)))

    def expression(self, node: Node, depth: int = 0) -> Expression:
        """The expression of a tree, itself inside `depth` others."""
        if depth > MAX_DEPTH:
            raise ReadingError(f"expressions are nested more than {MAX_DEPTH} deep; bind the inner ones by steps first")
        node = _labelled(node)
        kind, _, rest = (node.rule or "").partition(".")
        match kind:
            case "text" | "enum":
                return Literal(value=self.read_text(node.text))
            case "int":
                return Literal(value=int(node.text))
            case "float":
                return Literal(value=float(node.text))
            case "bool":
                return Literal(value=node.text == "true")
            case "null":
                return Literal(value=None)
            case "date":
                return Literal(value=read_date(node.child("day").text))
            case "widened" | "some":
                return self.expression(node.child("value"), depth)
            case "var" | "field":
                return _reference(node)
            case "empty":
                return ListLiteral(items=())
            case "list":
                return ListLiteral(items=tuple(self._items(node.child("items"), depth + 1)))
            case "record":
                return RecordLiteral(type=rest, fields=self._arguments(node, depth + 1))
            case "call":
                return Call(tool=rest, arguments=self._arguments(node, depth + 1))
        raise ReadingError(f"{node.text!r} is no expression of this dialect: its rule is {node.rule}")

    def _items(self, node: Node, depth: int) -> Iterator[Expression]:
        node = _labelled(node)
        while node.rule == "items":
            yield self.expression(node.child("value"), depth)
            node = _labelled(node.child("rest"))
        yield self.expression(node, depth)

    def _arguments(self, node: Node, depth: int) -> tuple[tuple[str, Expression], ...]:
        """Arguments in textual order: children bound to a parameter's name, or argument nodes further down."""
        found: list[tuple[str, Expression]] = []
        for child in node.children:
            if child.binding is not None:
                found.append((child.binding, self.expression(child, depth)))
            elif (child.rule or "").startswith("argument."):
                name = (child.rule or "").rpartition(".")[2]
                found.append((name, self.expression(child.child("value"), depth)))
            elif not child.is_lexeme:
                found.extend(self._arguments(child, depth))
        return tuple(found)


def _labelled(node: Node) -> Node:
    """Walk down through the productions that only choose between others."""
    while node.rule is None and len(node.children) == 1:
        node = node.children[0]
    return node


def _reference(node: Node) -> Reference:
    fields: list[str] = []
    while (node.rule or "").startswith("field."):
        fields.append((node.rule or "").rpartition(".")[2])
        node = _labelled(node.child("record"))
    return Reference(name=node.child("x").text, fields=tuple(reversed(fields)))
