"""Records of attempts as JSON lines: appended whole, mended after an interruption, read plain or compressed."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from pydantic import TypeAdapter

from agentkit.study.errors import RecordError

# The layout of a line; a reader refuses any other.
VERSION = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """All that is kept of one attempt; every figure of the report is worked out from these."""

    # The settings of the study that the attempt depends on, and the task's contents.
    settings: str
    task_digest: str
    model: str
    suite: str
    task: str
    language: str
    # The language as reports group it.
    family: str
    covered: bool
    resolution: str
    # What a pass says: validity, behaviour, equivalence (`Kind`), or value for episodes.
    kind: str
    mode: str
    seed: int
    # lost, live or satisfied: the oracle's verdict on the final text.
    outcome: str
    passed: bool
    # The compiler or checker accepts the program at the required type; an episode: it returned a value of its type.
    valid: bool
    why: str
    finish: str
    # Tokens of the constrained block or answer, of the reasoning before it, and of the prompt.
    tokens: int
    reasoning_tokens: int
    prompt_tokens: int
    # Tokens that were generated and given up again, to end within the budget; they are in none of the above.
    taken_back: int
    # For each token of the block: entropy before the mask in nats, and candidates refused before it.
    entropy: tuple[float, ...]
    rejected: tuple[int, ...]
    # Tokens that the budget forced, so that the text ends in time.
    steered: int
    # What is known of the end within the budget: see `agentkit.block.Steering`.
    steering: str
    model_s: float
    oracle_s: float
    grading_s: float
    text: str
    reasoning: str = ""
    # Turns of an episode; 1 for a program.
    turns: int = 1
    # Why the attempt gave no answer at all.
    error: str | None = None

    @property
    def key(self) -> tuple[str, str, str, str, str, int]:
        """What makes two attempts the same: a second one is not made."""
        return self.settings, self.task_digest, self.model, f"{self.suite}/{self.task}", self.mode, self.seed

    def to_line(self) -> str:
        """The record as one line of JSON, with its end."""
        return json.dumps({"version": VERSION, **asdict(self)}, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Record:
        """The record of a parsed line. Raises `ValueError` where it has another layout."""
        if data.get("version") != VERSION:
            raise ValueError(f"version {data.get('version')!r} instead of {VERSION}")
        given = {name: value for name, value in data.items() if name != "version"}
        names = {field.name for field in fields(cls)}
        if given.keys() != names:
            raise ValueError(f"missing {sorted(names - given.keys())}, unknown {sorted(given.keys() - names)}")
        return _shape().validate_python(given)


@cache
def _shape() -> TypeAdapter[Record]:
    return TypeAdapter(Record)


class RecordFile:
    """A file of records that this process alone writes to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        """Open for appending; a line that an interruption cut is taken away. Raises `RecordError` if it is in use."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = self.path.open("ab+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise RecordError(
                f"{self.path} is being written by another process; give each its own --shard, or wait for it"
            ) from None
        mend(file)
        self._file = file
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def append(self, record: Record) -> None:
        """Write one line in a single call, and have it on disk before returning."""
        if self._file is None:
            raise RecordError(f"{self.path} is not open; use it in a `with` block")
        self._file.write(record.to_line().encode())
        self._file.flush()
        os.fsync(self._file.fileno())


def mend(file: IO[bytes]) -> int:
    """Cut off what stands after the last line end; returns how many bytes that was."""
    end = file.seek(0, os.SEEK_END)
    file.seek(0)
    keep = file.read().rfind(b"\n") + 1
    file.truncate(keep)
    return end - keep


def record_file(folder: Path, model: str, shard: tuple[int, int]) -> Path:
    """Where the attempts of one model and shard are kept: one file for each process that writes."""
    part = "" if shard[1] == 1 else f".{shard[0]}-of-{shard[1]}"
    return folder / f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', model)}{part}.jsonl"


def read_records(folder: Path) -> list[Record]:
    """The records of all `.jsonl` and `.jsonl.gz` files of a folder, each attempt once, in the order of file and line.

    The end of a line that is still being written is left out. Raises `RecordError`.
    """
    paths = sorted([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.gz")])
    found: dict[tuple[str, str, str, str, str, int], Record] = {}
    for path in paths:
        for record in _read_file(path):
            found.setdefault(record.key, record)
    return list(found.values())


def _read_file(path: Path) -> Iterator[Record]:
    try:
        raw = path.read_bytes()
        lines = (gzip.decompress(raw) if path.suffix == ".gz" else raw).split(b"\n")
    except (OSError, EOFError) as error:
        raise RecordError(f"{path}: can't be read ({error})") from error
    # The last part is empty, or a line without its end.
    for number, line in enumerate(lines[:-1], 1):
        try:
            yield Record.from_data(json.loads(line))
        except (ValueError, TypeError, AttributeError) as error:
            raise RecordError(
                f"{path}, line {number}: no record ({error}); take the line away, and the attempt is made anew"
            ) from error


def compress(path: Path) -> Path:
    """Move a file of records behind what its compressed form holds already, whose bytes depend on the records alone."""
    target = path.with_name(path.name + ".gz")
    partial = target.with_name(target.name + ".part")
    before = gzip.decompress(target.read_bytes()) if target.exists() else b""
    partial.write_bytes(gzip.compress(before + path.read_bytes(), compresslevel=9, mtime=0))
    partial.rename(target)
    path.unlink()
    return target
