"""The C-like surface: `let d = search("solar storms 1859");`, `return count(d);`."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from string import Template
from typing import Final

from aufbau import Grammar
from dialects import discipline
from dialects.base import LoweredDialect
from dialects.errors import LoweringError, SpellingError
from dialects.literals import (
    DATE_PATTERN,
    FLOAT_PATTERN,
    INT_PATTERN,
    TEXT_PATTERN,
    read_text,
    spell_float,
    spell_int,
    spell_text,
)
from dialects.productions import Names, Part, application
from dialects.reader import Reader
from dialects.steps import (
    Call,
    Expression,
    Let,
    ListLiteral,
    Literal,
    RecordLiteral,
    Reference,
    Step,
)
from dialects.universe import Universe
from registry import Registry
from registry.types import ToolType

_TEMPLATE: Final = Template(files("dialects").joinpath("clike.auf").read_text(encoding="utf-8"))

# Words of the surface itself. None can name a tool, a parameter, a record or a field, used or not, so that a registry
# does not become invalid when a type is added to it.
_KEYWORDS: Final = frozenset({"let", "return", "true", "false", "null"})
_DATE_WORD: Final = "date"


@dataclass(frozen=True, kw_only=True, slots=True)
class CLikeDialect:
    """Steps that look like statements of C."""

    name: str = "c"

    def lower(
        self, registry: Registry, *, nested: bool = False, realizable: bool = True, types: Iterable[ToolType] = ()
    ) -> LoweredDialect:
        """The C-like language of steps over these tools; see `dialects.base.Dialect`."""
        universe = Universe.of(registry, types)
        _check_names(registry, universe)
        return LoweredDialect(
            name=self.name,
            registry=registry,
            universe=universe,
            nested=nested,
            realizable=realizable,
            grammar=Grammar.parse(grammar_text(registry, universe, nested=nested)),
            words=_reserved(registry, universe),
            reader=Reader(read_text=read_text),
            renderer=CLikeRenderer(registry=registry),
        )


def grammar_text(registry: Registry, universe: Universe, *, nested: bool = False) -> str:
    """The `.auf` text of the language."""
    names = Names()
    contextual = sorted(_contextual(registry, universe))
    text = _TEMPLATE.substitute(
        tools=", ".join(registry),
        ambient=" ".join(map(_quote, discipline.ambient_keys(universe))),
        contextual=f"%contextual {' '.join(map(_quote, contextual))}" if contextual else "",
        type_fragment=discipline.type_fragment(universe),
        literals=_literals(universe),
        references=_references(universe, names),
        records=_records(universe, names),
        expressions=_expressions(universe, nested=nested),
        calls=_calls(registry, names),
        open="Open" if _converts(universe) else "Value",
        step_rules=discipline.step_rules(),
        value_rules=discipline.value_rules(universe),
        field_rules=discipline.field_rules(universe),
        applied_rules=discipline.applied_rules(universe, registry),
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _literals(universe: Universe) -> str:
    known = {
        "text": f"Text(text) ::= /{TEXT_PATTERN}/",
        "int": f"Int(int) ::= /{INT_PATTERN}/",
        "float": f"Float(float) ::= /{FLOAT_PATTERN}/",
        "bool": "Bool(bool) ::= 'true' | 'false'",
        "date": f"Day ::= /{DATE_PATTERN}/\nDate(date) ::= '{_DATE_WORD}' '(' Day[day] ')'",
    }
    lines = [known[label] for label, _ in discipline.literal_kinds(universe)]
    for kind in universe.enums:
        members = " | ".join(_quote(spell_text(member)) for member in kind.members)
        lines.append(f"Enum_{kind.name}(enum.{kind.name}) ::= {members}")
    return "\n".join(lines)


def _references(universe: Universe, names: Names) -> str:
    heads, lines = ["Var"], []
    for record in universe.records:
        for field in record.fields:
            head = names.fresh("Field", record.name, field.name)
            heads.append(head)
            lines.append(f"{head}(field.{record.name}.{field.name}) ::= Reference[record] '.{field.name}'")
    return "\n".join([*lines, f"Reference ::= {' | '.join(heads)}"])


def _records(universe: Universe, names: Names) -> str:
    blocks = []
    for record in universe.records:
        parts = [Part(name=field.name, required=field.required) for field in record.fields]
        head, label = f"Record_{record.name}", f"record.{record.name}"
        blocks.append(application(head, label, record.name, parts, names, positional=False))
    return "\n".join(blocks)


def _expressions(universe: Universe, *, nested: bool) -> str:
    """The nonterminals `Value`, whatever can meet a demand, and `Open`, what has a type of its own.

    They differ where an int may stand for a float, or a value for an optional one. Without a demand such readings would
    double with every list around them, so an `Open` list holds `Open` items.
    """
    atoms = ["Reference", *(label.capitalize() for label, _ in discipline.literal_kinds(universe))]
    atoms += [f"Enum_{kind.name}" for kind in universe.enums]
    atoms += [f"Record_{kind.name}" for kind in universe.records]
    atoms += ["Call"] if nested else []
    atoms += ["EmptyList"] if universe.has_lists else []
    lines = ["EmptyList(empty) ::= '[' ']'"] if universe.has_lists else []
    if not _converts(universe):
        return "\n".join([*lines, *_with_lists("Value", "", atoms, universe)])
    lines += _with_lists("Open", "Open", atoms, universe)
    lines.append(f"Atom ::= {' | '.join(atoms)}")
    lines += _with_lists("Plain", "", ["Atom"], universe, items="Value")
    conversions, present = ["Plain"], "Plain"
    if universe.widens:
        lines.append("Widened(widened) ::= Plain[value]")
        conversions.append("Widened")
        present = "Present"
    if universe.has_optionals:
        lines += ["Present ::= Plain | Widened"] if universe.widens else []
        lines += [f"Some(some) ::= {present}[value]", "Null(null) ::= 'null'"]
        conversions += ["Some", "Null"]
    return "\n".join([*lines, f"Value ::= {' | '.join(conversions)}"])


def _with_lists(head: str, prefix: str, atoms: list[str], universe: Universe, items: str = "") -> list[str]:
    """The definition of `head` as one of the atoms or, if lists occur, a list of `items` (of `head` itself)."""
    if not universe.has_lists:
        return [f"{head} ::= {' | '.join(atoms)}"]
    item = items or head
    return [
        f"{prefix}List(list) ::= '[' {prefix}Items[items] ']'",
        f"More{prefix}Items(items) ::= {item}[value] ',' {prefix}Items[rest]",
        f"{prefix}Items ::= {item} | More{prefix}Items",
        f"{head} ::= {' | '.join([*atoms, f'{prefix}List'])}",
    ]


def _converts(universe: Universe) -> bool:
    """Whether a demand can be met by a value of another type."""
    return universe.widens or universe.has_optionals


def _calls(registry: Registry, names: Names) -> str:
    blocks = []
    for tool in registry.values():
        parts = [Part(name=parameter.name, required=parameter.required) for parameter in tool.parameters]
        blocks.append(application(f"Call_{tool.name}", f"call.{tool.name}", tool.name, parts, names, positional=True))
    return "\n".join([*blocks, f"Call ::= {' | '.join(f'Call_{name}' for name in registry)}"])


def _contextual(registry: Registry, universe: Universe) -> set[str]:
    """Words that mean something only before `=`, and enum members, which elsewhere are ordinary strings."""
    words = {parameter.name for tool in registry.values() for parameter in tool.parameters}
    words |= {field.name for record in universe.records for field in record.fields}
    return words | {spell_text(member) for kind in universe.enums for member in kind.members}


def _reserved(registry: Registry, universe: Universe) -> frozenset[str]:
    words = {"let", "return", *registry, *(record.name for record in universe.records)}
    words |= {"true", "false"} if universe.has("bool") else set()
    words |= {"null"} if universe.has_optionals else set()
    words |= {_DATE_WORD} if universe.has_dates else set()
    return frozenset(words - _contextual(registry, universe))


def _check_names(registry: Registry, universe: Universe) -> None:
    """Refuse what would be read in two ways. Raises `LoweringError`."""
    if not len(registry):
        raise LoweringError("the registry has no tool, so that no step could be taken; add one")
    taken = dict.fromkeys(_KEYWORDS, "a keyword of the C-like dialect")
    if universe.has_dates:
        taken[_DATE_WORD] = "the C-like dialect's word for dates"
    heads = [(f"tool {name}", name) for name in registry]
    heads += [(f"record type {record.name}", record.name) for record in universe.records]
    for role, name in heads:
        if name in taken:
            raise LoweringError(f"{role} can't be called {name!r}, which is {taken[name]}; rename it")
        taken[name] = f"the name of {role}"
    parts = [(f"parameter {p.name} of tool {tool.name}", p.name) for tool in registry.values() for p in tool.parameters]
    parts += [(f"field {f.name} of record type {r.name}", f.name) for r in universe.records for f in r.fields]
    for role, name in parts:
        if name in _KEYWORDS:
            raise LoweringError(f"{role} has the name of a keyword of the C-like dialect; rename it")


def _quote(literal: str) -> str:
    """A literal terminal as `.auf` text spells it."""
    return "'" + literal.replace("\\", "\\\\").replace("'", "\\'") + "'"


@dataclass(frozen=True, kw_only=True, slots=True)
class CLikeRenderer:
    """Spells steps; arguments are positional up to the first one left out."""

    registry: Registry

    def step(self, step: Step) -> str:
        """A step on one line."""
        if isinstance(step, Let):
            return f"let {step.name} = {self.expression(step.call)};"
        return f"return {self.expression(step.value)};"

    def expression(self, expression: Expression) -> str:
        """An expression as it stands inside a step. Raises `SpellingError`."""
        match expression:
            case Literal():
                return _spell(expression)
            case Reference():
                return ".".join((expression.name, *expression.fields))
            case ListLiteral():
                return f"[{', '.join(map(self.expression, expression.items))}]"
            case RecordLiteral():
                fields = (f"{name} = {self.expression(value)}" for name, value in expression.fields)
                return f"{expression.type}({', '.join(fields)})"
            case Call():
                return f"{expression.tool}({', '.join(self._arguments(expression))})"

    def _arguments(self, call: Call) -> Iterable[str]:
        declared = [parameter.name for parameter in self.registry[call.tool].parameters]
        for index, (name, value) in enumerate(call.arguments):
            key = "" if declared[: index + 1] == [n for n, _ in call.arguments[: index + 1]] else f"{name} = "
            yield key + self.expression(value)


def _spell(literal: Literal) -> str:
    match literal.value:
        case None | bool():
            return json.dumps(literal.value)
        case str():
            return spell_text(literal.value)
        case int():
            return spell_int(literal.value)
        case float():
            return spell_float(literal.value)
        case datetime.datetime():
            raise SpellingError("a date with a time of day has no literal; write the date alone")
        case datetime.date():
            return f'date("{literal.value.isoformat()}")'
