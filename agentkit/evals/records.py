"""Records of attempts as JSON lines: each appended whole, a half-written last one mended, none made twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from agentkit.evals.errors import EvalError
from agentkit.evals.plan import Cell
from agentkit.jsontext import json_text
from agentkit.lines import LineFile, read_lines
from agentkit.result import RunResult, RunUsage
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
        return json_text({"version": VERSION, **asdict(self)}) + "\n"

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


class RecordFile(LineFile):
    """A file of records that this process alone writes to. Raises `EvalError`."""

    error = EvalError
    elsewhere = "give another --records"


def read_records(path: Path) -> dict[str, EvalRecord]:
    """The records of a file by their keys, the first of each; none where there is no file. Raises `EvalError`."""
    found: dict[str, EvalRecord] = {}
    if not path.exists():
        return found
    try:
        data = path.read_bytes()
    except OSError as error:
        raise EvalError(f"{path}: can't be read ({error.strerror}); give another --records") from error
    for record in read_lines(data, path, EvalRecord.from_data, EvalError):
        found.setdefault(record.key, record)
    return found
