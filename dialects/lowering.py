"""Lowers a registry to the grammar of a surface: the same nonterminals, labels and bindings in every surface."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from string import Template

from aufbau import Grammar
from dialects import discipline
from dialects.base import LoweredDialect
from dialects.errors import LoweringError
from dialects.productions import Names, Part, application, quote
from dialects.reader import Reader
from dialects.realizable import guarded, telling
from dialects.surface import Speller, Surface
from dialects.universe import Universe
from registry import Registry
from registry.types import ToolType


@dataclass(frozen=True, kw_only=True, slots=True)
class SurfaceDialect:
    """The dialect of a surface; see `dialects.base.Dialect`."""

    surface: Surface
    name: str

    def lower(
        self, registry: Registry, *, nested: bool = False, realizable: bool = True, types: Iterable[ToolType] = ()
    ) -> LoweredDialect:
        """The language of steps over these tools in the surface."""
        surface, universe = self.surface, Universe.of(registry, types)
        _check_names(surface, registry, universe)
        return LoweredDialect(
            name=self.name,
            registry=registry,
            universe=universe,
            nested=nested,
            realizable=realizable,
            grammar=Grammar.parse(grammar_text(surface, registry, universe, nested=nested)),
            words=_words(surface, registry, universe) - _contextual(surface, registry, universe),
            announced=surface.announced,
            reader=Reader(surface=surface, registry=registry, universe=universe),
            renderer=Speller(surface, registry),
            keyword_renderer=Speller(surface, registry, keywords=True),
        )

    def grammar_text(self, registry: Registry, *, nested: bool = False, types: Iterable[ToolType] = ()) -> str:
        """The `.auf` text of that language."""
        return grammar_text(self.surface, registry, Universe.of(registry, types), nested=nested)


def grammar_text(surface: Surface, registry: Registry, universe: Universe, *, nested: bool = False) -> str:
    """The `.auf` text of the language."""
    names = Names()
    contextual = sorted(_contextual(surface, registry, universe))
    contextual += sorted(surface.spell_text(member) for kind in universe.enums for member in kind.members)
    template = Template(files("dialects").joinpath(surface.template).read_text(encoding="utf-8"))
    text = template.substitute(
        tools=", ".join(registry),
        ambient=" ".join(map(quote, discipline.ambient_keys(universe, registry, announced=surface.announced))),
        contextual=f"%contextual {' '.join(map(quote, dict.fromkeys(contextual)))}" if contextual else "",
        type_fragment=discipline.type_fragment(universe, slots=discipline.needs_slots(universe, registry)),
        literals=_literals(surface, universe),
        references=_references(surface, universe, names),
        records=_records(surface, universe, names),
        expressions=_expressions(surface, universe, nested=nested),
        calls=_calls(surface, registry, names),
        steps=_steps(surface, registry, universe),
        step_rules=discipline.step_rules(universe, registry, announced=surface.announced, nested=nested),
        value_rules=discipline.value_rules(universe, announced=surface.announced),
        field_rules=discipline.field_rules(universe, announced=surface.announced),
        applied_rules=discipline.applied_rules(universe, registry),
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _literals(surface: Surface, universe: Universe) -> str:
    lines = [surface.literal(label) for label, _ in discipline.literal_kinds(universe)]
    for kind in universe.enums:
        members = " | ".join(quote(surface.spell_text(member)) for member in kind.members)
        lines.append(f"Enum_{kind.name}(enum.{kind.name}) ::= {members}")
    return "\n".join(lines)


def _references(surface: Surface, universe: Universe, names: Names) -> str:
    """The nonterminals of bound names, one for each type where names are announced, and of fields read from them.

    What a field is read from is a nonterminal of its own for each record: of many hundred fields only those that give
    the record can stand there (predicting all of them took half a second with the 400 fields of BFCL's results).
    """
    words = discipline.words(universe)
    bound = {kind: f"Var_{words[kind]}" if surface.announced else "Var" for kind in universe}
    if surface.announced:
        lines = [f"{bound[kind]}(var.{words[kind]}) ::= {surface.reference}" for kind in universe]
    else:
        lines = [f"Var(var) ::= {surface.reference}"]
    fields = [
        (record, field, names.fresh("Field", record.name, field.name))
        for record in universe.records
        for field in record.fields
    ]
    for record in universe.records:
        heads = [head for _, field, head in fields if field.type == record]
        source = f"Read_{words[record]}" if heads else bound[record]
        lines += [f"{source} ::= {' | '.join([bound[record], *heads])}"] if heads else []
        for owner, field, head in fields:
            if owner == record:
                lines.append(f"{head}(field.{record.name}.{field.name}) ::= {surface.field(field.name, source)}")
    heads = [*dict.fromkeys(bound.values()), *(head for _, _, head in fields)]
    return "\n".join([*lines, f"Reference ::= {' | '.join(heads)}"])


def _records(surface: Surface, universe: Universe, names: Names) -> str:
    blocks = []
    for record in universe.written:
        parts = [Part(name=field.name, required=field.required) for field in record.fields]
        head, label = f"Record_{record.name}", f"record.{record.name}"
        blocks.append(application(surface, head, label, record.name, parts, names, positional=False))
    return "\n".join(blocks)


def _expressions(surface: Surface, universe: Universe, *, nested: bool) -> str:
    """The nonterminals `Value`, whatever can meet a demand, and `Open`, what has a type of its own.

    They differ where an int may stand for a float, or a value for an optional one. Without a demand such readings would
    double with every list around them, so an `Open` list holds `Open` items.
    """
    atoms = ["Reference", *(label.capitalize() for label, _ in discipline.literal_kinds(universe))]
    atoms += [f"Enum_{kind.name}" for kind in universe.enums]
    atoms += [f"Record_{kind.name}" for kind in universe.written]
    atoms += ["Call"] if nested else []
    atoms += ["EmptyList"] if universe.has_lists else []
    lines = [f"EmptyList(empty) ::= {' | '.join(surface.empty_list)}"] if universe.has_lists else []
    if not _converts(universe):
        return "\n".join([*lines, *_with_lists(surface, "Value", "", atoms, universe)])
    lines += _with_lists(surface, "Open", "Open", atoms, universe)
    lines.append(f"Atom ::= {' | '.join(atoms)}")
    lines += _with_lists(surface, "Plain", "", ["Atom"], universe, items="Value")
    conversions, present = ["Plain"], "Plain"
    if universe.widens:
        lines.append("Widened(widened) ::= Plain[value]")
        conversions.append("Widened")
        present = "Present"
    if universe.has_optionals:
        lines += ["Present ::= Plain | Widened"] if universe.widens else []
        lines += [f"Some(some) ::= {present}[value]", f"Null(null) ::= {' | '.join(surface.null)}"]
        conversions += ["Some", "Null"]
    return "\n".join([*lines, f"Value ::= {' | '.join(conversions)}"])


def _with_lists(
    surface: Surface, head: str, prefix: str, atoms: Sequence[str], universe: Universe, items: str = ""
) -> list[str]:
    """The definition of `head` as one of the atoms or, if lists occur, a list of `items` (of `head` itself)."""
    if not universe.has_lists:
        return [f"{head} ::= {' | '.join(atoms)}"]
    item, (before, after) = items or head, surface.brackets
    more = " ".join(filter(None, (f"{item}[value]", surface.gap, f"{prefix}Items[rest]")))
    return [
        f"{prefix}List(list) ::= {before} {prefix}Items[items] {after}",
        f"More{prefix}Items(items) ::= {more}",
        f"{prefix}Items ::= {item} | More{prefix}Items",
        f"{head} ::= {' | '.join([*atoms, f'{prefix}List'])}",
    ]


def _converts(universe: Universe) -> bool:
    """Whether a demand can be met by a value of another type."""
    return universe.widens or universe.has_optionals


def _calls(surface: Surface, registry: Registry, names: Names) -> str:
    blocks = []
    for tool in registry.values():
        parts = [Part(name=parameter.name, required=parameter.required) for parameter in tool.parameters]
        head, label = f"Call_{tool.name}", f"call.{tool.name}"
        blocks.append(application(surface, head, label, tool.name, parts, names, positional=True))
    return "\n".join([*blocks, f"Call ::= {' | '.join(f'Call_{name}' for name in registry)}"])


def _steps(surface: Surface, registry: Registry, universe: Universe) -> str:
    """Steps and programs.

    A program is taken apart by what its bindings make possible: the results of `telling` types, and, where names are
    announced, those of each type.
    """
    words = discipline.words(universe)
    lets = [words[kind] for kind in telling(universe, registry)]
    noted = discipline.noted(universe, registry, announced=surface.announced)
    late = [words[kind] for kind in guarded(universe)]
    opened = "Open" if _converts(universe) else "Value"
    lines = [f"Let(let) ::= {surface.let.format(call='Call')}"]
    lines += [f"Let_{word}(let.{word}) ::= {surface.let.format(call=f'Makes_{word}')}" for word in lets]
    lines += [f"Return(return) ::= {surface.returns.format(value='Value')}"]
    lines += [f"OpenReturn(open) ::= {surface.returns.format(value=opened)}"]
    lines += [f"Return_{word}(return.{word}) ::= {surface.returns.format(value='Value')}" for word in late]
    lines += [f"Step ::= {' | '.join(['Let', *(f'Let_{word}' for word in lets), 'Return', 'OpenReturn'])}"]
    sequences = []
    for kind in (*noted, None):
        tools = [tool for tool in registry.values() if (tool.returns if tool.returns in noted else None) == kind]
        word = f"_{words[kind]}" if kind is not None else ""
        if tools and noted:
            lines += [f"Makes{word} ::= {' | '.join(f'Call_{tool.name}' for tool in tools)}"]
            lines += [f"Bind{word}(let) ::= {surface.let.format(call=f'Makes{word}')}"]
        if tools:
            label = f"sequence.{word[1:]}" if word else "sequence"
            lines += [f"Sequence{word}({label}) ::= {f'Bind{word}' if noted else 'Let'}[first] Program[rest]"]
            sequences += [f"Sequence{word}"]
    lines += [f"Program ::= {' | '.join(['Return', 'OpenReturn', *(f'Return_{word}' for word in late), *sequences])}"]
    return "\n".join(lines)


def _parts(surface: Surface, registry: Registry, universe: Universe) -> set[str]:
    """Names of parameters and fields that arguments have, and of those that are read where they stand apart."""
    words = {parameter.name for tool in registry.values() for parameter in tool.parameters}
    records = universe.records if surface.announced else universe.written
    return words | {field.name for record in records for field in record.fields}


def _contextual(surface: Surface, registry: Registry, universe: Universe) -> set[str]:
    """Words that mean something only in one place, and are names elsewhere.

    Those are parameters and fields; in every surface, so that a name can be bound in all of them or in none.
    """
    parts = _parts(surface, registry, universe)
    return parts if surface.bare_parts else (parts - surface.keywords) & _words(surface, registry, universe)


def _words(surface: Surface, registry: Registry, universe: Universe) -> frozenset[str]:
    """The literals of the grammar that look like names, apart from names of parameters and fields."""
    if surface.announced:
        return frozenset()
    words = {*surface.words, *registry, *(record.name for record in universe.written)}
    words -= set() if universe.has("bool") else {"true", "false"}
    words -= set() if universe.has_optionals else {"null"}
    words -= set() if universe.has_dates or "date" in registry else {"date"}
    return frozenset(words)


def _check_names(surface: Surface, registry: Registry, universe: Universe) -> None:
    """Refuse what would be read in two ways. Raises `LoweringError`."""
    if not len(registry):
        raise LoweringError("the registry has no tool, so that no step could be taken; add one")
    taken = dict.fromkeys(surface.keywords, f"a keyword of the {surface.title} dialect")
    if universe.has_dates:
        taken["date"] = f"the {surface.title} dialect's word for dates"
    heads = [(f"tool {name}", name) for name in registry]
    heads += [(f"record type {record.name}", record.name) for record in universe.written]
    for role, name in heads:
        if name in taken:
            raise LoweringError(f"{role} can't be called {name!r}, which is {taken[name]}; rename it")
        taken[name] = f"the name of {role}"
    parts = [(f"parameter {p.name} of tool {tool.name}", p.name) for tool in registry.values() for p in tool.parameters]
    parts += [(f"field {f.name} of record type {r.name}", f.name) for r in universe.records for f in r.fields]
    for role, name in parts:
        if name in surface.part_keywords:
            raise LoweringError(f"{role} has the name of a keyword of the {surface.title} dialect; rename it")
