"""Suites evaluated: many attempts at once, none disturbed by another, failures told apart, records resumed."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import pytest

import agentkit.evals
from agentkit import Agent, UsageLimits, cli
from agentkit.evals import (
    EvalError,
    EvalPlan,
    EvalRecord,
    EvalReport,
    EvalSettings,
    EvalTask,
    command,
    load_tasks,
    read_records,
)
from agentkit.evals.records import RecordFile
from agentkit.evals.runner import run_plan
from agentkit.models import FunctionModel, Message, Model, ModelNotFoundError, PrefixLike, RandomModel, ScriptedModel
from agentkit.modes import Mode
from episodes import Episode, EpisodeLimits, Suite
from episodes.evaluation import FailureKind, work_through
from registry import INT, STRING, Registry, tool

BACKENDS = pytest.mark.parametrize("backend", ["asyncio", "trio"])


@tool
async def hang() -> int:
    """Never return."""
    await anyio.sleep_forever()
    raise AssertionError


@tool
def explode() -> int:
    """Raise."""
    raise ZeroDivisionError("no fuse")


TOOLS = Registry([hang, explode])

# An episode's prompt is what the model below answers, turn after turn.
GOOD, WRONG, EXPLODES = "return 1;", "return 2;", "let x = explode();"
REPEATS, NONSENSE, CUT = "let x# = hang();", "Hm. #", "return"


def episode(name: str, prompt: str, **fields: object) -> Episode:
    return Episode(name=name, prompt=prompt, registry=TOOLS, output_type=INT, expected=1, **fields)  # type: ignore[arg-type]


def echo(messages: Sequence[Message], prefix: PrefixLike | None) -> str:
    """The task, as the answer; `#` is the number of the turn."""
    said = "\n".join(message.content for message in messages)
    tasks = re.findall(r"return 1;$|return 2;$|let x = explode\(\);$|let x# = hang\(\);$|Hm. #$|return$", said, re.M)
    return str(tasks[-1]).replace("#", str(sum(message.role == "assistant" for message in messages)))


def agent(**options: object) -> Agent:
    return Agent(FunctionModel(echo), tools=TOOLS, **options)  # type: ignore[arg-type]


SUITE = Suite(
    name="mixed",
    episodes=(
        episode("good", GOOD),
        episode("wrong", WRONG),
        episode("explodes", EXPLODES),
        episode("hangs", REPEATS, limits=EpisodeLimits(run_timeout=0.3)),
        episode("cut", CUT),
        episode("good again", GOOD),
    ),
)
GROUPS = {
    "wrong": "wrong output",
    "explodes": "error: ToolFailed",
    "hangs": "limit: run_timeout",
    "cut": "error: IncompleteStep",
}


@BACKENDS
@pytest.mark.parametrize("max_concurrency", [1, 3, 20])
def test_a_failing_episode_never_touches_the_others(backend: str, max_concurrency: int) -> None:
    threads = set(threading.enumerate())
    heard: list[str] = []

    async def main() -> None:
        evaluation = await SUITE.evaluate(
            agent(), repeat=2, max_concurrency=max_concurrency, on_attempt=lambda one: heard.append(one.episode)
        )
        names = [(one.episode, one.number) for one in evaluation.attempts]
        assert names == [(name.name, number) for name in SUITE for number in range(2)]
        groups = {one.episode: one.failure.group for one in evaluation.attempts if one.failure is not None}
        assert groups == GROUPS
        assert str(evaluation.passed).startswith("4 of 12 = 33.33% [13.81%, 60.94%]")
        assert {name for name, one in evaluation.by_episode.items() if one.count} == {"good", "good again"}
        assert {name: len(found) for name, found in evaluation.failures.items()} == dict.fromkeys(GROUPS.values(), 2)
        assert json.loads(json.dumps(evaluation.to_data()))["passed"]["count"] == 4

    anyio.run(main, backend=backend)
    assert sorted(heard) == sorted(2 * [one.name for one in SUITE])
    # A worker thread ends a moment after its event loop; trio keeps idle ones as daemons.
    for thread in set(threading.enumerate()) - threads:
        if not thread.daemon:
            thread.join(timeout=5)
    assert {one for one in threading.enumerate() if not one.daemon} <= threads


def test_a_call_that_waits_for_approval_is_a_kind_of_its_own() -> None:
    @tool(approval=True)
    def pay() -> int:
        """Pay."""
        raise AssertionError("nobody agreed")

    tools = Registry([pay])
    suite = Suite(name="s", episodes=(Episode(name="pays", prompt="Pay.", registry=tools, output_type=INT),))
    (attempt,) = anyio.run(suite.evaluate, Agent(FunctionModel(lambda *_: "let x = pay();"))).attempts
    assert attempt.failure is not None and attempt.failure.group == "deferred: pay"


def test_an_output_that_utf8_cannot_hold_is_recorded(tmp_path: Path) -> None:
    @tool
    def listing() -> str:
        """The name of a file, as the system gives one that is no UTF-8."""
        return os.fsdecode(b"\xff.txt")

    tools, path = Registry([listing]), tmp_path / "records.jsonl"
    task = EvalTask(episode=Episode(name="e", prompt="List.", registry=tools, output_type=STRING), digest="")
    plan = EvalPlan(suite="s", tasks=(task,), models=("m",))

    async def main() -> list[EvalRecord]:
        return await run_plan(plan, tools, path, load=lambda spec: ScriptedModel(["let x = listing();", "return x;"]))

    records = anyio.run(main)
    assert [one.output for one in records] == ["\udcff.txt"]
    assert list(read_records(path).values()) == records and path.read_text(encoding="utf-8")


def test_refused_steps_are_a_kind_of_their_own() -> None:
    limits = UsageLimits(turn_limit=2)
    suite = Suite(name="s", episodes=(episode("talks", NONSENSE), episode("calls", "let x# = explode();")))

    def answer(messages: Sequence[Message], prefix: PrefixLike | None) -> str:
        return "Hm, well." if "Hm" in messages[-1].content else "let y = explode();"

    talker = Agent(FunctionModel(answer), mode="unconstrained", tool_errors="observe", usage_limits=limits)
    found = anyio.run(suite.evaluate, talker).attempts
    kinds = [one.failure and (one.failure.kind, one.failure.name) for one in found]
    assert kinds == [(FailureKind.REFUSED_STEPS, "turn_limit"), (FailureKind.LIMIT, "turn_limit")]
    assert [(one.turns, one.refused) for one in found] == [(2, 2), (2, 0)]


def test_what_is_no_error_of_a_run_is_an_attempt_too() -> None:
    def fail(messages: Sequence[Message], prefix: PrefixLike | None) -> str:
        raise RuntimeError("the model fell over")

    (attempt,) = anyio.run(
        Suite(name="s", episodes=(episode("a", GOOD),)).evaluate, Agent(FunctionModel(fail))
    ).attempts
    assert attempt.failure is not None and attempt.failure.group == "error: RuntimeError"
    assert "fell over" in attempt.failure.message and isinstance(attempt.error, RuntimeError)


@BACKENDS
def test_cancelling_an_evaluation_leaves_nothing(backend: str) -> None:
    running: list[str] = []
    gone: list[str] = []

    @tool
    async def wait(who: int) -> int:
        """Wait."""
        running.append(f"{who}")
        try:
            await anyio.sleep_forever()
        finally:
            gone.append(f"{who}")
        raise AssertionError

    episodes = tuple(Episode(name=f"e{number}", prompt="Wait.") for number in range(4))
    waiter = Agent(FunctionModel(lambda messages, prefix: "let x = wait(1);"), tools=[wait])

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: Suite(name="s", episodes=episodes).evaluate(waiter, max_concurrency=3))
            while len(running) < 3:
                await anyio.sleep(0.01)
            group.cancel_scope.cancel()

    anyio.run(main, backend=backend)
    assert len(running) == len(gone) == 3


@BACKENDS
@pytest.mark.parametrize("limit", [1, 2, 7])
def test_no_more_at_once_than_asked(backend: str, limit: int) -> None:
    at_once, most, done = 0, 0, []

    async def work(job: int) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await anyio.sleep(0.01)
        at_once -= 1
        done.append(job)

    async def main() -> None:
        await work_through(range(9), work, max_concurrency=limit)

    anyio.run(main, backend=backend)
    assert sorted(done) == list(range(9)) and most == limit


def test_the_error_of_the_work_is_raised_as_itself() -> None:
    async def work(job: int) -> None:
        await anyio.sleep(0)
        raise LookupError(job)

    async def main() -> None:
        await work_through([1], work, max_concurrency=4)

    with pytest.raises(LookupError):
        anyio.run(main)


def test_numbers_that_leave_nothing_to_do_are_refused() -> None:
    with pytest.raises(ValueError, match="repeat"):
        anyio.run(lambda: SUITE.evaluate(agent(), repeat=0))
    with pytest.raises(ValueError, match="max_concurrency"):
        anyio.run(lambda: SUITE.evaluate(agent(), max_concurrency=0))


def test_the_document_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    root = Path(agentkit.evals.__file__).parents[2]
    (block,) = re.findall(r"```python\n(.*?)```", (root / "docs" / "evaluation.md").read_text(encoding="utf-8"), re.S)
    monkeypatch.chdir(root)
    script = block.replace('"default"', "model").replace("repeat=3", "repeat=1")
    # The model gives up at once; what counts is that the program runs.
    exec(script, {"model": FunctionModel(lambda messages, prefix: "let")})
    assert capsys.readouterr().out.startswith("0 of 10 = 0.00%")


# Records, and going on from them

TOML = 'prompt = "{prompt}"\noutput_type = "int"\nexpected = 1\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    suite = tmp_path / "suite"
    suite.mkdir()
    for name, prompt in (("a", GOOD), ("b", WRONG), ("c", GOOD)):
        (suite / f"{name}.toml").write_text(TOML.format(prompt=prompt), encoding="utf-8")
    return suite


def plan_of(folder: Path, **changes: object) -> EvalPlan:
    name, tasks = load_tasks(folder, TOOLS)
    given: dict[str, object] = {"models": ("m",), "modes": (Mode.DIRECT, Mode.UNCONSTRAINED), **changes}
    return EvalPlan(suite=name, tasks=tasks, **given)  # type: ignore[arg-type]


def evaluate(
    plan: EvalPlan, path: Path, *, answer: Callable[..., str] = echo, max_concurrency: int = 1
) -> tuple[list[EvalRecord], int]:
    """The records, and how many of them were made now."""
    made: list[str] = []

    async def main() -> list[EvalRecord]:
        return await run_plan(
            plan,
            TOOLS,
            path,
            load=lambda spec: FunctionModel(answer),
            max_concurrency=max_concurrency,
            on_record=lambda record, is_new: made.append(record.key) if is_new else None,
        )

    return anyio.run(main), len(made)


def test_what_is_recorded_is_not_made_again(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "records.jsonl"
    first, made = evaluate(plan_of(folder), path, max_concurrency=4)
    assert made == 6 and [record.passed for record in first] == [True, True, False, False, True, True]
    again, made = evaluate(plan_of(folder), path)
    assert made == 0 and again == first
    wider, made = evaluate(plan_of(folder, repeat=2), path)
    assert made == 6 and wider[:6] == first and [record.seed for record in wider] == [0] * 6 + [1] * 6
    assert len(read_records(path)) == 12


CHANGES: list[tuple[str, Callable[[Path], dict[str, object]], int]] = [
    ("nothing", lambda folder: {}, 0),
    ("temperature", lambda folder: {"settings": EvalSettings(temperature=0.5)}, 6),
    ("seed", lambda folder: {"settings": EvalSettings(seed=3)}, 6),
    ("limits", lambda folder: {"settings": EvalSettings(limits=UsageLimits(turn_limit=2))}, 6),
    ("model", lambda folder: {"models": ("m", "n")}, 6),
    ("mode", lambda folder: {"modes": (Mode.SYNTACTIC, Mode.DIRECT)}, 3),
]


@pytest.mark.parametrize(("what", "change", "expected"), CHANGES, ids=[one[0] for one in CHANGES])
def test_a_setting_that_changes_an_attempt_makes_it_anew(
    folder: Path, tmp_path: Path, what: str, change: Callable[[Path], dict[str, object]], expected: int
) -> None:
    path = tmp_path / "records.jsonl"
    evaluate(plan_of(folder), path)
    assert evaluate(plan_of(folder, **change(folder)), path)[1] == expected


def test_a_changed_episode_is_attempted_anew(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    evaluate(plan_of(folder), path)
    (folder / "b.toml").write_text(TOML.format(prompt=GOOD), encoding="utf-8")
    records, made = evaluate(plan_of(folder), path)
    assert made == 2 and all(record.passed for record in records)


def test_every_cut_of_the_file_is_mended(folder: Path, tmp_path: Path) -> None:
    (folder / "c.toml").unlink()
    plan, whole = plan_of(folder, modes=(Mode.DIRECT,)), tmp_path / "whole.jsonl"
    records, _ = evaluate(plan, whole)
    data = whole.read_bytes()
    ends = [0, *(place + 1 for place, byte in enumerate(data) if byte == 10)]
    cuts = {cut for end in ends for cut in (end - 1, end, end + 40) if 0 <= cut <= len(data)}
    for cut in sorted(cuts):
        path = tmp_path / "cut.jsonl"
        path.write_bytes(data[:cut])
        resumed, made = evaluate(plan, path)
        assert made == sum(end > cut for end in ends)
        assert [one.output for one in resumed] == [one.output for one in records]
        assert len(path.read_bytes().splitlines()) == len(records)


def test_an_interrupted_evaluation_goes_on(folder: Path, tmp_path: Path) -> None:
    path, plan = tmp_path / "records.jsonl", plan_of(folder)
    calls = 0

    def interrupted(messages: Sequence[Message], prefix: PrefixLike | None) -> str:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return echo(messages, prefix)

    with pytest.raises(KeyboardInterrupt):
        evaluate(plan, path, answer=interrupted)
    assert len(read_records(path)) == 3
    records, made = evaluate(plan, path)
    assert made == 3 and len(records) == 6


@pytest.mark.parametrize("line", ["{}", "[]", "no JSON", '{"version": 2}', '{"version": 1, "key": "x"}'])
def test_a_line_that_is_no_record_is_told(folder: Path, tmp_path: Path, line: str) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(line + "\n", encoding="utf-8")
    with pytest.raises(EvalError, match=r"records.jsonl, line 1: no record"):
        evaluate(plan_of(folder), path)


def test_one_file_has_one_writer(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    with RecordFile(path), pytest.raises(EvalError, match="another process"):
        evaluate(plan_of(folder), path)


def test_attempts_do_not_depend_on_their_order(folder: Path, tmp_path: Path) -> None:
    tools = Registry([explode])
    name, tasks = load_tasks(folder, tools)
    settings = EvalSettings(temperature=1.0, limits=UsageLimits(turn_limit=1))
    plan = EvalPlan(suite=name, tasks=tasks, models=("random",), repeat=2, settings=settings)

    async def main(path: Path, max_concurrency: int) -> list[str]:
        records = await run_plan(plan, tools, path, load=lambda spec: RandomModel(1), max_concurrency=max_concurrency)
        return [record.transcript[0]["text"] for record in records]

    one, many = (anyio.run(main, tmp_path / f"{number}.jsonl", number) for number in (1, 5))
    assert one == many and len(set(one)) > 1


# The command


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(spec: str) -> Model:
        if spec == "nothing":
            raise ModelNotFoundError("nothing is called so")
        return FunctionModel(echo)

    monkeypatch.setattr(command, "resident_model", resolve)


def eval_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, object]]:
    status = cli.main(["eval", *arguments, "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_the_command(folder: Path, tmp_path: Path, model: None, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(folder), "--records", str(tmp_path / "r.jsonl"), "--mode", "direct", "--mode", "unconstrained"]
    assert cli.main(["eval", *arguments, "--concurrency", "3", "--model", "x", "--model", "y"]) == 1
    shown = capsys.readouterr().out
    for part in ("2/3", "67%", "21-94", "direct", "unconstrained", "wrong output", "x", "y", "r.jsonl"):
        assert part in shown
    status, report = eval_json(capsys, *arguments, "--model", "x")
    assert status == 1 and report["attempts"] == report["planned"] == 6
    rows = report["rows"]
    assert isinstance(rows, list) and rows[0]["passed"]["count"] == 2
    assert rows[0]["failures"][0]["group"] == "wrong output" and rows[0]["failures"][0]["episodes"] == ["b"]
    assert eval_json(capsys, *arguments, "--model", "x", "--at-least", "0.6")[0] == 0
    assert cli.main(["eval", *arguments, "--model", "x"]) == 1
    assert "6 attempts were recorded already" in capsys.readouterr().err


def test_a_share_that_is_just_reached_is_enough(
    tmp_path: Path, model: None, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = tmp_path / "suite"
    suite.mkdir()
    for number in range(25):  # 0.28 * 25 is more than 7 when rounded
        prompt = GOOD if number < 7 else WRONG
        (suite / f"e{number:02}.toml").write_text(TOML.format(prompt=prompt), encoding="utf-8")
    arguments = [str(suite), "--records", str(tmp_path / "r.jsonl"), "--at-least"]
    assert [eval_json(capsys, *arguments, share)[0] for share in ("0.28", "0.281")] == [0, 1]


def test_one_file_is_a_suite(folder: Path, tmp_path: Path, model: None, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(folder / "a.toml"), "--records", str(tmp_path / "r.jsonl"), "--repeat", "2"]
    status, report = eval_json(capsys, *arguments, "--temperature", "0.7")
    assert status == 0 and (report["suite"], report["attempts"]) == ("a", 2)


WRONG_INPUT = [
    (["nowhere"], "is no folder"),
    (["suite", "--model", "nothing"], "nothing is called so"),
    (["suite", "--temperature", "-1"], "temperature"),
    (["suite", "--seed", "-1"], "--seed"),
    (["suite", "--records", "suite"], "can't be written"),
]


@pytest.mark.parametrize(("arguments", "said"), WRONG_INPUT)
def test_wrong_input_is_told_in_one_line(
    folder: Path,
    model: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(folder.parent)
    assert cli.main(["eval", *arguments]) == 2
    told = capsys.readouterr().err.splitlines()
    assert told[-1].startswith("agentkit: ") and said in told[-1]


def test_a_plan_must_have_something_to_do(folder: Path) -> None:
    for changes in ({"models": ()}, {"modes": ()}, {"repeat": 0}, {"models": ("m", "m")}):
        with pytest.raises(EvalError):
            plan_of(folder, **changes)
    assert EvalReport.of(plan_of(folder), []).rows == ()
