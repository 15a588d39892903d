"""BFCL multi-turn: stateful tool classes with documented signatures, graded by the package's own checkers."""

from __future__ import annotations

import ast
import copy
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import anyio

from dialects import Call, Expression, Let, ListLiteral, Literal, Program, RecordLiteral, Reference, Return
from episodes.context import Bindings
from episodes.importers.base import Case, Graded, Inexpressible, InexpressibleError, Reason, express, need
from episodes.programs import execute_program
from registry import MismatchError, ModelRetry, Registry, Tool, tool_from_json_schema
from registry.jsonvalues import from_json
from registry.types import RecordType, brand

PACKAGE: Final = "--no-deps bfcl-eval"
CATEGORIES: Final = ("base", "miss_func", "miss_param", "long_context")

_CHECKER: Final = "bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker"
_UTILS: Final = "bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils"
_CONFIG: Final = "bfcl_eval.constants.executable_backend_config"
# How the documentation spells types, where JSON Schema has another word.
_TYPES: Final[Mapping[str, str]] = {"dict": "object", "float": "number"}


def json_schema(documented: Any) -> Any:
    """A schema of the documentation as JSON Schema: two type names differ."""
    if isinstance(documented, list):
        return [json_schema(item) for item in documented]
    if not isinstance(documented, Mapping):
        return documented
    schema = {key: json_schema(part) for key, part in documented.items()}
    # A property may be called `type`: then its content is a schema and no name of a type.
    if isinstance(documented.get("type"), str):
        schema["type"] = _TYPES.get(documented["type"], documented["type"])
    return schema


@dataclass(slots=True)
class Bfcl:
    """Reads one category of the multi-turn entries."""

    category: str = "base"
    notes: dict[str, str] = field(default_factory=dict)
    _registries: dict[tuple[str, ...], Registry] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The suite's name with its category."""
        return f"bfcl_{self.category}"

    def cases(self) -> Iterator[Case | Inexpressible]:
        """Every entry of the category."""
        stem = f"BFCL_v4_multi_turn_{self.category}.json"
        answers = {item["id"]: item["ground_truth"] for item in _lines(f"possible_answer/{stem}")}
        for entry in _lines(stem):
            yield self._case(entry, answers[entry["id"]])

    def _case(self, entry: Mapping[str, Any], answer: list[list[str]]) -> Case | Inexpressible:
        registry = self.registry(entry)
        try:
            programs = gold_programs(registry, answer)
        except InexpressibleError as error:
            return Inexpressible(suite=self.name, name=entry["id"], reason=error.reason, detail=error.detail)
        prompts = tuple("\n".join(part["content"] for part in turn) for turn in entry["question"])
        return Case(
            suite=self.name,
            name=entry["id"],
            prompts=tuple(prompt for prompt, calls in zip(prompts, answer, strict=True) if calls),
            registry=registry,
            programs=programs,
            execute=lambda programs: self.execute(entry, answer, programs),
            baseline=lambda: self._checked(entry, answer, [[calls] for calls in answer]),
        )

    def everything(self) -> Registry:
        """The tools of all classes at once, 128 of them; none can be called."""
        return self.registry({"involved_classes": _classes()})

    def registry(self, entry: Mapping[str, Any]) -> Registry:
        """The tools of an entry's classes, but for those that it leaves out; none can be called."""
        excluded = tuple(sorted(entry.get("excluded_function", ())))
        key = (*sorted(entry["involved_classes"]), "", *excluded)
        if key not in self._registries:
            self._registries[key] = Registry(self.tools(entry["involved_classes"], excluded, _Instances({})))
        return self._registries[key]

    def tools(self, classes: Sequence[str], excluded: Sequence[str], instances: _Instances) -> list[Tool]:
        """The documented tools of classes, bound to instances of them."""
        return [
            self._tool(definition, class_name, instances)
            for class_name in sorted(classes)
            for definition in _documentation(class_name)
            if definition["name"] not in excluded
        ]

    def _tool(self, definition: Mapping[str, Any], class_name: str, instances: _Instances) -> Tool:
        name = definition["name"]
        response = json_schema(definition["response"])
        # Every class reports failures under `error`, which no response documents.
        properties = {**response["properties"], "error": {"type": "string"}}
        self.notes["*.error"] = "failures are returned under an undocumented `error`: added to every result"

        def call(**arguments: object) -> object:
            return self._fitting(tool, instances.call(class_name, name, arguments))

        tool = tool_from_json_schema(
            {**definition, "parameters": json_schema(definition["parameters"]), "response": None},
            call,
            returns={**response, "properties": properties},
            opaque_results=True,
        )
        return tool

    def _fitting(self, tool: Tool, result: object) -> object:
        """The documented part of a result; what is not of its documented type is left out and noted."""
        if not isinstance(result, Mapping) or not isinstance(tool.returns, RecordType):
            self.notes[f"{tool.name} result"] = f"documented as an object, returned a {type(result).__name__}"
            return {}
        fitting = {}
        for part in tool.returns.fields:
            if part.name in result:
                try:
                    brand(part.type, from_json(part.type, result[part.name]))
                except MismatchError as error:
                    self.notes[f"{tool.name} result.{part.name}"] = f"documented as {part.type.name}: {error}"
                else:
                    fitting[part.name] = result[part.name]
        return fitting

    def execute(self, entry: Mapping[str, Any], answer: list[list[str]], programs: Sequence[Program]) -> Graded:
        """Run the programs through our registry, turn by turn, each turn judged by the package's checkers.

        The package's whole checker then executes and judges the same calls, as text.
        """
        checker, utils = need(_CHECKER, PACKAGE), need(_UTILS, PACKAGE)
        model = f"gold_{uuid.uuid4().hex}"  # instances are cached under the model's name
        instances = _Instances.load(entry)
        excluded = tuple(entry.get("excluded_function", ()))
        registry = Registry(self.tools(entry["involved_classes"], excluded, instances))
        waiting, bindings = list(programs), Bindings()
        texts: list[list[list[str]]] = []
        try:
            for turn, calls in enumerate(answer):
                expected, references = utils.execute_multi_turn_func_call(
                    calls, entry["initial_config"], entry["involved_classes"], model, entry["id"], _long(entry), True
                )
                if not calls:
                    texts.append([])
                    continue
                program = waiting.pop(0)
                texts.append([[call_text(step.call) for step in program.steps if isinstance(step, Let)]])
                bindings = anyio.run(_bound, program, bindings, registry)
                for verdict in (
                    checker.state_checker(instances.by_class, references),
                    checker.response_checker(instances.results, expected, turn),
                ):
                    if not verdict["valid"]:
                        return Graded(passed=False, why=str(verdict["error_message"]))
        finally:
            _forget(utils, model)
        return self._checked(entry, answer, texts)

    def _checked(self, entry: Mapping[str, Any], answer: list[list[str]], texts: list[list[list[str]]]) -> Graded:
        """The word of the package's whole checker on calls as text."""
        checker, utils = need(_CHECKER, PACKAGE), need(_UTILS, PACKAGE)
        model = f"text_{uuid.uuid4().hex}"
        try:
            verdict = checker.multi_turn_checker(texts, answer, dict(entry), f"multi_turn_{self.category}", model)
        finally:
            _forget(utils, model)
        valid = bool(verdict["valid"])
        return Graded(passed=valid, why="" if valid else str(verdict["error_message"]))


@dataclass(slots=True)
class _Instances:
    """Instances of the tool classes, and what their methods returned, spelled as the package spells it."""

    by_class: dict[str, Any]
    results: list[str] = field(default_factory=list)

    @classmethod
    def load(cls, entry: Mapping[str, Any]) -> _Instances:
        """Fresh instances in the entry's initial state."""
        config = need(_CONFIG, PACKAGE)
        made = {}
        for name in entry["involved_classes"]:
            made[name] = getattr(need(config.CLASS_FILE_PATH_MAPPING[name], PACKAGE), name)()
            if name not in config.STATELESS_CLASSES:
                made[name]._load_scenario(
                    copy.deepcopy(entry["initial_config"].get(name, {})), long_context=_long(entry)
                )
        return cls(made)

    def call(self, class_name: str, name: str, arguments: Mapping[str, object]) -> object:
        """Call a method; what it raises is its answer, as it is in the package."""
        if class_name not in self.by_class:
            raise RuntimeError("this registry only describes the tools; execute a case to call them")
        try:
            result = getattr(self.by_class[class_name], name)(**arguments)
        except Exception as error:
            self.results.append(f"Error during execution: {error}")
            raise ModelRetry(str(error)) from error
        self.results.append(_spelled(result))
        return result


def _spelled(result: object) -> str:
    if isinstance(result, dict):
        try:
            return json.dumps(result)
        except TypeError:
            return str(result)
    return str(result)


async def _bound(program: Program, bindings: Bindings, registry: Registry) -> Bindings:
    return (await execute_program(program, bindings, registry)).bindings


def gold_programs(registry: Registry, answer: Sequence[Sequence[str]]) -> tuple[Program, ...]:
    """A program for each turn that calls something: its calls, and the last result returned."""
    programs, number = [], 0
    for calls in answer:
        lets = []
        for text in calls:
            number += 1
            lets.append(Let(name=f"x{number}", call=gold_call(registry, text)))
        if lets:
            programs.append(Program(steps=(*lets, Return(value=Reference(name=lets[-1].name)))))
    return tuple(programs)


def gold_call(registry: Registry, text: str) -> Call:
    """A call as the answers write it, a Python expression. Raises `InexpressibleError`."""
    tree = ast.parse(text.strip(), mode="eval").body
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
        raise InexpressibleError(Reason.COMPUTED, text)
    if tree.func.id not in registry:
        raise InexpressibleError(Reason.UNKNOWN_TOOL, text)
    tool = registry[tree.func.id]
    given: dict[str, object] = {}
    names = _declared(tool)
    for position, node in enumerate(tree.args):
        if position >= len(names):
            raise InexpressibleError(Reason.UNKNOWN_PARAMETER, text)
        given[names[position]] = _value(node, text)
    for keyword in tree.keywords:
        if keyword.arg not in names:
            raise InexpressibleError(Reason.UNKNOWN_PARAMETER, text)
        given[str(keyword.arg)] = _value(keyword.value, text)
    missing = [part.name for part in tool.parameters if part.required and part.name not in given]
    if missing:
        raise InexpressibleError(Reason.MISSING_PARAMETER, f"{text}: {missing[0]}")
    arguments = tuple(
        (part.name, express(given[part.name], part.type, f"{tool.name}.{part.name}"))
        for part in tool.parameters
        if part.name in given
    )
    return Call(tool=tool.name, arguments=arguments)


def call_text(call: Call) -> str:
    """A call as the package's checker evaluates it."""
    inside = ", ".join(f"{name}={_python(value)!r}" for name, value in call.arguments)
    return f"{call.tool}({inside})"


def _python(value: Expression) -> object:
    match value:
        case Literal():
            return value.value
        case ListLiteral():
            return [_python(item) for item in value.items]
        case RecordLiteral():
            return {name: _python(item) for name, item in value.fields}
    raise TypeError(f"{value} is no literal")


def _value(node: ast.expr, text: str) -> object:
    try:
        return ast.literal_eval(node)
    except ValueError as error:
        raise InexpressibleError(Reason.COMPUTED, text) from error


def _declared(tool: Tool) -> list[str]:
    """The parameters in the order of the documentation, by which positional arguments count."""
    order = next(
        list(definition["parameters"]["properties"])
        for class_name in _classes()
        for definition in _documentation(class_name)
        if definition["name"] == tool.name
    )
    return [name for name in order if any(part.name == name for part in tool.parameters)]


def _classes() -> list[str]:
    """The classes of the multi-turn categories; those of memory and web search serve other categories."""
    known = need(_CONFIG, PACKAGE).MULTI_TURN_FUNC_DOC_FILE_MAPPING
    return [name for name in known if not name.startswith(("Memory", "WebSearch"))]


@cache
def _documentation(class_name: str) -> list[dict[str, Any]]:
    return _lines(f"multi_turn_func_doc/{need(_CONFIG, PACKAGE).MULTI_TURN_FUNC_DOC_FILE_MAPPING[class_name]}")


def _lines(name: str) -> list[dict[str, Any]]:
    """The entries of a data file of the package, one JSON object a line."""
    path = Path(need("bfcl_eval", PACKAGE).__path__[0]) / "data" / name
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _long(entry: Mapping[str, Any]) -> bool:
    return "long_context" in entry["id"]


def _forget(utils: Any, model: str) -> None:
    """Drop the instances that the package keeps under a model's name in its module."""
    for name in [name for name in vars(utils) if name.startswith(model)]:
        delattr(utils, name)
