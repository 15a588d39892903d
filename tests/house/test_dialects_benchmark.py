"""The benchmark of dialects: tasks solved in each, balanced beginnings, attempts kept and told."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentkit.models import Model, RandomModel, ScriptedModel
from agentkit.modes import Mode
from aufbau import Verdict
from benchmarks.dialects import Bench, Log, judged, main, measure, read
from benchmarks.dialects_parts import Part, Task, gather, program_episodes
from benchmarks.dialects_report import Attempt, Settings, page, summary, whole_tasks
from dialects import DIALECTS, LoweredDialect, Root, translate
from episodes import Episode
from episodes.programs import run_program

SETTINGS = Settings(model="random", turns=2, step_tokens=64, program_tokens=64)
EPISODES = program_episodes()
WAYS = [(dialect, mode) for dialect in DIALECTS for mode in ("direct", "unconstrained")]


@cache
def lowered(dialect: str) -> LoweredDialect:
    """Over the tools that all tool programs have."""
    assert EPISODES[0].registry is not None
    return DIALECTS[dialect].lower(EPISODES[0].registry)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("episode", EPISODES, ids=lambda episode: episode.name)
def test_tool_programs_are_solved_by_their_references(episode: Episode, dialect: str) -> None:
    target = lowered(dialect)
    text = translate(episode.reference, lowered("c"), target, {}, episode.output_type, Root.PROGRAM)
    run = anyio.run(run_program, episode, text, target)
    assert run.grade is not None and run.grade.passed, run.grade


def test_every_beginning_has_as_many_tasks_of_each_part_as_there_are() -> None:
    tasks = gather([Part.SUITE, Part.PROGRAMS]).tasks
    assert len({(task.part, task.name) for task in tasks}) == len(tasks) == 10 + len(EPISODES)
    for length in range(20):
        parts = [task.part for task in tasks[:length]]
        assert 0 <= parts.count(Part.SUITE) - parts.count(Part.PROGRAMS) <= 1


@pytest.mark.parametrize(
    ("part", "module"), [(Part.AGENTDOJO, "agentdojo.task_suite.load_suites"), (Part.BFCL, "bfcl_eval")]
)
def test_a_part_without_its_package_is_skipped_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, part: Part, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    gathered = gather([part, Part.PROGRAMS])
    assert len(gathered.tasks) == len(EPISODES)
    assert "pip install" in gathered.skipped[part]


def of_each_part() -> tuple[Task, ...]:
    return gather([Part.SUITE, Part.PROGRAMS]).tasks[:2]


def run(model: Model, path: Path, tasks: Sequence[Task], seconds: float = 60) -> list[Attempt]:
    log = Log(path, SETTINGS)
    anyio.run(measure, model, log, SETTINGS, tasks, seconds)
    return log.attempts


def test_attempts_are_written_down_at_once_and_not_made_again(tmp_path: Path) -> None:
    path, tasks = tmp_path / "deep" / "dialects.jsonl", of_each_part()
    assert run(RandomModel(seed=1), path, tasks, seconds=0) == []
    made = run(RandomModel(seed=1), path, tasks)
    assert [one.key[2:] for one in made] == WAYS * 2
    # Even a model that writes at random: what is constrained is never lost.
    assert all("lost" not in one.verdicts for one in made if one.mode == "direct")
    assert any("lost" in one.verdicts for one in made if one.mode == "unconstrained")
    assert all(one.tokens > 0 and one.texts for one in made)
    assert read(path) == (SETTINGS, made)
    assert run(ScriptedModel([]), path, tasks) == made

    # An attempt that is missing is made, and only that.
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:-1]), encoding="utf-8")
    again = run(ScriptedModel(["no"]), path, tasks)
    assert (again[:-1], again[-1].key, again[-1].texts) == (made[:-1], made[-1].key, ("no",))


def test_attempts_under_other_settings_are_not_mixed(tmp_path: Path) -> None:
    Log(tmp_path / "a.jsonl", SETTINGS)
    with pytest.raises(ValueError, match="move it away"):
        Log(tmp_path / "a.jsonl", Settings(model="other", turns=2, step_tokens=64, program_tokens=64))


PROGRAMS: list[tuple[str, dict[str, Any]]] = [
    ("let s = format(7250);\nreturn s;", {"passed": True, "verdicts": ("satisfied",), "executed": 2}),
    ("```\nlet s = format(7250);\nreturn s;\n```\nDone.", {"passed": True, "verdicts": ("satisfied",)}),
    ('return "7250";', {"passed": False, "finished": True, "verdicts": ("satisfied",)}),
    ("let s = format(7250);", {"passed": False, "finished": False, "verdicts": ("live",), "executed": 0}),
    ("return 7250;", {"passed": False, "finished": False, "verdicts": ("lost",), "executed": 0}),
]


@pytest.mark.parametrize(("answer", "wanted"), PROGRAMS)
def test_free_programs_are_cut_out_judged_and_graded(answer: str, wanted: dict[str, Any]) -> None:
    task = next(task for task in gather([Part.PROGRAMS]).tasks if task.name == "format_number")
    model = ScriptedModel([answer])
    bench = Bench(model=model, session=model.session(), settings=SETTINGS)
    made = anyio.run(bench.attempt, task, "c", Mode.UNCONSTRAINED)
    assert {name: getattr(made, name) for name in wanted} == wanted
    assert bool(made.error) != made.finished


@pytest.mark.parametrize(
    ("text", "verdict"),
    [("let n = format(7);", Verdict.SATISFIED), ("let n = forma", Verdict.LIVE), ("let n = 7;", Verdict.LOST)],
)
def test_texts_are_judged_from_their_start(text: str, verdict: Verdict) -> None:
    start = lowered("c").start({}, EPISODES[0].output_type)
    assert judged(start, text) is verdict
    assert judged(start.feed("let n = "), text) is verdict


def attempt(task: str, mode: str, *verdicts: str, passed: bool, error: str = "") -> Attempt:
    return Attempt(
        part="suite",
        task=task,
        dialect="c",
        mode=mode,
        outcome="",
        finished=not error,
        passed=passed,
        verdicts=verdicts,
        executed=1,
        tokens=10,
        model_s=1.0,
        oracle_s=0.1,
        error=error,
        texts=tuple("// refused: no" if verdict == "lost" else verdict for verdict in verdicts),
    )


MADE = [
    attempt("a", "direct", "satisfied", "satisfied", passed=True),
    attempt("a", "unconstrained", "satisfied", "lost", passed=False, error="RepeatedStep: again"),
    attempt("b", "direct", "satisfied", "live", passed=False, error="IncompleteStep: short"),
    attempt("b", "unconstrained", "lost", "satisfied", passed=False),
    attempt("c", "direct", "satisfied", passed=True),
]


def test_the_report_counts_tasks_attempted_in_every_way() -> None:
    assert whole_tasks(MADE) == MADE[:4]
    figures = summary(SETTINGS, MADE, {"bfcl": "not here"})
    direct, free = figures["rows"][:2]
    assert (direct["passed"]["count"], direct["passed"]["total"], direct["cut"]) == (1, 2, 1)
    assert (direct["well_typed"]["count"], direct["well_typed"]["total"]) == (3, 3)
    assert (direct["first"]["count"], free["first"]["count"], free["first"]["total"]) == (2, 1, 2)
    assert (free["well_typed"]["count"], free["well_typed"]["total"], free["tokens"]) == (2, 4, 20)
    pair = figures["pairs"][0]
    assert (pair["passed"]["direct_only"], pair["passed"]["unconstrained_only"], pair["passed"]["p"]) == (1, 0, 1.0)
    assert pair["passed"]["difference"] == 0.5 and pair["finished"]["difference"] == 0.0
    # One more dialect, in which all goes the same way, is no further evidence.
    twice = [replace(one, dialect=dialect) for one in MADE[:4] for dialect in ("c", "xml")]
    both = next(row["passed"] for row in summary(SETTINGS, twice, {})["pairs"] if row["dialect"] == "all")
    assert (both["pairs"], both["direct_only"], both["tasks_better"], both["p"]) == (4, 2, 1, 1.0)
    assert both["interval"] is None and pair["passed"]["interval"] is not None
    text = page(figures)
    row = "| 3/3 = 100% [44%, 100%] | 1 | 2 | 20 |"
    for part in (
        row,
        "| +50 points [",
        "unconstrained: RepeatedStep 1",
        "bfcl: skipped, not here",
        "1 more attempts",
        "2 are comments",
    ):
        assert part in text


def test_what_is_there_is_reported_without_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = Log(tmp_path / "dialects.jsonl", SETTINGS)
    for one in MADE:
        log.add(one)
    assert main(["--report", "--out", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "| suite | c | direct |" in told
    assert (tmp_path / "dialects.md").read_text(encoding="utf-8") == told.removesuffix("\n")
    assert json.loads((tmp_path / "dialects.json").read_text(encoding="utf-8")) == summary(SETTINGS, MADE, {})
