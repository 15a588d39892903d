"""Reading corpus folders: records, samples, and what is wrong with a file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from aufbau.validation import CorpusError, Language, ProgramSet, read_corpus

GOOD = {"id": "a", "text": "let x = 1", "expect": "valid", "features": ["string"]}
BAD = {"id": "b", "text": "let é = x", "expect": "invalid", "error": {"off0": 9}, "compiler_message": "unbound"}


def write(folder: Path, origin: ProgramSet, lines: list[str]) -> None:
    """A corpus file of ML."""
    (folder / "ml").mkdir(exist_ok=True)
    with gzip.open(folder / "ml" / f"{origin}.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write("".join(line + "\n" for line in lines))


def test_records(tmp_path: Path) -> None:
    write(tmp_path, ProgramSet.VALID, [json.dumps(GOOD), json.dumps(BAD)])
    good, bad = read_corpus(tmp_path, Language.ML, ProgramSet.VALID)
    assert (good.name, good.text, good.accepted, good.diagnostic) == ("a", b"let x = 1", True, None)
    assert good.features == ("string",)
    assert (bad.index, bad.text, bad.accepted, bad.diagnostic) == (1, "let é = x".encode(), False, 9)
    assert bad.message == "unbound"


def test_samples_keep_their_places(tmp_path: Path) -> None:
    write(tmp_path, ProgramSet.VALID, [json.dumps(GOOD)] * 10)
    assert [p.index for p in read_corpus(tmp_path, Language.ML, ProgramSet.VALID, every=4)] == [0, 4, 8]


# lines of the file, what the message says
BROKEN = [
    (["{"], "record 1: JSONDecodeError"),
    ([json.dumps(GOOD), json.dumps({"id": "x"})], "record 2: KeyError: 'expect'"),
    ([json.dumps(GOOD | {"expect": "maybe"})], "expect is 'maybe'"),
    ([json.dumps(GOOD | {"features": "string"})], "features is 'string', not a list"),
]


@pytest.mark.parametrize(("lines", "message"), BROKEN)
def test_broken_files(tmp_path: Path, lines: list[str], message: str) -> None:
    write(tmp_path, ProgramSet.VALID, lines)
    with pytest.raises(CorpusError, match=message):
        list(read_corpus(tmp_path, Language.ML, ProgramSet.VALID))


def test_missing_and_truncated_files(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="--corpus names the folder"):
        list(read_corpus(tmp_path, Language.ML, ProgramSet.VALID))
    write(tmp_path, ProgramSet.VALID, [json.dumps(GOOD)] * 100)
    path = tmp_path / "ml" / "valid.jsonl.gz"
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(CorpusError, match="EOFError"):
        list(read_corpus(tmp_path, Language.ML, ProgramSet.VALID))
