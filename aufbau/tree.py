"""The typed syntax tree of a satisfied prefix, read back from the chart; renders as text, DOT and JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from aufbau.earley.chart import Answer, Item, Lexeme
from aufbau.earley.machine import RESULT, Machine


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A node of the tree; lexemes are leaves, ignorable text is left out."""

    symbol: str  # nonterminal, or the terminal as the grammar writes it
    rule: str | None  # label of the nonterminal
    binding: str | None  # name under which the parent binds this child
    children: tuple[Node, ...]
    source: bytes = field(repr=False)  # the whole text, shared by all nodes
    start: int  # byte offsets
    end: int
    type: str | None  # None: a lexeme, or a node without value
    is_lexeme: bool

    @property
    def text(self) -> str:
        """The exact source of this node."""
        return self.source[self.start : self.end].decode()

    def find(self, binding: str) -> Node | None:
        """The child that is bound to a name, or None."""
        for node in self.children:
            if node.binding == binding:
                return node
        return None

    def child(self, binding: str) -> Node:
        """The child that is bound to a name. Raises `KeyError`."""
        found = self.find(binding)
        if found is None:
            bound = [node.binding for node in self.children if node.binding]
            raise KeyError(f"{self.symbol} binds no child {binding!r}; it binds {bound}")
        return found

    def to_json(self) -> str:
        """The tree as JSON, one object a node; lexemes have a text, other nodes children."""
        out: list[str] = []
        stack: list[Node | str] = [self]
        while stack:
            node = stack.pop()
            if isinstance(node, str):
                out.append(node)
                continue
            fields: dict[str, object] = {"symbol": node.symbol, "span": [node.start, node.end]}
            for key in ("rule", "binding", "type"):
                if getattr(node, key) is not None:
                    fields[key] = getattr(node, key)
            if node.is_lexeme:
                fields["text"] = node.text
            head = json.dumps(fields, ensure_ascii=False)
            if node.is_lexeme:
                out.append(head)
                continue
            out.append(head[:-1] + ', "children": [')
            stack.append("]}")
            for i, child in reversed(list(enumerate(node.children))):
                stack.append(child)
                if i:
                    stack.append(", ")
        return "".join(out)

    def to_dot(self) -> str:
        """The tree as a Graphviz digraph."""
        lines = ["digraph tree {", "  node [shape=box, fontname=monospace];"]
        numbers = {id(node): number for number, node in enumerate(self.postorder())}
        for node in self.postorder():
            label = node.text if node.is_lexeme else node.symbol + (f" : {node.type}" if node.type else "")
            shape = ", shape=plaintext" if node.is_lexeme else ""
            lines.append(f"  n{numbers[id(node)]} [label={json.dumps(label, ensure_ascii=False)}{shape}];")
            for child in node.children:
                name = f" [label={json.dumps(child.binding)}]" if child.binding else ""
                lines.append(f"  n{numbers[id(node)]} -> n{numbers[id(child)]}{name};")
        return "\n".join([*lines, "}"])

    def postorder(self) -> list[Node]:
        """All nodes, children before parents."""
        stack, found = [self], []
        while stack:
            node = stack.pop()
            found.append(node)
            stack.extend(node.children)
        found.reverse()
        return found

    def __str__(self) -> str:
        lines: list[str] = []
        stack: list[tuple[Node, int]] = [(self, 0)]
        while stack:
            node, depth = stack.pop()
            name = f"{node.binding}: " if node.binding else ""
            what = repr(node.text) if node.is_lexeme else node.symbol
            lines.append("  " * depth + name + what + (f" : {node.type}" if node.type else ""))
            stack.extend((child, depth + 1) for child in reversed(node.children))
        return "\n".join(lines)


@dataclass(slots=True)
class _Open:
    """A node whose children are being collected."""

    item: Item  # the finished item
    parts: list[tuple[Item, Answer | Lexeme]]  # the item before each child, and the child
    binding: str | None
    done: list[Node]
    start: int


def _open(item: Item, binding: str | None, start: int) -> _Open:
    parts: list[tuple[Item, Answer | Lexeme]] = []
    current: Item | None = item
    while current is not None and current.previous is not None and current.child is not None:
        parts.append((current.previous, current.child))
        current = current.previous
    parts.reverse()
    return _Open(item, parts, binding, [], start)


def build_tree(root: Item, text: bytes, machine: Machine) -> Node:
    """The tree of a finished item of the start symbol."""
    names: dict[int, str] = {}
    types: dict[object, str] = {}

    def rendered(item: Item) -> str | None:
        bound = item.slots[item.record.holes + RESULT]
        if bound is machine.terms.top or bound.head == machine.terms.top.head:
            return None
        if not bound.ground:
            return machine.syntax.render(bound, dict(names))
        if bound not in types:
            types[bound] = machine.syntax.render(bound)
        return types[bound]

    stack = [_open(root, None, 0)]
    while True:
        frame = stack[-1]
        if len(frame.done) < len(frame.parts):
            item, child = frame.parts[len(frame.done)]
            position = item.production.positions[item.dot]
            start = frame.done[-1].end if frame.done else frame.start
            if isinstance(child, Answer):
                stack.append(_open(child.item, position.binding, start))
                continue
            frame.done.append(
                Node(
                    symbol=position.symbol,
                    rule=None,
                    binding=position.binding,
                    children=(),
                    source=text,
                    start=child.start,
                    end=child.end,
                    type=None,
                    is_lexeme=True,
                )
            )
            continue
        stack.pop()
        start = frame.done[0].start if frame.done else frame.start
        end = frame.done[-1].end if frame.done else frame.start
        node = Node(
            symbol=frame.item.production.name,
            rule=frame.item.production.label,
            binding=frame.binding,
            children=tuple(frame.done),
            source=text,
            start=start,
            end=end,
            type=rendered(frame.item),
            is_lexeme=False,
        )
        if not stack:
            return node
        stack[-1].done.append(node)
