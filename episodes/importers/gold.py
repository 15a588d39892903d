"""Checks a gold program in a dialect: every byte admissible, the tree read back equal, every binding of its type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from aufbau import Node, Verdict
from dialects import Dialect, Let, LoweredDialect, Program, Root
from episodes.importers.base import Case
from registry import Registry
from registry.types import ToolType


@dataclass(frozen=True, kw_only=True, slots=True)
class Accepted:
    """How a gold program fared; `fault` says what was wrong, and is empty where nothing was."""

    text: str
    fault: str = ""


# Lowered dialects that are kept, since many cases share their tools.
_KEPT: Final = 8


class Lowerings:
    """Lowered dialects of the cases that came last."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._known: dict[tuple[object, ...], tuple[Case, LoweredDialect]] = {}

    def of(self, case: Case) -> LoweredDialect:
        """The language of a case's tools and types."""
        key = (id(case.registry), case.types)
        # The case is kept too, so that no other registry gets the same id.
        found = self._known.pop(key, None) or (case, self._dialect.lower(case.registry, types=case.types))
        self._known[key] = found
        while len(self._known) > _KEPT:
            del self._known[next(iter(self._known))]
        return found[1]


def accept(case: Case, lowered: LoweredDialect) -> Iterator[Accepted]:
    """Feed each program of a case byte by byte, under the names that those before it bound."""
    context: dict[str, ToolType] = {}
    for turn, program in enumerate(case.programs):
        yield _accept(program, lowered, context, case.output_type(turn))
        context |= dict(bound_types(program, case.registry))


def bound_types(program: Program, registry: Registry) -> Iterable[tuple[str, ToolType]]:
    """The names that a program binds, with the types of their tools' results."""
    return [(step.name, registry[step.call.tool].returns) for step in program.steps if isinstance(step, Let)]


def _accept(
    program: Program, lowered: LoweredDialect, context: dict[str, ToolType], output: ToolType | None
) -> Accepted:
    text = lowered.render_program(program)
    prefix = lowered.start(context, output, Root.PROGRAM)
    data = text.encode()
    for index in range(len(data)):
        prefix = prefix.feed(data[index : index + 1])
        verdict = prefix.verdict
        if verdict is Verdict.LOST:
            return Accepted(text=text, fault=f"lost at byte {index}: {prefix.explain()}")
        if verdict is Verdict.SATISFIED and index + 1 < len(data):
            return Accepted(text=text, fault=f"satisfied at byte {index}, before its end")
    tree = prefix.tree()
    if tree is None:
        return Accepted(text=text, fault="not satisfied at its end")
    if lowered.read_program(tree) != program:
        return Accepted(text=text, fault="the tree reads back as another program")
    wanted = [kind.name for _, kind in bound_types(program, lowered.registry)]
    found = [node.child("call").type for node in _lets(tree)]
    return Accepted(text=text, fault="" if wanted == found else f"types are {found}, not {wanted}")


def _lets(node: Node) -> Iterator[Node]:
    if node.rule == "let":
        yield node
        return
    for child in node.children:
        yield from _lets(child)
