"""What a dialect is: it lowers a registry to a grammar, and the lowered language reads and spells steps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from aufbau import Grammar, Node, Oracle, Prefix
from dialects.ambient import Ambient
from dialects.errors import ContextError
from dialects.reader import Reader
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

    def grammar_text(self, registry: Registry, *, nested: bool = False, types: Iterable[ToolType] = ()) -> str:
        """The `.auf` text of that language."""
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
    announced: bool  # whether the grammar asks which types bound names have
    reader: Reader
    renderer: Renderer
    keyword_renderer: Renderer  # the same, with every argument by keyword
    oracle: Oracle = field(init=False)
    ambient: Ambient = field(init=False)

    def __post_init__(self) -> None:
        """Compile the grammar once."""
        object.__setattr__(self, "oracle", Oracle(self.grammar))
        ambient = Ambient(
            self.universe, self.registry, nested=self.nested, realizable=self.realizable, announced=self.announced
        )
        object.__setattr__(self, "ambient", ambient)

    def start(
        self,
        context: Mapping[str, ToolType],
        output: ToolType | None = None,
        root: Root | str = Root.STEP,
        *,
        turns: int | None = None,
    ) -> Prefix:
        """The empty prefix of a step or program under Γ; `output` is the type that a return must have.

        `turns` is how many steps may be taken from here on, this one included. With it (and `realizable`) a binding is
        lost as soon as no way would be left to return in the turns after it; LOST at once means that none is left now.
        Raises `ContextError` when Γ or the output type lies outside the language, or the turns make no sense.
        """
        for name, kind in context.items():
            self._check_name(name)
            self._check_type(kind, f"the type of {name}")
        if output is not None:
            self._check_type(output, "the output type")
        if turns is not None and (turns < 1 or Root(root) is Root.PROGRAM):
            raise ContextError(
                f"turns={turns}: a step takes one turn at least, and a program has no turns; leave it out"
            )
        program = Root(root) is Root.PROGRAM
        ambient = self.ambient.program(context, output) if program else self.ambient.step(context, output, turns)
        return self.oracle.start(
            context={name: kind.name for name, kind in context.items()}, symbol=str(Root(root)), ambient=ambient
        )

    def read_step(self, node: Node) -> Step:
        """The step that a tree of root `Step` stands for."""
        return self.reader.step(node)

    def read_program(self, node: Node) -> Program:
        """The program that a tree of root `Program` stands for."""
        return self.reader.program(node)

    def render_step(self, step: Step, *, keywords: bool = False) -> str:
        """A step on one line, as the grammar reads it; with `keywords`, every argument is by keyword."""
        return (self.keyword_renderer if keywords else self.renderer).step(step)

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
