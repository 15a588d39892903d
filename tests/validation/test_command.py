"""`aufbau validate` from end to end: on corpora made here, with the real compilers, in one process and in several."""

from __future__ import annotations

import argparse
import gzip
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from aufbau.validation import (
    CorpusError,
    Language,
    Program,
    ProgramSet,
    Record,
    ResumeError,
    Settings,
    Task,
    ValidationError,
    Workbench,
)
from aufbau.validation import command as validate_command
from aufbau.validation.workbench import carry_out
from tests.validation.subjects import FILES, need_compiler

# set, program; ¦ stands where the compiler's diagnostic begins in programs that it rejects
PROGRAMS = [
    ("valid", "let x : int = 1 + 2"),
    ("valid", "let rec f (n : int) : int = if n < 1 then 1 else f n"),
    ("valid", "let f : int -> bool = fun (n : int) -> n < 1"),
    ("invalid", "let x : bool = 1 < ¦true"),
    ("invalid", "let x : bool = ¦1"),
    ("beyond_valid", 'let s : string = "a"'),
    ("beyond_invalid", "let s : string list = [1; 2] @ [¦true]"),
]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A small ML corpus."""
    folder = tmp_path / "corpus"
    (folder / "ml").mkdir(parents=True)
    sets: dict[str, list[dict[str, object]]] = {}
    for origin, marked in PROGRAMS:
        before, mark, _ = marked.partition("¦")
        record: dict[str, object] = {"id": marked[:8], "text": marked.replace("¦", ""), "features": []}
        record["expect"] = "invalid" if mark else "valid"
        if mark:
            record["error"] = {"off0": len(before)}
        sets.setdefault(origin, []).append(record)
    for origin, records in sets.items():
        with gzip.open(folder / "ml" / f"{origin}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.write("".join(json.dumps(record) + "\n" for record in records))
    return folder


def run(language: Language, out: Path, *options: str) -> tuple[int, str]:
    """The command's status and what it printed."""
    parser = argparse.ArgumentParser()
    validate_command.add_parser(parser.add_subparsers())
    grammar = ["--grammar", str(FILES[language])]
    parsed = parser.parse_args(["validate", str(language), *grammar, "--out", str(out), *options])
    console = Console(file=io.StringIO(), width=200)
    status: int = parsed.command(parsed, console)
    assert isinstance(console.file, io.StringIO)
    return status, console.file.getvalue()


def report(out: Path) -> dict[str, Any]:
    """The JSON report."""
    found: dict[str, Any] = json.loads((out / "report.json").read_text(encoding="utf-8"))
    return found


RECORDED = ["--recorded", "--sets", "valid,invalid,beyond_valid,beyond_invalid", "--jobs", "1"]


def test_a_recorded_corpus_needs_no_compiler(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    status, shown = run(Language.ML, tmp_path / "out", "--corpus", str(corpus), *RECORDED)
    assert status == 0, shown
    sets = report(tmp_path / "out")["sets"]
    assert sets["valid"]["findings"] == {"agrees": 3}
    assert sets["invalid"]["findings"] == {"agrees": 1, "rejected, not lost": 1}
    assert sets["beyond_valid"]["findings"] == sets["beyond_invalid"]["findings"] == {"outside the surface": 1}
    assert "0 faults" in shown
    markdown = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "Rejected, not lost, and without a known completion (0)\n\n1 more have one" in markdown
    pruned = sets["invalid"]["semantic"]
    assert (pruned["lost"]["count"], pruned["lost"]["total"]) == (1, 2)
    assert (pruned["without_completion"]["count"], pruned["without_completion"]["total"]) == (1, 1)
    assert "| string | 2 |" in markdown  # the word at which the surface ends


def test_a_false_prune_is_a_fault(corpus: Path, tmp_path: Path) -> None:
    path = corpus / "ml" / "valid.jsonl.gz"
    with gzip.open(path, "at", encoding="utf-8") as file:
        file.write(json.dumps({"id": "no", "text": "let x : int = y", "expect": "valid"}) + "\n")
    status, shown = run(Language.ML, tmp_path / "out", "--corpus", str(corpus), *RECORDED)
    assert status == 1 and "1 faults" in shown
    (found,) = report(tmp_path / "out")["exceptions"]["false prune"]
    assert (found["lost_at"], found["context"]) == (14, "let x : int = ¦y")


@pytest.mark.parametrize("language", Language)
def test_generated_programs_with_the_compiler(language: Language, tmp_path: Path) -> None:
    need_compiler(language)
    options = ["--sets", "generated", "--generated", "4", "--mutants", "3", "--length", "20", "--jobs", "1"]
    _, shown = run(language, tmp_path / "out", *options)
    sets = report(tmp_path / "out")["sets"]
    assert sets["generated"]["programs"] == 4, shown
    mutants = sets["generated, mutants"]
    assert 4 <= mutants["programs"] <= 12
    records = [json.loads(line) for line in (tmp_path / "out" / "records.jsonl").read_text().splitlines()]
    assert all(r["text"] and r["accepted"] is not None for r in records if "done" not in r)


def test_prefixes_of_accepted_programs_are_completed(corpus: Path, tmp_path: Path) -> None:
    need_compiler(Language.ML)
    options = ["--corpus", str(corpus), "--sets", "valid,invalid", "--jobs", "1", "--witnesses"]
    status, shown = run(Language.ML, tmp_path / "some", *options, "2")
    assert status == 0, shown
    found = report(tmp_path / "some")["sets"]["valid"]["witnesses"]
    assert found["outcomes"] == {"found": 6} and found["refused"] == 0
    assert found["accepted"]["count"] == found["accepted"]["total"] == 6
    assert report(tmp_path / "some")["sets"]["invalid"]["endings"]["accepted"]["count"] == 1
    run(Language.ML, tmp_path / "fewer", *options, "2", "--witnessed", "2")  # the programs 0 and 2
    assert report(tmp_path / "fewer")["sets"]["valid"]["witnesses"]["outcomes"] == {"found": 4}


def test_a_completion_that_the_compiler_refuses_is_a_fault(tmp_path: Path) -> None:
    need_compiler(Language.ML)
    source = FILES[Language.ML].read_text(encoding="utf-8")
    wrong = tmp_path / "wrong.auf"
    wrong.write_text(source.replace("------ (truth)\n'bool'", "------ (truth)\n'int'"), encoding="utf-8")
    workbench = Workbench(Settings(language=Language.ML, grammar=str(wrong), witnesses=30))
    program = Program(origin=ProgramSet.VALID, index=0, name="a", text=b"let x : int = 1", accepted=True)
    assert workbench.judged(program).faults == 0
    mistaken = Workbench(Settings(language=Language.C, grammar=str(wrong), witnesses=30)).judged(program)
    assert mistaken.strays and mistaken.faults == len(mistaken.strays)


def test_several_processes_give_the_same_records(corpus: Path, tmp_path: Path) -> None:
    need_compiler(Language.ML)
    options = ["--corpus", str(corpus), "--sets", "valid,invalid,mutated", "--jobs"]
    _, one = run(Language.ML, tmp_path / "one", *options, "1")
    _, two = run(Language.ML, tmp_path / "two", *options, "2")

    def plain(out: Path) -> list[dict[str, object]]:
        lines = (json.loads(line) for line in (out / "records.jsonl").read_text(encoding="utf-8").splitlines())
        found = [{k: v for k, v in line.items() if k != "seconds"} for line in lines if "done" not in line]
        return sorted(found, key=lambda record: str((record["origin"], record["index"], record["variant"])))

    assert plain(tmp_path / "one") == plain(tmp_path / "two"), one + two
    assert {record["origin"] for record in plain(tmp_path / "one")} == {"valid", "invalid", "mutated"}


def test_an_interrupted_run_is_gone_on_with(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    done: list[str] = []

    def interrupted(settings: Settings, task: Task) -> Sequence[Record]:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(task.key)
        return carry_out(settings, task)

    monkeypatch.setattr(validate_command, "carry_out", interrupted)
    status, shown = run(Language.ML, out, "--corpus", str(corpus), *RECORDED)
    assert status == 130 and "--resume" in shown
    assert "Not complete: 2 of 7 tasks" in (out / "report.md").read_text(encoding="utf-8")
    monkeypatch.setattr(validate_command, "carry_out", carry_out)
    with pytest.raises(ResumeError):
        run(Language.ML, out, "--corpus", str(corpus), *RECORDED)
    status, _ = run(Language.ML, out, "--corpus", str(corpus), *RECORDED, "--resume")
    assert status == 0
    lines = [json.loads(line) for line in (out / "records.jsonl").read_text(encoding="utf-8").splitlines()]
    keys = [line["done"] for line in lines if "done" in line]
    assert len(keys) == len(set(keys)) == len(PROGRAMS)


def test_a_compiler_that_accepts_what_the_corpus_calls_rejected(corpus: Path, tmp_path: Path) -> None:
    need_compiler(Language.ML)
    with gzip.open(corpus / "ml" / "invalid.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write(json.dumps({"id": "fine", "text": "let x : int = 1", "expect": "invalid"}) + "\n")
    options = ["--corpus", str(corpus), "--sets", "invalid", "--jobs", "1"]
    status, _ = run(Language.ML, tmp_path / "out", *options)
    (found,) = report(tmp_path / "out")["exceptions"]["not judged"]
    assert status == 1
    assert found["failure"] == "the corpus says that it is rejected, the compiler accepts it"


# options, what is raised, what the message says
WRONG = [
    (["--sets", "valid"], ValidationError, "name its folder with --corpus"),
    (["--sets", "valid,wrong"], ValidationError, "there is no set 'wrong'; give some of valid"),
    (["--sets", "valid", "--corpus", "/nonexistent"], CorpusError, "--corpus names the folder"),
]


@pytest.mark.parametrize(("options", "error", "message"), WRONG)
def test_wrong_input(options: list[str], error: type[ValidationError], message: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=message):
        run(Language.ML, tmp_path / "out", *options)
    assert not (tmp_path / "out").exists()


def test_the_probe_is_for_ml(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="written in ML"):
        run(Language.C, tmp_path / "out", "--sets", "recursion")


@pytest.mark.parametrize("options", [["--jobs", "0"], ["--sample", "-1"], ["--generated", "-1"], ["--seconds", "0"]])
def test_options_out_of_range(options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(Language.ML, tmp_path / "out", *options)
    assert options[0] in capsys.readouterr().err
