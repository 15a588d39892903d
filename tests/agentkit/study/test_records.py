"""Records on disk: written whole, mended after an interruption, held by one process, compressed without loss."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import cli
from agentkit.study import Record, RecordError, read_records
from agentkit.study.records import RecordFile, compress, record_file
from tests.agentkit.study.study_samples import record

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(texts, texts, st.lists(st.floats(0, 20), max_size=5), st.integers(0, 1000))
def test_a_line_reads_back_equal(text: str, why: str, entropy: list[float], refused: int) -> None:
    whole = replace(record(text=text), why=why, entropy=tuple(entropy), rejected=(refused,) * len(entropy))
    line = whole.to_line()
    assert line.count("\n") == 1 and line.endswith("\n")
    assert Record.from_data(json.loads(line)) == whole


def write(path: Path, *records: Record) -> None:
    with RecordFile(path) as file:
        for one in records:
            file.append(one)


@pytest.mark.parametrize("kept", [0, 1, 20, -1])
def test_a_line_that_was_cut_is_mended(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "m.jsonl"
    first, second = record("one"), record("two")
    write(path, first)
    cut = second.to_line().encode()[:-1][: kept if kept >= 0 else None]
    path.write_bytes(path.read_bytes() + cut)
    assert read_records(tmp_path) == [first], "what is still being written is not read"
    write(path, second)
    assert read_records(tmp_path) == [first, second]


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    write(path, record("one"))
    path.write_bytes(b'{"version": 1}\n' + path.read_bytes())
    with pytest.raises(RecordError, match="line 1: no record"):
        read_records(tmp_path)


@pytest.mark.parametrize(
    "change", [{"version": 2}, {"colour": 1}, {"tokens": "many"}, {"entropy": 3}], ids=lambda change: next(iter(change))
)
def test_another_layout_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    data = json.loads(record().to_line()) | change
    (tmp_path / "m.jsonl").write_text(json.dumps(data) + "\n")
    with pytest.raises(RecordError, match="line 1"):
        read_records(tmp_path)


def test_two_processes_cannot_write_one_file(tmp_path: Path) -> None:
    with RecordFile(tmp_path / "m.jsonl"), pytest.raises(RecordError, match="another process"):
        RecordFile(tmp_path / "m.jsonl").__enter__()


def test_compressed_records_are_the_same_and_may_grow(tmp_path: Path) -> None:
    path = record_file(tmp_path, "a model/with:signs", (1, 1))
    write(path, record("one"), record("two"))
    first = compress(path)
    assert not path.exists() and first.name == "a_model_with_signs.jsonl.gz"
    before = first.read_bytes()
    write(path, record("three"))
    assert [one.task for one in read_records(tmp_path)] == ["three", "one", "two"]
    compress(path)
    assert [one.task for one in read_records(tmp_path)] == ["one", "two", "three"]
    first.unlink()
    write(path, record("one"), record("two"))
    assert compress(path).read_bytes() == before, "equal records give equal bytes"


def test_an_attempt_counts_once(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", record("one", text="first"))
    write(tmp_path / "b.jsonl", record("one", text="second"), record("two"))
    assert [(one.task, one.text) for one in read_records(tmp_path)] == [("one", "first"), ("two", "text")]


def test_each_shard_has_its_file(tmp_path: Path) -> None:
    names = {record_file(tmp_path, "m", (part, 3)).name for part in (1, 2, 3)}
    assert len(names | {record_file(tmp_path, "m", (1, 1)).name}) == 4


def test_packing_no_study_is_wrong_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["study", "pack", str(tmp_path)]) == cli.WRONG_INPUT
    assert "there is no folder" in capsys.readouterr().err
