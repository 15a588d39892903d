"""Records of attempts as JSON lines: appended whole, mended after an interruption, read plain or compressed."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from agentkit.jsontext import json_text
from agentkit.lines import LineFile, read_lines
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
        return json_text({"version": VERSION, **asdict(self)}) + "\n"

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


class RecordFile(LineFile):
    """A file of records that this process alone writes to. Raises `RecordError`."""

    error = RecordError
    elsewhere = "give each process its own --shard"


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
        data = gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (OSError, EOFError, zlib.error) as error:
        raise RecordError(f"{path}: can't be read ({error})") from error
    yield from read_lines(data, path, Record.from_data, RecordError)


def compress(path: Path) -> Path:
    """Move a file of records behind what its compressed form holds already, whose bytes depend on the records alone."""
    target = path.with_name(path.name + ".gz")
    partial = target.with_name(target.name + ".part")
    before = gzip.decompress(target.read_bytes()) if target.exists() else b""
    partial.write_bytes(gzip.compress(before + path.read_bytes(), compresslevel=9, mtime=0))
    partial.rename(target)
    path.unlink()
    return target
