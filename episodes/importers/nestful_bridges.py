"""Tools that write out what NESTFUL's programs leave unsaid: conversions, and operations inside an argument."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dialects import Call, Expression, ListLiteral, Literal, Reference
from registry import ModelRetry, Parameter, Tool
from registry.jsonvalues import to_json
from registry.types import FLOAT, INT, STRING, EnumType, ListType, ToolType

# What an argument may compute: a factor times a reference, and two references joined.
PRODUCT: Final = re.compile(r"(\d+(?:\.\d+)?) \* (\$[^$]+\$)")
JOINED: Final = re.compile(r"(\$[^$]+\$) ([-+]) (\$[^$]+\$)")
ITEM: Final = re.compile(r"\$(\w+(?:\.\w+)*)\[(\d+)\]((?:\.\w+)*)\$")

_OPERATORS: Final = {"*": "multiply", "+": "add", "-": "subtract"}


@dataclass(slots=True)
class Bridges:
    """The bridging tools that some program of a catalogue needs, by name."""

    tools: dict[str, Tool] = field(default_factory=dict)

    def conversions(self, found: ToolType, wanted: ToolType, *, literal: bool = False) -> list[Tool] | None:
        """The tools that lead from one type to another, applied in turn; None where there is no way.

        A literal text that is no numeral is none of a number: `respelled` sees to the others.
        """
        if literal and found == STRING and wanted in (INT, FLOAT):
            return None
        if found == wanted or (found, wanted) == (INT, FLOAT):
            return []
        if isinstance(wanted, ListType) and not isinstance(found, ListType):
            inner = self.conversions(found, wanted.item, literal=literal)
            if inner is None:
                return None
            return [*inner, self._unary(f"list_of_{_word(wanted.item)}", wanted.item, wanted, lambda value: [value])]
        if wanted == STRING and not isinstance(found, EnumType):
            return [self._unary(f"text_of_{_word(found)}", found, STRING, lambda value: _text(to_json(found, value)))]
        if wanted == INT and found in (FLOAT, STRING):
            return [self._unary(f"int_of_{_word(found)}", found, INT, lambda value: int(_number(value)))]
        if wanted == FLOAT and found == STRING:
            return [self._unary("float_of_string", STRING, FLOAT, _number)]
        return None

    def operation(self, sign: str) -> Tool:
        """The tool of an arithmetic sign, over floats."""
        work: dict[str, Callable[[float, float], float]] = {
            "*": lambda left, right: left * right,
            "+": lambda left, right: left + right,
            "-": lambda left, right: left - right,
        }
        return self._tool(_OPERATORS[sign], {"left": FLOAT, "right": FLOAT}, FLOAT, work[sign])

    def join(self) -> Tool:
        """The tool that joins texts."""
        return self._tool("join_text", {"parts": ListType(STRING)}, STRING, lambda parts: "".join(parts))

    def item(self, kind: ListType) -> Tool:
        """The tool that takes an item of a list."""
        name = f"item_of_list_{_word(kind.item)}"
        return self._tool(name, {"items": kind, "index": INT}, kind.item, lambda items, index: items[index])

    def _unary(self, name: str, found: ToolType, wanted: ToolType, work: Callable[[Any], object]) -> Tool:
        return self._tool(name, {"value": found}, wanted, work)

    def _tool(self, name: str, parameters: dict[str, ToolType], returns: ToolType, work: Callable[..., Any]) -> Tool:
        if name not in self.tools:
            self.tools[name] = Tool(
                name=name,
                description="Written out where the source converts or computes without saying so.",
                parameters=tuple(Parameter(name=part, type=kind) for part, kind in parameters.items()),
                returns=returns,
                pure=True,
                is_async=False,
                function=work,
            )
        return self.tools[name]


def respelled(value: object, kind: ToolType) -> Literal | None:
    """A literal written as its parameter's type spells it (1 as "1", "10" as 10); None where it has none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value)
    if kind == STRING or (isinstance(kind, EnumType) and text in kind.members):
        return Literal(value=text)
    if kind == INT and re.fullmatch(r"-?\d+", text):
        return Literal(value=int(text))
    if kind == FLOAT and re.fullmatch(r"-?\d+(\.\d+)?", text):
        return Literal(value=int(text) if text.isdecimal() else float(text))
    return None


def call(tool: Tool, *values: Expression) -> Call:
    """A call with its arguments in the order of declaration."""
    return Call(tool=tool.name, arguments=tuple(zip((part.name for part in tool.parameters), values, strict=True)))


def applied(tools: Sequence[Tool], value: Expression, bind: Callable[[Call], Reference]) -> Expression:
    """A value led through conversions, each bound by a step of its own."""
    for tool in tools:
        value = bind(call(tool, value))
    return value


def parts(texts: Sequence[Expression]) -> ListLiteral:
    """The argument of `join_text`."""
    return ListLiteral(items=tuple(texts))


def _word(kind: ToolType) -> str:
    return re.sub(r"\W+", "_", kind.name).strip("_")


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError as error:
        raise ModelRetry(f"{value!r} is no number") from error
