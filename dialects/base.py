"""What a dialect is: it lowers a registry to a grammar, and the lowered language reads and spells steps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from aufbau import Grammar, Node, Oracle, Prefix
from dialects.discipline import OPEN_KEY, OUTPUT_KEY
from dialects.errors import ContextError
from dialects.reader import Reader
from dialects.realizable import CALL_KEY, Results, can_call, guarded, inhabited, key_of
from dialects.steps import Expression, Program, Step
from dialects.universe import Universe
from dialects.values import expression_of
from registry import Registry
from registry.types import ToolType

# How every surface spells a bound name.
NAME_PATTERN = "[A-Za-z_][A-Za-z0-9_]*"

_NAME = re.compile(NAME_PATTERN)


class Root(StrEnum):
    """What a prefix is a prefix of; the values are the grammar's start symbols."""

    STEP = "Step"  # one binding, or the return
    PROGRAM = "Program"  # some bindings and then the return


class Renderer(Protocol):
    """Spells trees in a surface; what it writes, the surface's grammar reads back equal."""

    def step(self, step: Step) -> str:
        """A step on one line."""
        ...

    def expression(self, expression: Expression) -> str:
        """An expression as it stands inside a step."""
        ...


class Dialect(Protocol):
    """A surface for steps."""

    @property
    def name(self) -> str:
        """The name by which agents choose the dialect."""
        ...

    def lower(
        self, registry: Registry, *, nested: bool = False, realizable: bool = True, types: Iterable[ToolType] = ()
    ) -> LoweredDialect:
        """The language of steps over these tools.

        With `nested`, arguments may be calls. With `realizable`, a step is lost as soon as it demands a type that no
        expression over Γ has. `types` are those that occur only in Γ or as output types.
        Raises `LoweringError` when a name or a type cannot be spelled.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class LoweredDialect:
    """The step language of one registry: immutable, and safe to share between runs."""

    name: str
    registry: Registry
    universe: Universe
    nested: bool  # whether arguments may be calls
    realizable: bool  # whether demands that Γ cannot meet are cut off
    grammar: Grammar
    words: frozenset[str]  # spellings that the grammar reserves, so that no bound name can have them
    reader: Reader
    renderer: Renderer
    oracle: Oracle = field(init=False)

    def __post_init__(self) -> None:
        """Compile the grammar once."""
        object.__setattr__(self, "oracle", Oracle(self.grammar))

    def start(
        self, context: Mapping[str, ToolType], output: ToolType | None = None, root: Root | str = Root.STEP
    ) -> Prefix:
        """The empty prefix of a step or program under Γ; `output` is the type that a return must have.

        Raises `ContextError` when Γ or the output type lies outside the language.
        """
        for name, kind in context.items():
            self._check_name(name)
            self._check_type(kind, f"the type of {name}")
        if output is not None:
            self._check_type(output, "the output type")
        return self.oracle.start(
            context={name: kind.name for name, kind in context.items()},
            symbol=str(Root(root)),
            ambient=self._ambient(context, output, Root(root)),
        )

    def _ambient(self, context: Mapping[str, ToolType], output: ToolType | None, root: Root) -> dict[str, str]:
        """The ambient keys that hold: what may be returned, and what exists.

        In a program later steps see more than Γ, so there whatever calls could ever make counts as existing.
        """
        types = frozenset(self.universe.by_name)
        if self.realizable:
            results = Results.NESTED if self.nested else Results.NOWHERE
            results = Results.BOUND if root is Root.PROGRAM else results
            types = inhabited(self.universe, self.registry, context, results)
        keys = {key_of(kind): kind.name for kind in guarded(self.universe) if kind.name in types}
        any_type = next(iter(self.universe)).name  # for the keys that only say yes
        if can_call(self.registry, types):
            keys[CALL_KEY] = any_type
        if output is None:
            keys |= {OPEN_KEY: any_type} if types else {}
        elif output.name in types:
            keys[OUTPUT_KEY] = output.name
        return keys

    def read_step(self, node: Node) -> Step:
        """The step that a tree of root `Step` stands for."""
        return self.reader.step(node)

    def read_program(self, node: Node) -> Program:
        """The program that a tree of root `Program` stands for."""
        return self.reader.program(node)

    def render_step(self, step: Step) -> str:
        """A step on one line, as the grammar reads it."""
        return self.renderer.step(step)

    def render_program(self, program: Program) -> str:
        """A program, one step a line."""
        return "\n".join(self.renderer.step(step) for step in program.steps)

    def render_value(self, value: object, kind: ToolType) -> str:
        """A literal that denotes a value. Raises `SpellingError` for handles, which no literal forges."""
        return self.renderer.expression(expression_of(value, kind))

    def _check_name(self, name: str) -> None:
        if _NAME.fullmatch(name) is None:
            raise ContextError(f"{name!r} can't be a bound name: names match {NAME_PATTERN}; rename the binding")
        if name in self.words:
            raise ContextError(f"{name!r} can't be a bound name: the {self.name} dialect reserves it; rename it")

    def _check_type(self, kind: ToolType, role: str) -> None:
        if kind not in self.universe:
            known = ", ".join(self.universe.by_name)
            raise ContextError(
                f"{role}, {kind.name}, occurs in no tool (types here: {known}); "
                f"pass types=[…] when lowering, so that the grammar knows it"
            )
