"""NESTFUL's word on a program of ours: its calls spelled as the package spells them, and the values that flowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import anyio

from dialects import Expression, Let, ListLiteral, Literal, Program, RecordLiteral, Reference
from episodes.context import Bindings
from episodes.importers.base import Graded, need
from episodes.importers.nestful_bridges import Bridges
from episodes.importers.nestful_catalogue import Catalogue, undefined
from episodes.importers.nestful_programs import RESULT
from episodes.importers.stand_ins import stand_in
from episodes.programs import ProgramOutcome, execute_program
from registry import Registry
from registry.jsonvalues import json_name, to_json
from registry.schema import identifier
from registry.types import ListType, OptionalType, RecordType, ToolType

PACKAGE: Final = "nestful-wrapper"


@dataclass(frozen=True, kw_only=True, slots=True)
class Back:
    """Spells programs as the package does; `origins` are what bridging steps stand for."""

    registry: Registry
    specs: Mapping[str, Mapping[str, Any]]
    labels: Mapping[str, str]
    result: RecordType
    origins: Mapping[str, object] = field(default_factory=dict)

    def steps(self, program: Program) -> list[dict[str, Any]]:
        """A program as the package's steps."""
        steps: list[dict[str, Any]] = []
        types = self.types(program)
        for step in program.steps:
            if isinstance(step, Let) and step.name not in self.origins:
                kinds = {part.name: part.type for part in self.registry[step.call.tool].parameters}
                name = self.tool(step.call.tool)
                arguments = {
                    self._key(name, part): self._value(value, kinds[part], types) for part, value in step.call.arguments
                }
                steps.append({"name": name, "arguments": arguments, "label": self.labels.get(step.name, step.name)})
            elif not isinstance(step, Let):
                steps.append({"name": RESULT, "arguments": self._value(step.value, self.result, types)})
        return steps

    def types(self, program: Program) -> dict[str, ToolType]:
        """The type of each name that a program binds."""
        lets = [step for step in program.steps if isinstance(step, Let)]
        return {step.name: self.registry[step.call.tool].returns for step in lets}

    def tool(self, name: str) -> str:
        """The package's name of a tool."""
        return next(known for known in self.specs if identifier(known) == name)

    def _key(self, tool: str, name: str) -> str:
        return next(str(key) for key in self.specs[tool]["query_parameters"] if identifier(key) == name)

    def _value(self, value: Expression, kind: ToolType | None, types: Mapping[str, ToolType]) -> Any:
        return spelled(value, kind, lambda reference: self.reference(reference, types))

    def reference(self, value: Reference, types: Mapping[str, ToolType]) -> object:
        """A reference as the package writes it, or what a bridging step stands for."""
        if value.name in self.origins:
            return self.origins[value.name]
        kind, path = types[value.name], [self.labels.get(value.name, value.name)]
        for name in value.fields:
            if not isinstance(kind, RecordType):
                raise TypeError(f"{value} reads a field of a {kind.name}")
            path.append(json_name(kind, name))
            kind = kind.field(name).type
        return f"${'.'.join(path)}$"


def spelled(value: Expression, kind: ToolType | None, refer: Callable[[Reference], object]) -> Any:
    """An argument as JSON data, its references as `refer` gives them."""
    inner = kind.item if isinstance(kind, OptionalType) else kind
    match value:
        case Literal():
            return value.value if inner is None else to_json(inner, value.value)
        case ListLiteral():
            item = inner.item if isinstance(inner, ListType) else None
            return [spelled(part, item, refer) for part in value.items]
        case RecordLiteral() if isinstance(inner, RecordType):
            return {json_name(inner, name): spelled(part, inner.field(name).type, refer) for name, part in value.fields}
        case Reference():
            return refer(value)
    raise TypeError(f"{value} has no spelling in the package's programs")


def execute(
    catalogue: Catalogue,
    bridges: Bridges | None,
    item: Mapping[str, Any],
    back: Back,
    packaged: Any,
    programs: Sequence[Program],
) -> Graded:
    """Run a program on stand-ins, and ask the package about its calls, their values and its result."""
    program = programs[0]
    calls: list[dict[str, Any]] = []

    def function(name: str) -> Callable[..., object]:
        returns = back.registry[identifier(name)].returns

        def call(**arguments: object) -> object:
            result = to_json(returns, stand_in(returns, f"{name}{len(calls) + 1}"))
            calls.append({"name": name, "arguments": arguments, "response": result})
            return result

        return call

    tools = {step.call.tool for step in program.steps if isinstance(step, Let) and step.name not in back.origins}
    registry = catalogue.registry(function, [back.tool(name) for name in sorted(tools)])
    if bridges is not None:
        registry = registry.with_tools(*bridges.tools.values())

    async def go() -> ProgramOutcome:
        return await execute_program(program, Bindings(), registry, output_type=back.result)

    outcome = anyio.run(go)
    steps = back.steps(program)
    memory = {step["label"]: call["response"] for step, call in zip(steps, calls, strict=False)}
    fault = _flow(program, outcome, calls, memory, back)
    return Graded(passed=False, why=fault) if fault else judge(steps, item, packaged, memory)


def _flow(
    program: Program, outcome: ProgramOutcome, calls: Sequence[Mapping[str, Any]], memory: Mapping[str, Any], back: Back
) -> str:
    """What differs between the values that were passed and those to which the package resolves their references."""
    resolve = need("nestful.memory", PACKAGE).resolve_item_in_memory
    types, waiting = back.types(program), list(calls)

    def refer(reference: Reference) -> object:
        if reference.name in back.origins:
            return _read(reference, types[reference.name], outcome.bindings[reference.name].value)
        return resolve(_quoted(str(back.reference(reference, types))), memory)

    for step in program.steps:
        if not isinstance(step, Let):
            expected = spelled(step.value, back.result, refer)
            found: object = to_json(back.result, outcome.returned.value)
            place = RESULT
        else:
            kinds = {part.name: part.type for part in back.registry[step.call.tool].parameters}
            arguments = {name: spelled(value, kinds[name], refer) for name, value in step.call.arguments}
            place = step.call.tool
            if step.name in back.origins:
                expected = back.registry[place].function(**arguments)
                found = to_json(types[step.name], outcome.bindings[step.name].value)
            else:
                expected, found = list(arguments.values()), list(waiting.pop(0)["arguments"].values())
        if not same(found, expected):
            return f"{place}: passed {found!r}, the package resolves {expected!r}"
    return ""


def _read(reference: Reference, kind: ToolType, value: object) -> object:
    """The value of a reference to a bridging step, as JSON data."""
    for name in reference.fields:
        if not isinstance(kind, RecordType):
            raise TypeError(f"{reference} reads a field of a {kind.name}")
        value, kind = kind.read(value, name), kind.field(name).type
    return to_json(kind, value)


def same(left: object, right: object) -> bool:
    """Whether two values are equal as JSON: an int equals the float of its value, and true equals no number."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(item, right[key]) for key, item in left.items())
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def _quoted(reference: str) -> str:
    """A reference whose keys are quoted, since the package's resolver takes a bare blank for the end of a key."""
    return "$" + ".".join(f'"{key}"' for key in reference.strip("$").split(".")) + "$"


def judge(
    steps: Sequence[Mapping[str, Any]], item: Mapping[str, Any], packaged: Any, memory: Mapping[str, Any]
) -> Graded:
    """The package's step comparison, error tagger and goal check on a program as the package spells it."""
    sequences, tagger = need("nestful.schemas.sequences", PACKAGE), need("nestful.errors.error_tagger", PACKAGE)
    gold = sequences.SequencingData(input=item["input"], output=[dict(step) for step in item["output"]])
    ours = sequences.SequencingData(input=item["input"], output=[dict(step) for step in steps])
    for mine, theirs in zip(ours.output, gold.output, strict=True):
        if not mine.is_same_as(theirs, packaged, check_values=True):
            return Graded(passed=False, why=f"the package finds {mine} unlike {theirs}")
        # The comparison is by text; the tagger's is not, so what is written as its stated type is compared once only.
        mine.arguments = {
            key: theirs.arguments[key] if str(value) == str(theirs.arguments[key]) else value
            for key, value in mine.arguments.items()
        }
    if {key: str(value) for key, value in ours.var_result.items()} != {
        key: str(value) for key, value in gold.var_result.items()
    }:
        return Graded(passed=False, why=f"the result is {ours.var_result}, not {gold.var_result}")
    filled = {**ours.get_memory(catalog=packaged, fill_in_memory=True), **memory}
    tagged = tagger.tag_sequence(ours, gold, filled, packaged)
    errors = [*tagged.errors, *(error for step in tagged.output for error in step.errors)]
    if errors:
        return Graded(passed=False, why=f"the package tags {errors[0].error_type}: {errors[0].info}")
    reached = ours.goal_check(packaged, gold, memory=filled)
    return Graded(passed=bool(reached), why="" if reached else "the package's goal check fails")


def describing(catalogue: Catalogue, bridges: Bridges | None) -> Registry:
    """The tools of a catalogue, and the bridging ones, none of which is called for real."""
    registry = catalogue.registry(lambda _: undefined)
    return registry if bridges is None else registry.with_tools(*bridges.tools.values())
