"""The record of a run, turn by turn; plain data, so that it survives JSON unchanged."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from dialects.steps import Step
from episodes.errors import TranscriptError
from episodes.outcome import Bound, StepOutcome
from episodes.plain import plain
from episodes.stepdata import step_from_data, step_to_data

T = TypeVar("T")

# The layout of the JSON form; a reader refuses any other.
VERSION = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What a step gave: bound to a name, or returned when there is none."""

    name: str | None
    type: str | None
    value: object  # plain data: what JSON cannot hold is {"type": …, "repr": …}

    @classmethod
    def of(cls, outcome: StepOutcome) -> Result:
        """The record of an outcome."""
        if isinstance(outcome, Bound):
            binding = outcome.binding
            return cls(name=binding.name, type=binding.type.name, value=plain(binding.value))
        return cls(name=None, type=outcome.type.name if outcome.type else None, value=plain(outcome.value))


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """One turn: the model's text, and either what its step gave or why there is nothing."""

    number: int  # counted from 1
    text: str  # the step as the model wrote it
    thought: str = ""
    step: Step | None = None  # None when the text is no step
    result: Result | None = None  # None when the step was not executed, or failed
    observation: str = ""  # what the model was told
    error: str | None = None

    def to_data(self) -> dict[str, object]:
        """The turn as JSON-able data."""
        return {
            "number": self.number,
            "thought": self.thought,
            "text": self.text,
            "step": step_to_data(self.step) if self.step else None,
            "result": _result_to_data(self.result) if self.result else None,
            "observation": self.observation,
            "error": self.error,
        }

    @classmethod
    def from_data(cls, data: Mapping[str, object]) -> Turn:
        """The turn that `to_data` wrote. Raises `TranscriptError`."""
        step, result, error = _get(data, "step", object), _get(data, "result", object), _get(data, "error", object)
        return cls(
            number=_get(data, "number", int),
            thought=_get(data, "thought", str),
            text=_get(data, "text", str),
            step=step_from_data(step) if step is not None else None,
            result=_result_from_data(result) if result is not None else None,
            observation=_get(data, "observation", str),
            error=None if error is None else str(error),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Transcript:
    """The turns of a run, in order."""

    turns: tuple[Turn, ...] = ()

    def __iter__(self) -> Iterator[Turn]:
        return iter(self.turns)

    def __len__(self) -> int:
        return len(self.turns)

    def add(self, turn: Turn) -> Transcript:
        """A transcript with one turn more."""
        return Transcript(turns=(*self.turns, turn))

    def to_json(self, indent: int | None = None) -> str:
        """The transcript as JSON text."""
        data = {"version": VERSION, "turns": [turn.to_data() for turn in self.turns]}
        return json.dumps(data, ensure_ascii=False, indent=indent, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Transcript:
        """The transcript that `to_json` wrote. Raises `TranscriptError`."""
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise TranscriptError(f"not JSON: {error}") from error
        if not isinstance(data, dict) or data.get("version") != VERSION:
            raise TranscriptError(f"expected an object with version {VERSION} and turns")
        turns = _get(data, "turns", list)
        if not all(isinstance(turn, dict) for turn in turns):
            raise TranscriptError("every turn must be an object")
        return cls(turns=tuple(map(Turn.from_data, turns)))


def _result_to_data(result: Result) -> dict[str, object]:
    return {"name": result.name, "type": result.type, "value": result.value}


def _result_from_data(data: object) -> Result:
    match data:
        case {"name": (None | str()) as name, "type": (None | str()) as kind, "value": value}:
            return Result(name=name, type=kind, value=value)
    raise TranscriptError(f"expected a result with name, type and value, got {data!r}")


def _get(data: Mapping[str, object], key: str, kind: type[T]) -> T:
    value = data.get(key)
    if key not in data or not isinstance(value, kind):
        raise TranscriptError(f"expected {key!r} to be a {kind.__name__}, got {value!r}")
    return value
