"""The shipped tasks: their number, and that every reference is what its own graders and the oracle take."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from agentkit.study import Resolution, Task, TaskError, load_tasks
from agentkit.study.attempt import grade
from agentkit.study.task import SHIPPED, read_tasks
from agentkit.synthesis.languages import engine_goal, oracle_of
from aufbau import Verdict

TASKS = [task for suite in SHIPPED for task in load_tasks(suite)]
IDS = [task.id for task in TASKS]
QUICK = [task for task in TASKS if task.resolution in (Resolution.EQUIVALENT, Resolution.TYPED)]


def test_the_proportions_are_the_papers() -> None:
    counted = Counter(task.suite for task in TASKS)
    assert counted == {"stlc": 33, "ml": 14, "c": 5, "fun": 40, "ml_behaviour": 20, "c_behaviour": 20}
    assert len(set(IDS)) == len(IDS)
    assert all(task.tests for task in TASKS if task.suite.endswith("behaviour"))


@pytest.mark.parametrize("task", TASKS, ids=IDS)
def test_the_oracle_takes_a_reference_at_every_byte(task: Task) -> None:
    oracle = oracle_of(task.language.value)
    # Programs of definitions have no type in core ML, so the goal is the grader's there.
    goal = None if task.language.value == "core_ml" else engine_goal(task.language, task.goal)
    reached = oracle.start(context=dict(task.context) or None, goal=goal).feed(task.reference)
    # LOST is final, so what is satisfied was lost at no byte before.
    assert reached.verdict is Verdict.SATISFIED, reached.explain()
    assert oracle.syntactic().start().feed(task.reference).verdict is Verdict.SATISFIED


@pytest.mark.parametrize("task", QUICK, ids=[task.id for task in QUICK])
@pytest.mark.asyncio
async def test_a_reference_passes_its_grader(task: Task) -> None:
    valid, judged = await grade(task, task.reference)
    assert valid and judged.passed, judged.why
    assert judged.kind is task.kind


@pytest.mark.slow
@pytest.mark.parametrize("task", [task for task in TASKS if task not in QUICK], ids=lambda task: task.id)
@pytest.mark.asyncio
async def test_a_reference_passes_its_compiler_and_tests(task: Task) -> None:
    valid, judged = await grade(task, task.reference)
    assert valid and judged.passed, judged.why
    assert judged.kind is task.kind


def by_id(name: str) -> Task:
    return next(task for task in TASKS if task.id == name)


# task, an answer of its type that is not what was asked for
WRONG = [
    ("stlc/church_two", "λs:A->A.λz:A.s z"),
    ("stlc/second_of_same", "λx:A.λy:A.x"),
    ("fun/subtract", "(x: Int) => (y: Int) => y - x"),
    ("fun/apply_twice", "(f: Int -> Int) => (x: Int) => f(x)"),
    ("ml_behaviour/double", "let double (n : int) : int = n + 1"),
    ("c_behaviour/add", "int add(int a, int b) { return a - b; }"),
]


@pytest.mark.parametrize(("name", "answer"), WRONG, ids=[name for name, _ in WRONG])
@pytest.mark.asyncio
async def test_a_wrong_answer_is_valid_and_fails(name: str, answer: str) -> None:
    valid, judged = await grade(by_id(name), answer)
    assert valid and not judged.passed and judged.why


@pytest.mark.parametrize("name", ["stlc/identity", "stlc/any_answer", "fun/increment", "ml/successor", "c/maximum"])
@pytest.mark.asyncio
async def test_an_answer_of_another_type_is_invalid(name: str) -> None:
    answers = {"stlc": "λx:B.λy:B.x", "fun": "true", "ml": "let succ (n : int) : bool = true", "c": "int max(int a) {}"}
    valid, judged = await grade(by_id(name), answers[by_id(name).suite])
    assert not valid and not judged.passed and judged.why


BASE = 'name = "t"\nlanguage = "fun"\nprompt = "p"\nresolution = "typed"\ngoal = "Int"\nreference = "1"\n'
# what is added to or put in place of the base, and what the message names
FAULTS = [
    ("", "[[task]]"),
    ("[[task]]\n" + BASE.replace('"fun"', '"cobol"'), "language 'cobol' is unknown; known are ml"),
    ("[[task]]\n" + BASE.replace("typed", "guessed"), "resolution 'guessed'"),
    ("[[task]]\n" + BASE.replace("typed", "compile"), "resolution 'compile' grades"),
    ("[[task]]\n" + BASE + 'prefix = "2"\n', "does not begin with the prefix"),
    ("[[task]]\n" + BASE + 'tests = [["f", "1"]]\n', "tests"),
    ("[[task]]\n" + BASE + "colour = 1\n", "colour"),
    ("[[task]]\n" + BASE + "[[task]]\n" + BASE, "two tasks are called 't'"),
    ("name =", "not TOML"),
]


@pytest.mark.parametrize(("text", "said"), FAULTS)
def test_faults_are_named(text: str, said: str) -> None:
    with pytest.raises(TaskError) as caught:
        read_tasks(text, suite="s", source="tasks.toml")
    assert said in str(caught.value) and "tasks.toml" in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="can't be read"):
        load_tasks(tmp_path / "none.toml")


def test_the_digest_follows_the_contents() -> None:
    one, same, other = (
        read_tasks("[[task]]\n" + text, suite="s")[0] for text in (BASE, BASE, BASE.replace('"p"', '"q"'))
    )
    assert one.digest == same.digest != other.digest
