"""AgentDojo: user tasks over pydantic environments, their tools typed by their hints, graded by their `utility`."""

from __future__ import annotations

import datetime
import enum
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Union, get_args, get_origin

import anyio
from pydantic import BaseModel, EmailStr
from pydantic_core import PydanticUndefined

from dialects import Call, Let, Literal, Program, Return
from episodes.context import Bindings
from episodes.grading import predicate
from episodes.importers.base import Case, Graded, Inexpressible, InexpressibleError, Reason, express, need
from episodes.programs import execute_program
from episodes.spec import Episode
from registry import Parameter, Registry, Tool, type_from_hint, type_from_schema
from registry.jsonvalues import to_json
from registry.types import STRING, Field, HandleType, ListType, OptionalType, RecordType, ToolType

PACKAGE: Final = "agentdojo"

# Parameters whose hint says only `dict`, typed as their description in the docstring says.
_BY_DOCSTRING: Final[Mapping[str, Mapping[str, Any]]] = {
    "send_email.attachments": {
        "anyOf": [{"type": "array", "items": {"$ref": "#/$defs/attachment"}}, {"type": "null"}],
        "$defs": {
            "attachment": {
                "type": "object",
                "properties": {
                    "type": {"enum": ["file", "event"]},
                    "file_id": {"type": "string"},
                    "event_details": {"$ref": "#/$defs/event_details"},
                },
                "required": ["type"],
            },
            "event_details": {
                "type": "object",
                "properties": {
                    "title": {"type": "string"},
                    "description": {"type": "string"},
                    "start_time": {"type": "string"},
                    "end_time": {"type": "string"},
                    "location": {"type": "string"},
                    "participants": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["title", "description", "start_time", "end_time", "location", "participants"],
            },
        },
    }
}


@dataclass(slots=True)
class Hints:
    """Types from the package's hints; what has no type here becomes a handle and is noted under its place."""

    notes: dict[str, str] = field(default_factory=dict)
    _records: dict[type, RecordType] = field(default_factory=dict)

    def read(self, hint: Any, place: str) -> ToolType:
        """The type of a hint."""
        origin, inside = get_origin(hint), get_args(hint)
        if hint is EmailStr:
            return STRING
        if origin in (Union, types.UnionType):
            others = [item for item in inside if item is not types.NoneType]
            return OptionalType(self.read(others[0], place)) if len(others) == 1 else self._handle(place, hint, object)
        if origin is list:
            return ListType(self.read(inside[0], place))
        if hint in (None, types.NoneType):
            self.notes.setdefault("nothing", "None, which a tool returns that only acts: a handle `nothing`")
            return HandleType(name="nothing", python_type=types.NoneType)
        if hint is datetime.datetime:
            self.notes.setdefault("datetime", "a date with a time: a handle `datetime`, read but not written")
            return HandleType(name="datetime", python_type=datetime.datetime)
        if isinstance(hint, type) and origin is None and issubclass(hint, BaseModel):
            return self._record(hint)
        if hint in (str, int, float, bool) or (isinstance(hint, type) and issubclass(hint, enum.Enum)):
            return type_from_hint(hint)
        return self._handle(place, hint, origin or hint)

    def _record(self, model: type[BaseModel]) -> RecordType:
        if model not in self._records:
            fields = tuple(
                Field(
                    name=name,
                    type=self.read(info.annotation, f"{model.__name__}_{name}"),
                    required=info.is_required(),
                    default=None if info.default is PydanticUndefined else info.default,
                )
                for name, info in model.model_fields.items()
            )
            self._records[model] = RecordType(name=model.__name__, fields=fields, python_type=model)
        return self._records[model]

    def _handle(self, place: str, hint: object, python_type: Any) -> HandleType:
        self.notes[place] = (
            f"stated as {str(hint).replace('typing.', '')}: a handle `{place}`, passed on but not written"
        )
        return HandleType(name=place, python_type=python_type if isinstance(python_type, type) else object)


@dataclass(slots=True)
class AgentDojo:
    """Reads the four suites of one version of the benchmark."""

    version: str = "v1.2.2"
    hints: Hints = field(default_factory=Hints)

    @property
    def name(self) -> str:
        """The suite's name with its version."""
        return f"agentdojo_{self.version}"

    @property
    def notes(self) -> Mapping[str, str]:
        """What has no type here, or was typed by hand."""
        return self.hints.notes

    def cases(self) -> Iterator[Case | Inexpressible]:
        """Every user task of every suite."""
        suites = need("agentdojo.task_suite.load_suites", PACKAGE).get_suites(self.version)
        for suite_name, suite in suites.items():
            registry = Registry(self.tools(suite, None))
            for task in suite.user_tasks.values():
                yield self._case(suite_name, suite, task, registry)

    def tools(self, suite: Any, run: Callable[..., object] | None) -> list[Tool]:
        """The suite's tools; `run` takes a tool's name and arguments, None where none will be called."""
        return [self._tool(function, run) for function in suite.tools]

    def _tool(self, function: Any, run: Callable[..., object] | None) -> Tool:
        parameters = tuple(
            Parameter(
                name=name,
                type=self._parameter_type(function.name, name, info),
                required=info.is_required(),
                default=None if info.is_required() else info.default,
                description=info.description or "",
            )
            for name, info in function.parameters.model_fields.items()
        )
        kinds = {part.name: part.type for part in parameters}

        def call(**arguments: object) -> object:
            if run is None:
                raise RuntimeError("this registry only describes the tools; execute a case to call them")
            return run(function.name, {name: to_json(kinds[name], value) for name, value in arguments.items()})

        return Tool(
            name=function.name,
            description=function.description,
            parameters=tuple(sorted(parameters, key=lambda part: not part.required)),
            returns=self.hints.read(function.return_type, f"{function.name}_result"),
            pure=False,
            is_async=False,
            function=call,
        )

    def _parameter_type(self, tool: str, name: str, info: Any) -> ToolType:
        schema = _BY_DOCSTRING.get(f"{tool}.{name}")
        if schema is None:
            return self.hints.read(info.annotation, f"{tool}_{name}")
        self.hints.notes[f"{tool}.{name}"] = f"stated as {info.annotation}: typed by hand after its docstring"
        return type_from_schema(schema, name=f"{tool}_{name}")

    def _case(self, suite_name: str, suite: Any, task: Any, registry: Registry) -> Case | Inexpressible:
        name = f"{suite_name}.{task.ID}"
        environment = task.init_environment(suite.load_and_inject_default_environment({}))
        try:
            program = gold_program(registry, task.ground_truth(environment), task.GROUND_TRUTH_OUTPUT)
        except InexpressibleError as error:
            return Inexpressible(suite=self.name, name=name, reason=error.reason, detail=error.detail)
        return Case(
            suite=self.name,
            name=name,
            prompts=(task.PROMPT,),
            registry=registry,
            programs=(program,),
            output_types=(STRING,),
            execute=lambda programs: self.execute(suite, task, programs),
            baseline=lambda: _own(suite, task),
        )

    def episodes(self) -> Iterator[Episode]:
        """Every user task as an episode for one run: a fresh environment behind its tools, graded by its `utility`."""
        for suite_name, suite in need("agentdojo.task_suite.load_suites", PACKAGE).get_suites(self.version).items():
            for task in suite.user_tasks.values():
                live = _Live.of(suite, task)
                yield Episode(
                    name=f"{suite_name}.{task.ID}",
                    prompt=task.PROMPT,
                    registry=Registry(self.tools(suite, live.run)),
                    output_type=STRING,
                    grader=predicate(live.said, "the task's own utility"),
                )

    def execute(self, suite: Any, task: Any, programs: Sequence[Program]) -> Graded:
        """Run a program in a fresh environment through our registry, and ask the task's own `utility`."""
        live = _Live.of(suite, task)

        async def go() -> object:
            registry = Registry(self.tools(suite, live.run))
            return (await execute_program(programs[0], Bindings(), registry, output_type=STRING)).returned.value

        passed = live.said(anyio.run(go))
        return Graded(passed=passed, why="" if passed else "utility is false")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Live:
    """A task in an environment of its own, and the calls that were made in it."""

    suite: Any
    task: Any
    environment: Any
    before: Any
    runtime: Any
    trace: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, suite: Any, task: Any) -> _Live:
        """The task at its start."""
        environment = task.init_environment(suite.load_and_inject_default_environment({}))
        runtime = need("agentdojo.functions_runtime", PACKAGE).FunctionsRuntime(suite.tools)
        before = environment.model_copy(deep=True)
        return cls(suite=suite, task=task, environment=environment, before=before, runtime=runtime)

    def run(self, name: str, arguments: dict[str, object]) -> object:
        """Call a tool through the package's own runtime, which fills in the environment."""
        call = need("agentdojo.functions_runtime", PACKAGE).FunctionCall
        self.trace.append(call(function=name, args=arguments))
        return self.runtime.run_function(self.environment, name, arguments, raise_on_error=True)[0]

    def said(self, answer: object, environment: object = None) -> bool:
        """Whether the task's own grader passes an answer, given what the calls did."""
        said = [need("agentdojo.types", PACKAGE).text_content_block_from_string(str(answer))]
        return bool(self.suite._check_task_result(self.task, said, self.before, self.environment, self.trace))


def _own(suite: Any, task: Any) -> Graded:
    """The package's own run of its gold calls, judged by itself."""
    pipeline = need("agentdojo.agent_pipeline.ground_truth_pipeline", PACKAGE).GroundTruthPipeline(task)
    passed, _ = suite.run_task_with_pipeline(pipeline, task, injection_task=None, injections={})
    return Graded(passed=bool(passed), why="" if passed else "utility is false")


def gold_program(registry: Registry, calls: Sequence[Any], answer: str) -> Program:
    """The program that makes these calls and then says the answer. Raises `InexpressibleError`."""
    steps: list[Let | Return] = []
    for number, call in enumerate(calls, 1):
        tool = registry[call.function]
        known = {part.name: part for part in tool.parameters}
        for key in call.args:
            if key not in known:
                raise InexpressibleError(Reason.UNKNOWN_PARAMETER, f"{tool.name}: {key}")
        missing = [part.name for part in tool.parameters if part.required and part.name not in call.args]
        if missing:
            raise InexpressibleError(Reason.MISSING_PARAMETER, f"{tool.name}: {missing[0]}")
        arguments = tuple(
            (name, express(call.args[name], part.type, f"{tool.name}.{name}"))
            for name, part in known.items()
            if name in call.args
        )
        steps.append(Let(name=f"x{number}", call=Call(tool=tool.name, arguments=arguments)))
    return Program(steps=(*steps, Return(value=Literal(value=answer))))
