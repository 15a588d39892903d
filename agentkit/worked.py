"""Worked examples for prompts, made from a registry alone: for each tool a chain of calls, in the dialect.

A small model imitates what it sees. So the examples use the registry's own tools and types, and show a name
being bound, used by the next call and returned. Their values are made up; nothing is executed.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dialects import (
    Call,
    Expression,
    Let,
    ListLiteral,
    Literal,
    LoweredDialect,
    RecordLiteral,
    Reference,
    Return,
    Step,
)
from registry import (
    INT,
    DateType,
    EnumType,
    HandleType,
    ListType,
    OptionalType,
    RecordType,
    Registry,
    Tool,
    ToolType,
)

_SUBJECTS: Final = (
    "blue whales",
    "old maps of Iceland",
    "how to bake bread",
    "the first trains",
    "green tea",
)
_NUMBERS: Final = (3, 12, 7, 40, 2)


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkedStep:
    """A step and what it gave, as the model reads them."""

    text: str
    observation: str = ""
    name: str | None = None
    """What it binds; a return binds nothing."""

    type: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkedExample:
    """A task in words and the steps that solve it."""

    task: str
    answer: str
    """The name of the type that is returned."""

    steps: tuple[WorkedStep, ...]


def worked_examples(lowered: LoweredDialect, count: int) -> tuple[WorkedExample, ...]:
    """Up to `count` examples with tools, and one without: some tasks say their answer.

    The longest are chosen, those that end in a handle for want of others only. They are shown in the order that
    measured best: the longest, which shows the most, then from short to long.
    """
    chains = list(_chains(lowered.registry))
    chains.sort(key=lambda chain: (isinstance(chain[-1].returns, HandleType), -len(chain)))
    chosen = chains[:count]
    ordered = [*chosen[:1], *sorted(chosen[1:], key=len)]
    examples = [_spell(chain, number, lowered) for number, chain in enumerate(ordered)]
    if count and INT in lowered.universe:
        examples.append(_without_tools(lowered))
    return tuple(examples)


def _without_tools(lowered: LoweredDialect) -> WorkedExample:
    end = Return(value=Literal(value=_NUMBERS[0]))
    step = WorkedStep(text=lowered.render_step(end))
    return WorkedExample(task=f"Return the number {_NUMBERS[0]}.", answer=INT.name, steps=(step,))


def _chains(registry: Registry) -> Iterator[list[Tool]]:
    """For each tool: the calls that end in it; and the tool alone, where its arguments can be written as well."""
    for tool in registry.values():
        whole = _chain_to(tool, registry)
        if whole is not None:
            yield whole
        alone = all(_writable(part.type) for part in tool.parameters if part.required)
        if alone and whole != [tool]:
            yield [tool]


def _chain_to(tool: Tool, registry: Registry, above: tuple[str, ...] = ()) -> list[Tool] | None:
    """The calls, in order, that end in `tool`; None when an argument can neither be written nor made."""
    chain: list[Tool] = []
    for parameter in tool.parameters:
        if any(parameter.type == earlier.returns for earlier in chain):
            continue
        made = _making(parameter.type, registry, (*above, tool.name))
        if made is not None:
            chain += [one for one in made if one not in chain]
        elif parameter.required and not _writable(parameter.type):
            return None
    return [*chain, tool]


def _making(kind: ToolType, registry: Registry, above: tuple[str, ...]) -> list[Tool] | None:
    """The shortest calls that end in a value of this type."""
    # Texts are written, as tasks give them; anything else is shown being made where a tool makes it.
    if kind.name == "string":
        return None
    makers = (tool for tool in registry.values() if tool.returns == kind and tool.name not in above)
    chains = (_chain_to(tool, registry, above) for tool in makers)
    return min((chain for chain in chains if chain), key=len, default=None)


def _spell(chain: Sequence[Tool], number: int, lowered: LoweredDialect) -> WorkedExample:
    bound: dict[str, ToolType] = {}
    steps, wishes = [], []
    for tool in chain:
        arguments = [(part.name, _argument(part.type, bound, number)) for part in tool.parameters if part.required]
        name = _fresh(tool.returns, bound, lowered)
        step = Let(name=name, call=Call(tool=tool.name, arguments=tuple(arguments)))
        kind = tool.returns.name
        told = f"{name} : {kind}{_observed(tool.returns, number)}"
        steps.append(WorkedStep(text=lowered.render_step(step), observation=told, name=name, type=kind))
        texts = [lowered.renderer.expression(value) for _, value in arguments if isinstance(value, Literal)]
        wishes.append(" ".join([_wish(tool), *texts]))
        bound[name] = tool.returns
    end: Step = Return(value=Reference(name=name))
    steps.append(WorkedStep(text=lowered.render_step(end)))
    return WorkedExample(task=_sentence(wishes), answer=chain[-1].returns.name, steps=tuple(steps))


def _wish(tool: Tool) -> str:
    """What a tool does, in the words that people use for it: those of its name."""
    return tool.name.replace("_", " ")


def _sentence(wishes: Sequence[str]) -> str:
    whole = ", then ".join([*wishes, "return the result."])
    return whole[0].upper() + whole[1:]


def _fresh(kind: ToolType, bound: Iterable[str], lowered: LoweredDialect) -> str:
    """A short name after the type, as people choose it: `d` for docs, `n` for a number."""
    letter = "n" if kind.name in ("int", "float") else next((c for c in kind.name.lower() if c.isalpha()), "x")
    taken = {*bound, *lowered.words, *lowered.registry}
    return next(name for name in (letter, *(f"{letter}{n}" for n in range(2, 100))) if name not in taken)


def _argument(kind: ToolType, bound: dict[str, ToolType], number: int) -> Expression:
    """A name that holds the type, the latest first, or something written out."""
    named = [name for name, held in bound.items() if held == kind]
    return Reference(name=named[-1]) if named and kind.name != "string" else _written(kind, number)


def _written(kind: ToolType, number: int) -> Expression:
    match kind:
        case EnumType():
            return Literal(value=kind.members[0])
        case DateType():
            return Literal(value=datetime.date(2024, 5, 1 + number % 28))
        case ListType():
            return ListLiteral(items=(_written(kind.item, number),))
        case OptionalType():
            return _written(kind.item, number) if _writable(kind.item) else Literal(value=None)
        case RecordType():
            parts = tuple((part.name, _written(part.type, number)) for part in kind.fields if part.required)
            return RecordLiteral(type=kind.name, fields=parts)
    whole = _NUMBERS[number % len(_NUMBERS)]
    values: dict[str, str | int | float | bool] = {
        "string": _SUBJECTS[number % len(_SUBJECTS)],
        "int": whole,
        "float": whole + 0.5,
        "bool": True,
    }
    return Literal(value=values[kind.name])


def _writable(kind: ToolType) -> bool:
    """Whether a value of the type can be written out."""
    match kind:
        case HandleType():
            return False
        case ListType():
            return _writable(kind.item)
        case RecordType():
            return all(_writable(part.type) for part in kind.fields if part.required)
    return True


def _observed(kind: ToolType, number: int) -> str:
    """A made-up value as an observation shows it; none for what only the tool could show."""
    whole = _NUMBERS[number % len(_NUMBERS)]
    return {"int": f" = {whole}", "float": f" = {whole + 0.5}", "bool": " = true"}.get(kind.name, "")
