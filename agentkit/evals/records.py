"""Records of attempts as JSON lines: each appended whole, a half-written last one mended, none made twice."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from agentkit.evals.errors import EvalError
from agentkit.evals.plan import Cell
from agentkit.result import RunResult, RunUsage
from agentkit.study.records import mend
from episodes.evaluation import Attempt, Failure, FailureKind

# The layout of a line; a reader refuses any other.
VERSION = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class EvalRecord:
    """All that is kept of one attempt; every figure of a report is worked out from these."""

    key: str
    model: str
    mode: str
    episode: str
    number: int
    seed: int
    passed: bool
    # Kind, name and message; None of an attempt that passed.
    failure_kind: str | None
    failure_name: str
    message: str
    output: Any
    stop_reason: str | None
    turns: int
    refused: int
    tool_calls: int
    tokens: int
    prompt_tokens: int
    model_s: float
    oracle_s: float
    seconds: float
    # The turns as data, so that a failure can be looked into.
    transcript: list[Any]

    @classmethod
    def of(cls, cell: Cell, seed: int, attempt: Attempt) -> EvalRecord:
        """The record of an attempt."""
        result = attempt.result if isinstance(attempt.result, RunResult) else None
        usage = result.usage if result is not None else RunUsage()
        failure = attempt.failure
        return cls(
            key=cell.key,
            model=cell.model,
            mode=cell.mode.value,
            episode=attempt.episode,
            number=cell.number,
            seed=seed,
            passed=attempt.passed,
            failure_kind=failure.kind.value if failure is not None else None,
            failure_name=failure.name if failure is not None else "",
            message=failure.message if failure is not None else "",
            output=attempt.output,
            stop_reason=result.stop_reason.value if result is not None else None,
            turns=attempt.turns,
            refused=attempt.refused,
            tool_calls=usage.tool_calls,
            tokens=usage.generated_tokens,
            prompt_tokens=usage.prompt_tokens,
            model_s=result.timing.model_s if result is not None else 0.0,
            oracle_s=result.timing.oracle_s if result is not None else 0.0,
            seconds=attempt.seconds,
            transcript=[turn.to_data() for turn in result.turns] if result is not None else [],
        )

    @property
    def failure(self) -> Failure | None:
        """Why it did not pass."""
        if self.failure_kind is None:
            return None
        return Failure(kind=FailureKind(self.failure_kind), name=self.failure_name, message=self.message)

    def to_line(self) -> str:
        """The record as one line of JSON, with its end."""
        return json.dumps({"version": VERSION, **asdict(self)}, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> EvalRecord:
        """The record of a parsed line. Raises `ValueError` where it has another layout."""
        if data.get("version") != VERSION:
            raise ValueError(f"version {data.get('version')!r} instead of {VERSION}")
        given = {name: value for name, value in data.items() if name != "version"}
        names = {one.name for one in fields(cls)}
        if given.keys() != names:
            raise ValueError(f"missing {sorted(names - given.keys())}, unknown {sorted(given.keys() - names)}")
        return cls(**given)


class RecordFile:
    """A file of records that this process alone writes to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        """Open for appending; a line that an interruption cut is taken away. Raises `EvalError`."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = self.path.open("ab+")
        except OSError as error:
            raise EvalError(f"{self.path}: can't be written ({error.strerror}); give another --records") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise EvalError(
                f"{self.path} is being written by another process; wait for it, or give another --records"
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

    def append(self, record: EvalRecord) -> None:
        """Write one line in a single call, and have it on disk before returning."""
        if self._file is None:
            raise EvalError(f"{self.path} is not open; use it in a `with` block")
        try:
            self._file.write(record.to_line().encode())
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise EvalError(f"{self.path}: can't be written ({error.strerror}); what it holds stays good") from error


def read_records(path: Path) -> dict[str, EvalRecord]:
    """The records of a file by their keys, the first of each; none where there is no file. Raises `EvalError`."""
    found: dict[str, EvalRecord] = {}
    if not path.exists():
        return found
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise EvalError(f"{path}: can't be read ({error.strerror}); give another --records") from error
    # The last part is empty, or a line without its end.
    for number, line in enumerate(lines[:-1], 1):
        try:
            record = EvalRecord.from_data(json.loads(line))
        except (ValueError, TypeError, AttributeError) as error:
            raise EvalError(
                f"{path}, line {number}: no record ({error}); take the line away, and the attempt is made anew"
            ) from error
        found.setdefault(record.key, record)
    return found
