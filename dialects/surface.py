"""What a surface is: how it writes the parts of a grammar, how it spells expressions, and how it reads its leaves.

A dialect is a template of a grammar and one `Surface`; everything else (the type discipline, argument lists, lists,
records, conversions, reading trees) is shared. The grammar parts are `.auf` text; what a surface spells, its grammar
reads back equal.
"""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from dialects.errors import SpellingError
from dialects.literals import spell_float, spell_int
from dialects.steps import Call, Expression, Let, ListLiteral, Literal, LiteralValue, RecordLiteral, Reference, Step
from registry import Registry


class Surface(ABC):
    """One way of writing steps."""

    name: ClassVar[str]  # by which agents choose the dialect
    title: ClassVar[str]
    template: ClassVar[str]  # the file, in this package, that the parts are put into
    # Names that no tool and no record may have, used or not, so that adding a type makes no registry invalid.
    keywords: ClassVar[frozenset[str]]
    part_keywords: ClassVar[frozenset[str]] = frozenset()  # the same for parameters and fields
    words: ClassVar[frozenset[str]] = frozenset()  # what would be read as a name, unless names are announced
    # Whether names follow a text of their own. Then that text is admitted only where a name of the right type is bound.
    announced: ClassVar[bool] = False
    bare_parts: ClassVar[bool] = False  # whether a keyword argument begins with what could be a name
    lead: ClassVar[str] = ""  # the symbol before each argument
    comma: ClassVar[str] = ""  # the symbol between two arguments
    gap: ClassVar[str] = ""  # the symbol between two items of a list
    let: ClassVar[str]  # the symbols of a step that binds `Name[x]` to a call, of the nonterminal `{call}`
    returns: ClassVar[str]  # the symbols of a step that returns a `{value}`
    reference: ClassVar[str] = "Name[x]"  # the symbols of a bound name
    empty_list: ClassVar[tuple[str, ...]]  # the alternatives of an empty list
    brackets: ClassVar[tuple[str, str]]  # around the items of another one
    null: ClassVar[tuple[str, ...]]  # the alternatives of null

    @abstractmethod
    def literal(self, label: str) -> str:
        """The productions of a kind of literal: text, int, float, bool or date."""

    @abstractmethod
    def field(self, name: str, source: str) -> str:
        """The alternative that reads a field of the nonterminal `source`, bound as `record`."""

    @abstractmethod
    def opening(self, owner: str) -> str:
        """The symbols before the arguments of a tool, or the fields of a record."""

    @abstractmethod
    def closing(self, owner: str) -> str:
        """The symbols after them."""

    def bare(self, owner: str) -> Sequence[tuple[str, str]]:
        """Further ways of having no arguments, each as the symbols that begin and that end it."""
        return ()

    @abstractmethod
    def keyed(self, name: str) -> tuple[str, str]:
        """The symbols around the value of a keyword argument."""

    @abstractmethod
    def spell_text(self, value: str) -> str:
        """The literal of a string; enum members are spelled so too. Raises `SpellingError`."""

    @abstractmethod
    def spell_date(self, value: datetime.date) -> str:
        """The literal of a date."""

    def spell_word(self, label: str, text: str) -> str:
        """The literal of an int, float, bool or null from its usual text."""
        return text

    @abstractmethod
    def spell_reference(self, name: str, fields: Sequence[str]) -> str:
        """A bound name, and the fields read from it."""

    @abstractmethod
    def spell_list(self, items: Sequence[str]) -> str:
        """A list of spelled items."""

    @abstractmethod
    def spell_applied(self, owner: str, arguments: Sequence[tuple[str | None, str]]) -> str:
        """A tool or record applied to spelled arguments; those with a name are by keyword."""

    @abstractmethod
    def spell_let(self, name: str, call: str) -> str:
        """A step that binds."""

    @abstractmethod
    def spell_return(self, value: str) -> str:
        """A step that returns."""

    @abstractmethod
    def read_text(self, text: str) -> str:
        """What the literal of a string denotes."""

    @abstractmethod
    def read_day(self, text: str) -> datetime.date:
        """What the lexeme of a date denotes."""

    def read_word(self, text: str) -> str:
        """The usual text of the literal of an int, float or bool."""
        return text


class Speller:
    """Spells steps in a surface.

    Arguments are positional up to the first one left out or moved; with `keywords`, all of them are by keyword.
    """

    def __init__(self, surface: Surface, registry: Registry, *, keywords: bool = False) -> None:
        self._surface = surface
        self._registry = registry
        self._keywords = keywords

    def step(self, step: Step) -> str:
        """A step on one line."""
        if isinstance(step, Let):
            return self._surface.spell_let(step.name, self.expression(step.call))
        return self._surface.spell_return(self.expression(step.value))

    def expression(self, expression: Expression) -> str:
        """An expression as it stands inside a step. Raises `SpellingError`."""
        surface = self._surface
        match expression:
            case Literal():
                return self._literal(expression.value)
            case Reference():
                return surface.spell_reference(expression.name, expression.fields)
            case ListLiteral():
                return surface.spell_list([self.expression(item) for item in expression.items])
            case RecordLiteral():
                fields = [(name, self.expression(value)) for name, value in expression.fields]
                return surface.spell_applied(expression.type, fields)
            case Call():
                return surface.spell_applied(expression.tool, self._arguments(expression))

    def _arguments(self, call: Call) -> list[tuple[str | None, str]]:
        # What the registry lacks is spelled too, since a text may be wrong on purpose.
        tool = None if self._keywords else self._registry.get(call.tool)
        declared = [parameter.name for parameter in tool.parameters] if tool is not None else []
        given = [name for name, _ in call.arguments]
        return [
            (None if declared[: index + 1] == given[: index + 1] else name, self.expression(value))
            for index, (name, value) in enumerate(call.arguments)
        ]

    def _literal(self, value: LiteralValue) -> str:
        surface = self._surface
        match value:
            case None:
                return surface.spell_word("null", "null")
            case bool():
                return surface.spell_word("bool", "true" if value else "false")
            case str():
                return surface.spell_text(value)
            case int():
                return surface.spell_word("int", spell_int(value))
            case float():
                return surface.spell_word("float", spell_float(value))
            case datetime.datetime():
                raise SpellingError("a date with a time of day has no literal; write the date alone")
            case datetime.date():
                return surface.spell_date(value)
