"""`aufbau witnesses` from end to end: on a corpus made here, with the real compiler, cut off and gone on with."""

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

from aufbau.validation import CorpusError, Language, ValidationError, sweep
from aufbau.validation import command as validate_command
from aufbau.validation.everywhere import Walk
from aufbau.validation.sweep import Sweep, walk_along
from aufbau.validation.workbench import Task
from tests.validation.subjects import FILES, need_compiler

VALID = ["let x : int = 1 + 2", "let x : int = 1 + true", "let b : bool = 1 < 2", "let x : int = 1"]
INVALID = ["let x : bool = 1 < true", "1"]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A small ML corpus."""
    need_compiler(Language.ML)
    folder = tmp_path / "corpus" / "ml"
    folder.mkdir(parents=True)
    for name, texts in (("valid", VALID), ("invalid", INVALID)):
        lines = (json.dumps({"id": text, "text": text, "expect": name}) + "\n" for text in texts)
        with gzip.open(folder / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(lines)
    return tmp_path / "corpus"


def run(corpus: Path, out: Path, *options: str, language: Language = Language.ML) -> tuple[int, str]:
    """The command's status and what it printed."""
    parser = argparse.ArgumentParser()
    validate_command.add_parser(parser.add_subparsers())
    places = ["--corpus", str(corpus), "--grammar", str(FILES[Language.ML]), "--out", str(out)]
    parsed = parser.parse_args(["witnesses", str(language), *places, "--jobs", "1", *options])
    console = Console(file=io.StringIO(), width=200)
    status: int = parsed.command(parsed, console)
    assert isinstance(console.file, io.StringIO)
    return status, console.file.getvalue()


def report(out: Path) -> dict[str, Any]:
    """The JSON report."""
    found: dict[str, Any] = json.loads((out / "report.json").read_text(encoding="utf-8"))
    return found


def test_every_prefix_of_every_program(corpus: Path, tmp_path: Path) -> None:
    status, shown = run(corpus, tmp_path / "out", "--sets", "valid,invalid")
    assert status == 0 and "0 faults" in shown
    found = report(tmp_path / "out")
    valid, invalid = found["sets"]["valid"], found["sets"]["invalid"]
    kept = [VALID[0], "let x : int = 1 + ", VALID[2], VALID[3]]  # none of it is lost
    assert valid["fates"] == {"accepted": sum(len(text) + 1 for text in kept)} and valid["satisfied"] == 3
    assert invalid["fates"] == {"accepted": len("let x : bool = 1 < ") + 1 + 1} and invalid["satisfied"] == 0
    assert valid["whole"]["count"] == valid["tasks"] == 4 and found["complete"] and not found["strays"]
    markdown = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert f"- prefixes: {valid['prefixes']}" in markdown and "drawn at random" not in markdown


def test_what_the_compiler_refuses_is_a_fault_and_listed_once(corpus: Path, tmp_path: Path) -> None:
    # What completes ML is no C: nothing but the empty text is accepted, and cc refuses that too.
    need_compiler(Language.C)
    (corpus / "ml").rename(corpus / "c")
    status, _ = run(corpus, tmp_path / "out", language=Language.C)
    found = report(tmp_path / "out")
    refused = found["sets"]["valid"]["fates"]["refused by the compiler"]
    assert status == 1 and found["faults"] == refused == found["sets"]["valid"]["prefixes"]
    prefixes = [stray["prefix"] for stray in found["strays"]]
    assert len(prefixes) == len(set(prefixes)) and found["strays"][0]["programs"] == len(VALID)
    markdown = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert f"## Prefixes: refused by the compiler ({len(prefixes)})" in markdown


def test_a_run_that_is_cut_off_is_gone_on_with(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def interrupted(settings: Sweep, task: Task) -> Sequence[Walk]:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(task.key)
        return walk_along(settings, task)

    monkeypatch.setattr(sweep, "walk_along", interrupted)
    status, shown = run(corpus, tmp_path / "out")
    assert status == 130 and "--resume" in shown
    assert "**2 of 4 programs, drawn at random.**" in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    monkeypatch.setattr(sweep, "walk_along", walk_along)
    assert run(corpus, tmp_path / "out", "--resume")[0] == 0
    run(corpus, tmp_path / "whole")

    def settled(out: Path) -> object:
        """The report without what depends on how the work was shared out."""
        sets = report(out)["sets"]
        return [{k: v for k, v in sets[name].items() if k not in ("searches", "compiled", "seconds")} for name in sets]

    assert settled(tmp_path / "out") == settled(tmp_path / "whole")
    lines = [json.loads(line) for line in (tmp_path / "out" / "records.jsonl").read_text().splitlines()]
    assert sorted(line["done"] for line in lines if "done" in line) == [f"valid/{index}" for index in range(4)]


@pytest.mark.parametrize("name", ["generated", "wrong"])
def test_sets_that_no_corpus_has(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match=f"there is no set '{name}'; give some of valid, invalid"):
        run(tmp_path, tmp_path / "out", "--sets", name)


def test_a_corpus_that_is_not_there(tmp_path: Path) -> None:
    need_compiler(Language.ML)
    with pytest.raises(CorpusError, match="--corpus names the folder"):
        run(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
