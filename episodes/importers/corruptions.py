"""Gold steps made wrong in one place, and gold steps written otherwise: the first must be refused, the second not."""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from aufbau import Node, Prefix, Verdict
from dialects import (
    Call,
    Expression,
    Let,
    ListLiteral,
    Literal,
    LoweredDialect,
    Program,
    RecordLiteral,
    Reference,
    Return,
    Root,
    Step,
)
from episodes.importers.base import Case
from episodes.importers.gold import bound_types
from registry import Tool
from registry.types import FLOAT, INT, OptionalType, RecordType, ToolType


class Corruption(StrEnum):
    """What is wrong with a step."""

    UNKNOWN_TOOL = "unknown tool"
    WRONG_TYPE = "argument of another type"
    UNBOUND = "unbound reference"
    WRONG_REFERENCE = "reference of another type"
    WRONG_FIELD = "field that the value lacks"
    MISSING = "missing argument"
    EXTRA = "extra argument"
    REBOUND = "binder that is bound"
    TRUNCATED = "truncated step"


class Variation(StrEnum):
    """How else a step may be written."""

    RENAMED = "renamed variable"
    WHITE_SPACE = "other white space"
    REORDERED = "keyword arguments reordered"


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A gold step where it stands: under Γ, in the language that its case has."""

    lowered: LoweredDialect
    context: Mapping[str, ToolType]
    output: ToolType | None
    step: Step

    @property
    def text(self) -> str:
        """The step as the dialect writes it."""
        return self.lowered.render_step(self.step)

    def start(self) -> Prefix:
        """The empty prefix under Γ."""
        return self.lowered.start(self.context, self.output, Root.STEP)

    @property
    def tool(self) -> Tool | None:
        """The tool that the step calls."""
        return self.lowered.registry[self.step.call.tool] if isinstance(self.step, Let) else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Refused:
    """What became of a corrupted step; `distance` is in bytes, from the first wrong one to where it is lost."""

    kind: Corruption
    text: str
    refused: bool
    distance: int | None = None  # None for what is refused by being unfinished


@dataclass(frozen=True, kw_only=True, slots=True)
class Varied:
    """What became of a step written otherwise."""

    kind: Variation
    text: str
    accepted: bool


def places(case: Case, lowered: LoweredDialect) -> Iterator[Place]:
    """Every step of a case's gold programs."""
    context: dict[str, ToolType] = {}
    for turn, program in enumerate(case.programs):
        for step in program.steps:
            yield Place(lowered=lowered, context=dict(context), output=case.output_type(turn), step=step)
            context |= dict(bound_types(Program(steps=(step,)), case.registry))


def corrupt(place: Place, chance: random.Random) -> Iterator[Refused]:
    """The step with each corruption that applies to it, judged."""
    for kind, step in _corrupted(place, chance):
        yield _judge(place, kind, place.lowered.render_step(step))
    if place.tool is not None:
        yield _judge(place, Corruption.UNKNOWN_TOOL, _misspelled(place, place.tool.name))
    data = place.text.encode()
    cut = data[: chance.randrange(1, len(data))]
    refused = place.start().feed(cut).verdict is Verdict.LIVE
    yield Refused(kind=Corruption.TRUNCATED, text=cut.decode(errors="replace"), refused=refused)


def _judge(place: Place, kind: Corruption, text: str) -> Refused:
    data, gold = text.encode(), place.text.encode()
    wrong = next((i for i, pair in enumerate(zip(data, gold, strict=False)) if pair[0] != pair[1]), len(gold))
    lost = place.start().feed(data).lost_at
    return Refused(kind=kind, text=text, refused=lost is not None, distance=None if lost is None else lost - wrong)


def _misspelled(place: Place, tool: str) -> str:
    """The step with another letter at the end of its tool's name, wherever it stands after the binder."""
    known = place.lowered.registry
    other = next(name for end in "xyzq" if (name := tool[:-1] + end) not in known and name != tool)
    text, binder = place.text, place.step.name if isinstance(place.step, Let) else ""
    at = text.index(binder) + len(binder)
    return text[:at] + re.sub(rf"\b{re.escape(tool)}\b", other, text[at:], count=1)


def _corrupted(place: Place, chance: random.Random) -> Iterator[tuple[Corruption, Step]]:
    step, bound = place.step, list(place.context)
    if isinstance(step, Return):
        if place.output is not None:
            yield Corruption.UNBOUND, Return(value=Reference(name=_fresh(bound)))
            yield Corruption.WRONG_TYPE, Return(value=_other_literal(place.output))
        return
    tool = place.lowered.registry[step.call.tool]
    if bound:
        yield Corruption.REBOUND, dataclasses.replace(step, name=chance.choice(bound))
    yield Corruption.EXTRA, _with(step, (*step.call.arguments, ("no_such_parameter", Literal(value=1))))
    if not step.call.arguments:
        return
    required = [name for name, _ in step.call.arguments if tool.parameter(name).required]
    if required:
        dropped = chance.choice(required)
        yield Corruption.MISSING, _with(step, tuple(part for part in step.call.arguments if part[0] != dropped))
    name, _ = chance.choice(step.call.arguments)
    wanted = tool.parameter(name).type
    yield Corruption.WRONG_TYPE, _set(step, name, _other_literal(wanted))
    yield Corruption.UNBOUND, _set(step, name, Reference(name=_fresh([*bound, step.name])))
    others = [other for other, kind in place.context.items() if not stands_for(kind, wanted)]
    if others:
        yield Corruption.WRONG_REFERENCE, _set(step, name, Reference(name=chance.choice(others)))
    records = [other for other, kind in place.context.items() if isinstance(kind, RecordType)] or bound
    for field, value in step.call.arguments:
        if isinstance(value, Reference) and value.fields:
            wrong = (*value.fields[:-1], "no_such_field")
            yield Corruption.WRONG_FIELD, _set(step, field, dataclasses.replace(value, fields=wrong))
            return
    if records:
        wrong_field = Reference(name=chance.choice(records), fields=("no_such_field",))
        yield Corruption.WRONG_FIELD, _set(step, name, wrong_field)


def stands_for(kind: ToolType, wanted: ToolType) -> bool:
    """Whether a reference of one type may stand where another is demanded."""
    inner = wanted.item if isinstance(wanted, OptionalType) else wanted
    return kind in (wanted, inner) or (kind, inner) == (INT, FLOAT)


def _other_literal(kind: ToolType) -> Expression:
    """A literal that is not of a type."""
    inner = kind.item if isinstance(kind, OptionalType) else kind
    return Literal(value="seven") if inner in (INT, FLOAT) else Literal(value=7)


def _fresh(bound: list[str]) -> str:
    """The name that would come next, as a model that counts its results would write it."""
    return next(name for number in range(1, len(bound) + 3) if (name := f"x{number}") not in bound)


def _with(step: Let, arguments: tuple[tuple[str, Expression], ...]) -> Let:
    return dataclasses.replace(step, call=Call(tool=step.call.tool, arguments=arguments))


def _set(step: Let, name: str, value: Expression) -> Let:
    return _with(step, tuple((key, value if key == name else old) for key, old in step.call.arguments))


def vary(place: Place, chance: random.Random) -> Iterator[Varied]:
    """The step written otherwise in every way that applies to it, judged: it must read back as the same step."""
    names = {name: f"{name}_renamed" for name in place.context}
    if isinstance(place.step, Let):
        names[place.step.name] = f"{place.step.name}_renamed"
    renamed = _renamed_step(place.step, names)
    moved = dataclasses.replace(place, context={names[name]: kind for name, kind in place.context.items()})
    yield _read(moved, Variation.RENAMED, place.lowered.render_step(renamed), renamed)
    tree = place.start().feed(place.text).tree()
    if tree is not None:
        yield _read(place, Variation.WHITE_SPACE, _spaced(place.text, tree, chance), place.step)
    if isinstance(place.step, Let) and len(place.step.call.arguments) > 1:
        turned = _with(place.step, tuple(reversed(place.step.call.arguments)))
        yield _read(place, Variation.REORDERED, place.lowered.render_step(turned), place.step)


def _read(place: Place, kind: Variation, text: str, wanted: Step) -> Varied:
    tree = place.start().feed(text).tree()
    return Varied(kind=kind, text=text, accepted=tree is not None and place.lowered.read_step(tree) == wanted)


def _spaced(text: str, tree: Node, chance: random.Random) -> str:
    """The text with white space between lexemes; not beside the content of an XML string, which it would change."""
    leaves = sorted(_leaves(tree), key=lambda node: node.start)
    data = text.encode()
    out = bytearray(data[: leaves[0].start])
    for leaf, after in zip(leaves, [*leaves[1:], None], strict=True):
        out += data[leaf.start : leaf.end]
        between = data[leaf.end : after.start] if after else b""
        content = text.startswith("<") and not (
            leaf.text.endswith((">", '"', "=")) and (after is None or after.text.startswith(("<", "/", ">")))
        )
        out += between or (b"" if content or after is None else chance.choice([b"", b" ", b"\n", b"  \n\t"]))
    return out.decode()


def _leaves(node: Node) -> Iterator[Node]:
    if node.is_lexeme:
        yield node
    for child in node.children:
        yield from _leaves(child)


def _renamed_step(step: Step, names: Mapping[str, str]) -> Step:
    if isinstance(step, Return):
        return Return(value=_renamed(step.value, names))
    call = _renamed(step.call, names)
    assert isinstance(call, Call)
    return Let(name=names[step.name], call=call)


def _renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    match expression:
        case Reference():
            return dataclasses.replace(expression, name=names[expression.name])
        case Call():
            arguments = tuple((name, _renamed(value, names)) for name, value in expression.arguments)
            return dataclasses.replace(expression, arguments=arguments)
        case ListLiteral():
            return dataclasses.replace(expression, items=tuple(_renamed(item, names) for item in expression.items))
        case RecordLiteral():
            fields = tuple((name, _renamed(value, names)) for name, value in expression.fields)
            return dataclasses.replace(expression, fields=fields)
    return expression
