"""The report: figures counted by hand from a few records, and pages that a reader's tools can open."""

from __future__ import annotations

import math
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from agentkit.cli import main
from agentkit.study import Record, RecordError, StudyError
from agentkit.study.publish import publish
from agentkit.study.records import RecordFile
from agentkit.study.summary import ALL, Summary
from agentkit.study.tables import tables
from tests.agentkit.study.study_samples import record

MODES = ("unconstrained", "direct", "syntactic", "mixed", "thinking")
BRANCHING = [
    {
        "language": "ml",
        "measure": measure,
        "oracle": oracle,
        "programs": 2,
        "alphabet": 10.0,
        "positions": 4,
        "mean": mean,
        "mean_log2": 1.5,
        "shares": {"forced": 0.25, "tight": 0.25, "open": 0.5, "wide": 0.0},
        "refused": 0,
        "seconds": 0.1,
    }
    for measure in ("lexemes", "tokens")
    for oracle, mean in (("syntactic", 6.0), ("semantic", 3.0))
]


def few() -> list[Record]:
    """Two models, two tasks, all modes: the masked ones pass the first task, and no other attempt passes."""
    return [
        record(
            task,
            mode,
            model=model,
            passed=task == "one" and mode in ("direct", "mixed"),
            valid=mode in ("direct", "mixed"),
            outcome="satisfied" if mode in ("direct", "mixed") else "lost",
            entropy=(1.0, 2.0),
            rejected=(0, 3),
            tokens=2,
            reasoning=5 if mode in ("mixed", "thinking") else 0,
        )
        for model in ("a", "b")
        for task in ("one", "two")
        for mode in MODES
    ]


def test_figures_are_those_counted_by_hand() -> None:
    summary = Summary.of(few())
    assert summary.attempts == 20 and summary.tasks == {"a": 2, "b": 2} and summary.others == 0
    rates = {(one.group.model, one.mode): one for one in summary.rates}
    assert (rates["a", "direct"].passed.count, rates["a", "direct"].valid.count) == (1, 2)
    assert rates["a", "syntactic"].passed.count == 0
    pooled = {(one.of, one.first, one.second): one.paired for one in summary.differences if one.group.model == ALL}
    ablation = pooled["passed", "direct", "syntactic"]
    assert (ablation.both, ablation.first, ablation.second, ablation.neither) == (0, 2, 0, 2)
    assert pooled["valid", "direct", "syntactic"].first == 4
    direct = next(one for one in summary.uncertainty if (one.model, one.mode) == ("a", "direct"))
    assert (direct.accepted, direct.rejected, direct.retries) == (2, 2, 6)
    assert direct.accepted_bits == pytest.approx(1 / math.log(2)) and direct.share == 0.5
    mixed = next(one for one in summary.costs if (one.model, one.mode) == ("b", "mixed"))
    assert mixed.generated == 7 and mixed.overhead == pytest.approx(0.1)
    assert {(one.mode, one.attempts, one.unfinished) for one in summary.promises} == {("direct", 2, 0), ("mixed", 2, 0)}


def test_outcomes_add_up_and_name_what_passes_outside_the_grammar() -> None:
    attempts = [
        record("one", passed=True),
        record("two"),
        record("three", outcome="lost", passed=True),
        record("four", outcome="live"),
    ]
    [outcome] = Summary.of(attempts).outcomes
    assert (outcome.passed, outcome.failed, outcome.live, outcome.lost, outcome.passed_outside) == (1, 1, 1, 1, 1)
    assert outcome.total == 4


def test_a_broken_promise_shows() -> None:
    summary = Summary.of([record("one", outcome="live"), record("two"), record("three", outcome="live", covered=False)])
    [promise] = summary.promises
    assert (promise.attempts, promise.unfinished) == (2, 1)


def test_kinds_are_never_added_up() -> None:
    kinds = ("validity", "behaviour", "equivalence")
    summary = Summary.of([record(kind, kind=kind, passed=True, family="ml") for kind in kinds])
    assert sorted(rate.group.kind for rate in summary.rates) == sorted(kinds)
    assert all(rate.passed.total == 1 for rate in summary.rates)


def test_only_tasks_attempted_both_ways_are_compared() -> None:
    summary = Summary.of([record("one"), record("one", "syntactic"), record("two", passed=True)])
    assert {one.paired.total for one in summary.differences} == {1}


def test_records_of_other_settings_are_left_out() -> None:
    summary = Summary.of([*few(), record("three", settings="other")])
    assert summary.attempts == 20 and summary.others == 1
    with pytest.raises(RecordError, match="no record"):
        Summary.of([])


def test_every_table_is_a_table() -> None:
    found = tables(Summary.of(few()), BRANCHING)
    assert len(found) >= 12
    for table in found:
        assert table.title and table.note
        assert all(len(row) == len(table.columns) for row in table.rows)
        assert not any("nan" in cell for row in table.rows for cell in row)
        lines = table.markdown()
        bars = {line.replace("\\|", "").count("|") for line in lines if line.startswith("|")}
        assert bars == {len(table.columns) + 1}


def study(folder: Path) -> Path:
    """A folder with records, as a run leaves it."""
    with RecordFile(folder / "records" / "m.jsonl") as file:
        for one in few():
            file.append(one)
    return folder


class Reader(HTMLParser):
    """Notes which elements are open, and what would be loaded from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.loaded += [value or "" for name, value in attrs if name == "src" or (name == "href" and tag == "link")]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_report_is_one_page_and_one_markdown_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "report", str(study(tmp_path)), "-o", str(tmp_path / "out"), "--no-plots"]) == 0
    assert capsys.readouterr().out.split() == [str(tmp_path / "out" / name) for name in ("report.md", "report.html")]
    reader = Reader()
    reader.feed((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    assert not reader.open and not reader.loaded and {"table", "h1", "style"} <= reader.seen
    text = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "50% [9, 91] (1/2)" in text and "**validity**" in text


def test_plots_are_part_of_the_page(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plots need the extra `report`")
    written = publish(study(tmp_path), tmp_path / "records", tmp_path / "out")
    pictures = {path.name for path in written if path.suffix in (".png", ".svg")}
    assert {"differences.svg", "outcomes.png", "entropy.svg", "thinking.svg", "cost.png"} <= pictures
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    reader = Reader()
    reader.feed(page)
    assert not reader.open and not reader.loaded and page.count("<svg") == len(pictures) / 2
    # What changes from one drawing to the next would make every report a change.
    assert "dc:date" not in page and "image-" not in page


def test_without_matplotlib_the_remedy_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(StudyError, match=r"pip install 'aufbau\[report\]'"):
        publish(study(tmp_path), tmp_path / "records", tmp_path / "out")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["report", "{here}"], "no record to report on"),
        (["run", "{here}/none.toml"], "can't be read"),
        (["branching", "{here}"], "there is no"),
        (["run", "examples/study.toml", "--model", "Other=x"], "NAME of the study"),
        (["run", "examples/study.toml", "--only", "Other"], "no model 'Other'"),
        (["run", "examples/study.toml", "--only", "SmolLM2-135M-Instruct", "--suite", "x"], "no such suite"),
    ],
    ids=lambda value: " ".join(value[:1]) if isinstance(value, list) else None,
)
def test_wrong_input_is_told_in_one_line(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(Path(__file__).parents[3])
    monkeypatch.setattr("agentkit.study.branching.default_tokenizer", lambda: None)
    monkeypatch.setattr("agentkit.study.branching.Vocabulary.from_tokenizer", lambda tokenizer: None)
    assert main(["study", *(text.format(here=tmp_path) for text in arguments)]) == 2
    message = capsys.readouterr().err
    assert said in message and message.count("\n") == 1
