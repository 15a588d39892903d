"""Builds steps from the oracle's syntax trees, by the labels of `dialects.discipline`: the same for every surface."""

from __future__ import annotations

from collections.abc import Iterator

from aufbau import Node
from dialects.errors import ReadingError
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
from dialects.surface import Surface
from dialects.universe import Universe
from registry import Registry

# Expressions inside expressions. A bound, because reading and evaluating recurse; no sensible step comes near it.
MAX_DEPTH = 64


class Reader:
    """Reads trees; only what a leaf denotes differs from surface to surface."""

    def __init__(self, surface: Surface, registry: Registry, universe: Universe) -> None:
        self._surface = surface
        # Parts by their owner, in order of declaration; tools and records never share a name.
        self._declared = {tool.name: [part.name for part in tool.parameters] for tool in registry.values()}
        self._declared |= {record.name: [part.name for part in record.fields] for record in universe.written}

    def step(self, node: Node) -> Step:
        """The step of a tree whose root is a step."""
        node = labelled(node)
        match (node.rule or "").partition(".")[0]:
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
        node = labelled(node)
        while (node.rule or "").partition(".")[0] == "sequence":
            steps.append(self.step(node.child("first")))
            node = labelled(node.child("rest"))
        return Program(steps=(*steps, self.step(node)))

    def expression(self, node: Node, depth: int = 0) -> Expression:
        """The expression of a tree, itself inside `depth` others."""
        if depth > MAX_DEPTH:
            raise ReadingError(f"expressions are nested more than {MAX_DEPTH} deep; bind the inner ones by steps first")
        node = labelled(node)
        kind, _, rest = (node.rule or "").partition(".")
        match kind:
            case "text" | "enum":
                return Literal(value=self._surface.read_text(node.text))
            case "int":
                return Literal(value=int(self._surface.read_word(node.text)))
            case "float":
                return Literal(value=float(self._surface.read_word(node.text)))
            case "bool":
                return Literal(value=self._surface.read_word(node.text) == "true")
            case "null":
                return Literal(value=None)
            case "date":
                return Literal(value=self._surface.read_day(node.child("day").text))
            case "widened" | "some":
                return self.expression(node.child("value"), depth)
            case "var" | "field":
                return _reference(node)
            case "empty":
                return ListLiteral(items=())
            case "list":
                return ListLiteral(items=tuple(self._items(node.child("items"), depth + 1)))
            case "record":
                return RecordLiteral(type=rest, fields=self._arguments(rest, node, depth + 1))
            case "call":
                return Call(tool=rest, arguments=self._arguments(rest, node, depth + 1))
        raise ReadingError(f"{node.text!r} is no expression of this dialect: its rule is {node.rule}")

    def _items(self, node: Node, depth: int) -> Iterator[Expression]:
        node = labelled(node)
        while node.rule == "items":
            yield self.expression(node.child("value"), depth)
            node = labelled(node.child("rest"))
        yield self.expression(node, depth)

    def _arguments(self, owner: str, node: Node, depth: int) -> tuple[tuple[str, Expression], ...]:
        """Arguments in order of declaration."""
        found = {name: self.expression(value, depth) for name, value in argument_nodes(node).items()}
        return tuple((name, found[name]) for name in self._declared[owner] if name in found)


def argument_nodes(node: Node) -> dict[str, Node]:
    """The values of a call or record, in textual order: the only one is a child; several are nested, each in a rest."""
    rest = node.find("rest")
    if rest is None:
        return {child.binding: child for child in node.children if child.binding}
    found: dict[str, Node] = {}
    while rest is not None:
        node = labelled(rest)
        if (node.rule or "").startswith("argument."):
            found[(node.rule or "").rpartition(".")[2]] = node.child("value")
        rest = node.find("rest")
    return found


def labelled(node: Node) -> Node:
    """Walk down through the productions that only choose between others."""
    while node.rule is None and len(node.children) == 1:
        node = node.children[0]
    return node


def _reference(node: Node) -> Reference:
    fields: list[str] = []
    while (node.rule or "").startswith("field."):
        fields.append((node.rule or "").rpartition(".")[2])
        node = labelled(node.child("record"))
    return Reference(name=node.child("x").text, fields=tuple(reversed(fields)))
