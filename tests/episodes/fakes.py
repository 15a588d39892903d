"""Small stand-ins for the packages of outside suites: what the importers use of each, with tasks of our own."""

from __future__ import annotations

import datetime
import importlib.util
import json
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, create_model


def installed(module: str) -> bool:
    """Whether an outside suite is installed."""
    return importlib.util.find_spec(module) is not None


def module(patch: pytest.MonkeyPatch, name: str, **content: Any) -> types.ModuleType:
    """A module under a name, for the time of a test; packages above it come with it."""
    parts = name.split(".")
    for index in range(1, len(parts)):
        above = ".".join(parts[:index])
        if above not in sys.modules or not getattr(sys.modules[above], "__fake__", False):
            made = types.ModuleType(above)
            vars(made).update(__fake__=True, __path__=[])
            patch.setitem(sys.modules, above, made)
    made = types.ModuleType(name)
    vars(made).update(__fake__=True, **content)
    patch.setitem(sys.modules, name, made)
    return made


# AgentDojo


class Note(BaseModel):
    id_: str
    author: str
    written: datetime.datetime
    tags: dict[str, str]
    stars: int = 0


class Environment(BaseModel):
    notes: list[Note]


class Function(BaseModel):
    name: str
    description: str
    parameters: type[BaseModel]
    return_type: Any
    run: Callable[..., Any]


class FunctionCall(BaseModel):
    function: str
    args: dict[str, Any]


class Runtime:
    """Runs functions on an environment after lax validation."""

    def __init__(self, functions: list[Function]) -> None:
        self.functions = {function.name: function for function in functions}

    def run_function(self, env: Any, name: str, arguments: dict[str, Any], raise_on_error: bool) -> tuple[Any, None]:
        function = self.functions[name]
        checked = function.parameters.model_validate(arguments).model_dump()
        return function.run(env, **checked), None


def _star(env: Environment, note_id: str, stars: float, reason: str | None) -> None:
    note = next(note for note in env.notes if note.id_ == note_id)
    note.stars += int(stars)


class Task:
    ID = "user_task_0"
    PROMPT = "Give the first note two stars."
    GROUND_TRUTH_OUTPUT = "done"
    GOLD: list[FunctionCall] = [  # noqa: RUF012
        FunctionCall(function="list_notes", args={}),
        FunctionCall(function="star", args={"note_id": "1", "stars": 2}),
    ]

    def init_environment(self, environment: Environment) -> Environment:
        return environment

    def ground_truth(self, environment: Environment) -> list[FunctionCall]:
        return self.GOLD


class BadTask(Task):
    ID = "user_task_1"
    GOLD = [FunctionCall(function="star", args={"note_id": 1, "stars": 2})]  # noqa: RUF012


class Suite:
    """A suite of two tasks; the gold of the second is not of the stated types."""

    tools = (
        Function(
            name="list_notes",
            description="All notes.",
            parameters=create_model("list_notes"),
            return_type=list[Note],
            run=lambda env: env.notes,
        ),
        Function(
            name="star",
            description="Give stars.",
            parameters=create_model(
                "star",
                note_id=(str, ...),
                stars=(float, ...),
                reason=(str | None, None),
            ),
            return_type=None,
            run=_star,
        ),
    )
    user_tasks = {"user_task_0": Task(), "user_task_1": BadTask()}  # noqa: RUF012

    def load_and_inject_default_environment(self, injections: dict[str, str]) -> Environment:
        note = Note(id_="1", author="a@b.org", written=datetime.datetime(2024, 1, 1), tags={})
        return Environment(notes=[note])

    def _check_task_result(self, task: Task, said: list[Any], before: Any, after: Any, trace: list[Any]) -> bool:
        return said == [{"text": "done"}] and after.notes[0].stars == before.notes[0].stars + 2 and len(trace) == 2

    def run_task_with_pipeline(self, pipeline: Any, task: Task, **options: Any) -> tuple[bool, bool]:
        return True, True


def agentdojo(patch: pytest.MonkeyPatch) -> None:
    """What the importer of AgentDojo uses."""
    module(patch, "agentdojo.task_suite.load_suites", get_suites=lambda version: {"notes": Suite()})
    module(patch, "agentdojo.functions_runtime", FunctionsRuntime=Runtime, FunctionCall=FunctionCall)
    module(patch, "agentdojo.types", text_content_block_from_string=lambda text: {"text": text})
    module(patch, "agentdojo.agent_pipeline.ground_truth_pipeline", GroundTruthPipeline=lambda task: task)


# BFCL

COUNTER_TOOLS: list[dict[str, Any]] = [
    {
        "name": "increase",
        "description": "Add to the counter.",
        "parameters": {"type": "dict", "properties": {"by": {"type": "float"}}, "required": ["by"]},
        "response": {"type": "dict", "properties": {"count": {"type": "integer"}, "type": {"type": "string"}}},
    },
    {
        "name": "reset",
        "description": "Set to zero.",
        "parameters": {"type": "dict", "properties": {}, "required": []},
        "response": {"type": "dict", "properties": {"count": {"type": "string"}}},
    },
]
COUNTER_ENTRIES: list[dict[str, Any]] = [
    {
        "id": "multi_turn_base_0",
        "question": [[{"role": "user", "content": "Add two, twice."}], [{"role": "user", "content": "Reset."}]],
        "initial_config": {"Counter": {"count": 1}},
        "involved_classes": ["Counter"],
    },
    {
        "id": "multi_turn_base_1",
        "question": [[{"role": "user", "content": "Add."}]],
        "initial_config": {},
        "involved_classes": ["Counter"],
    },
]
COUNTER_GOLD: list[dict[str, Any]] = [
    {"id": "multi_turn_base_0", "ground_truth": [["increase(by=2)", "increase(2)"], ["reset()"]]},
    {"id": "multi_turn_base_1", "ground_truth": [["increase(by='two')"]]},
]


class Counter:
    """A tool class whose second tool doesn't keep to its documentation."""

    def _load_scenario(self, config: dict[str, Any], long_context: bool = False) -> None:
        self.count = config.get("count", 0)

    def increase(self, by: float) -> dict[str, Any]:
        self.count += int(by)
        return {"count": self.count, "type": "counter"}

    def reset(self) -> dict[str, Any]:
        self.count = 0
        return {"count": 0}


def bfcl(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """What the importer of BFCL uses."""
    data = folder / "data"
    files: dict[str, list[dict[str, Any]]] = {
        "BFCL_v4_multi_turn_base.json": COUNTER_ENTRIES,
        "possible_answer/BFCL_v4_multi_turn_base.json": COUNTER_GOLD,
        "multi_turn_func_doc/counter.json": COUNTER_TOOLS,
    }
    for name, lines in files.items():
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    instances: dict[str, Counter] = {}

    def run(calls: list[str], config: dict[str, Any], classes: list[str], model: str, *rest: Any) -> Any:
        if model not in instances:
            instances[model] = Counter()
            instances[model]._load_scenario(config.get("Counter", {}))
        here = instances[model]
        return [json.dumps(eval(f"here.{call}", {"here": here})) for call in calls], {"Counter": here}

    def state(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
        equal = all(ours[name].count == theirs[name].count for name in theirs)
        return {"valid": equal, "error_message": "the counters differ"}

    def response(ours: list[str], theirs: list[str], turn: int) -> dict[str, Any]:
        return {"valid": set(theirs) <= set(ours), "error_message": "an answer is missing"}

    def check(texts: Any, answer: Any, entry: Any, category: str, model: str) -> dict[str, Any]:
        ran = [[run(step, entry["initial_config"], [], model)[0] for step in turn] for turn in texts]
        gold = [[run(turn, entry["initial_config"], [], f"{model}_gold")[0]] for turn in answer]
        return {"valid": ran == gold, "error_message": f"{ran} is not {gold}"}

    checker = "bfcl_eval.eval_checker.multi_turn_eval"
    module(
        patch, f"{checker}.multi_turn_checker", state_checker=state, response_checker=response, multi_turn_checker=check
    )
    module(patch, f"{checker}.multi_turn_utils", execute_multi_turn_func_call=run)
    module(patch, "bfcl_eval.counter", Counter=Counter)
    module(
        patch,
        "bfcl_eval.constants.executable_backend_config",
        CLASS_FILE_PATH_MAPPING={"Counter": "bfcl_eval.counter"},
        MULTI_TURN_FUNC_DOC_FILE_MAPPING={"Counter": "counter.json"},
        STATELESS_CLASSES=[],
    )
    patch.setattr(sys.modules["bfcl_eval"], "__path__", [str(folder)])
