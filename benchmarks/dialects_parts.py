"""What the dialects are measured on: our episodes, tool programs, and stated parts of AgentDojo and BFCL."""

from __future__ import annotations

import tomllib
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from episodes import Environment, Episode, Suite, SuiteError
from episodes.grading import contains, predicate
from episodes.importers import agentdojo, bfcl
from episodes.importers.base import Case, need
from registry import Registry, builtin, tool
from registry.types import STRING

ROOT: Final = Path(__file__).parents[1]
EPISODES: Final = ROOT / "examples" / "episodes"
PROGRAMS: Final = Path(__file__).parent / "tool_programs.toml"
OUTSIDE_TASKS: Final = 6


class Part(StrEnum):
    """Where tasks come from."""

    SUITE = "suite"
    """The episodes of `examples/episodes`, graded as their files say."""

    PROGRAMS = "programs"
    """Single-shot tool programs, graded by value."""

    AGENTDOJO = "agentdojo"
    """Of the registries with the fewest tools, the user tasks with the fewest gold calls, graded by their `utility`."""

    BFCL = "bfcl"
    """The first turns of the multi-turn base entries with the fewest tools, then the fewest gold calls, graded by the
    package's own state and response checkers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """One task. Episodes may act on a state of their own, so each attempt makes a fresh one."""

    part: Part
    name: str
    episode: Callable[[], Episode]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tasks:
    """The tasks in the order in which they are attempted, and why parts have been left out."""

    tasks: tuple[Task, ...]
    skipped: Mapping[Part, str]


def gather(parts: Sequence[Part]) -> Tasks:
    """The tasks of parts, in turn one of each, so that every beginning has as many of each as there are.

    A part whose package is not installed is skipped, with the reason.
    """
    by_part: list[list[Task]] = []
    skipped: dict[Part, str] = {}
    for part in parts:
        try:
            by_part.append(list(_MAKERS[part]()))
        except SuiteError as error:
            skipped[part] = str(error)
    longest = max(map(len, by_part), default=0)
    ordered = (tasks[place] for place in range(longest) for tasks in by_part if place < len(tasks))
    return Tasks(tasks=tuple(ordered), skipped=skipped)


def _ours() -> Iterator[Task]:
    for episode in Suite.load(EPISODES, builtin()):
        yield Task(part=Part.SUITE, name=episode.name, episode=lambda episode=episode: episode)  # type: ignore[misc]


def program_registry() -> Registry:
    """The built-in tools, and three more."""
    return builtin().with_tools(_add, _join, _words)


def program_episodes(path: Path = PROGRAMS) -> list[Episode]:
    """The tasks for tool programs, as episodes without turns."""
    registry = program_registry()
    return [_program(data, registry) for data in tomllib.loads(path.read_text(encoding="utf-8"))["task"]]


def _program(data: Mapping[str, Any], registry: Registry) -> Episode:
    return Episode(
        name=data["name"],
        prompt=data["prompt"],
        registry=registry,
        output_type=registry.find_type(data["output_type"]),
        expected=data.get("expected"),
        grader=contains(data["contains"]) if "contains" in data else None,
        reference=data["reference"],
    )


def _programs() -> Iterator[Task]:
    for episode in program_episodes():
        yield Task(part=Part.PROGRAMS, name=episode.name, episode=lambda episode=episode: episode)  # type: ignore[misc]


@tool(name="add", pure=True)
def _add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(name="join", pure=True)
def _join(first: str, second: str) -> str:
    """Join two texts by a comma."""
    return f"{first}, {second}"


@tool(name="words", pure=True)
def _words(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())


def _agentdojo() -> Iterator[Task]:
    reader = agentdojo.AgentDojo()
    suites = need("agentdojo.task_suite.load_suites", agentdojo.PACKAGE).get_suites(reader.version)
    fewest = min(len(suite.tools) for suite in suites.values())
    tasks = [
        (len(task.ground_truth(agentdojo._Live.of(suite, task).environment)), name, suite, task)
        for name, suite in suites.items()
        if len(suite.tools) == fewest
        for task in suite.user_tasks.values()
    ]
    for _, name, suite, task in sorted(tasks, key=lambda one: one[0])[:OUTSIDE_TASKS]:

        def episode(name: str = name, suite: Any = suite, task: Any = task) -> Episode:
            live = agentdojo._Live.of(suite, task)
            return Episode(
                name=f"{name}.{task.ID}",
                prompt=task.PROMPT,
                registry=Registry(reader.tools(suite, live.run)),
                output_type=STRING,
                grader=predicate(live.said, "the task's own utility"),
            )

        yield Task(part=Part.AGENTDOJO, name=f"{name}.{task.ID}", episode=episode)


def _bfcl() -> Iterator[Task]:
    reader = bfcl.Bfcl()
    stem = f"BFCL_v4_multi_turn_{reader.category}.json"
    cases = {case.name: case for case in reader.cases() if isinstance(case, Case)}
    answers = {item["id"]: item["ground_truth"] for item in bfcl._lines(f"possible_answer/{stem}")}
    # A first turn that calls nothing has no program, so the first one would be another turn's.
    entries = [entry for entry in bfcl._lines(stem) if entry["id"] in cases and answers[entry["id"]][0]]
    entries.sort(key=lambda entry: (len(cases[entry["id"]].registry), len(answers[entry["id"]][0])))
    for entry in entries[:OUTSIDE_TASKS]:
        gold, prompt = answers[entry["id"]][0], cases[entry["id"]].prompts[0]

        def episode(entry: Any = entry, gold: list[str] = gold, prompt: str = prompt) -> Episode:
            instances = bfcl._Instances.load(entry)
            excluded = tuple(entry.get("excluded_function", ()))
            return Episode(
                name=entry["id"],
                prompt=prompt,
                registry=Registry(reader.tools(entry["involved_classes"], excluded, instances)),
                grader=predicate(_first_turn(entry, gold, instances), "the package's own checkers of the first turn"),
            )

        yield Task(part=Part.BFCL, name=entry["id"], episode=episode)


def _first_turn(entry: Any, gold: list[str], instances: bfcl._Instances) -> Callable[[object, Environment], bool]:
    """Whether the package's checkers find the state and the responses that its gold calls of the first turn give."""

    def judge(output: object, environment: Environment) -> bool:
        checker, utils = need(bfcl._CHECKER, bfcl.PACKAGE), need(bfcl._UTILS, bfcl.PACKAGE)
        model = f"first_{uuid.uuid4().hex}"  # instances are cached under the model's name
        try:
            expected, references = utils.execute_multi_turn_func_call(
                gold, entry["initial_config"], entry["involved_classes"], model, entry["id"], False, True
            )
            verdicts = (
                checker.state_checker(instances.by_class, references),
                checker.response_checker(instances.results, expected, 0),
            )
            return all(verdict["valid"] for verdict in verdicts)
        finally:
            bfcl._forget(utils, model)

    return judge


_MAKERS: Final[Mapping[Part, Callable[[], Iterator[Task]]]] = {
    Part.SUITE: _ours,
    Part.PROGRAMS: _programs,
    Part.AGENTDOJO: _agentdojo,
    Part.BFCL: _bfcl,
}
