"""Where a run stands, as a value and as JSON text: enough to go on in another process and do nothing twice."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from agentkit.jsontext import json_text
from agentkit.models import Message
from agentkit.saving import CheckpointError, Codecs, Saver
from agentkit.usage import RunTiming, RunUsage, StopReason
from dialects import Step
from episodes import Binding, Bindings, EpisodeError, Transcript, Turn
from episodes.stepdata import step_from_data, step_to_data
from registry import Registry, ToolType, UnknownTypeError

# The layout of the JSON form; a reader refuses any other.
VERSION = 1


class ResumeConflict(CheckpointError):
    """The process ended inside a step that must not be executed twice. `.tools` names the calls of unknown effect."""

    def __init__(self, message: str, *, tools: tuple[str, ...]) -> None:
        super().__init__(message)
        self.tools = tools


@dataclass(frozen=True, kw_only=True, slots=True)
class Pending:
    """A step that was proposed and is in no turn yet."""

    text: str
    thought: str = ""
    step: Step
    begun: bool = False
    """Its execution began; whether it ended is not known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpoint:
    """A run between two turns, or before or inside the execution of a step, which is then `pending`."""

    run_id: str
    episode: str
    prompt: str
    """The episode's, so that no other is gone on with."""

    transcript: Transcript
    bindings: Bindings
    """What the run has bound, without the episode's own bindings."""

    proposed: Mapping[str, int]
    """How often each step was proposed."""

    called: Mapping[str, str | None]
    """The calls of pure tools with the names that hold their results; None for one that failed."""

    usage: RunUsage
    timing: RunTiming
    stop_reason: StopReason
    output: object = None
    output_type: ToolType | None = None
    pending: Pending | None = None
    message_history: tuple[Message, ...] = ()
    cut: int = 0
    """How far the prompt has been shortened for the model's context."""

    codecs: Codecs = field(default_factory=dict, repr=False, compare=False)

    def to_json(self, indent: int | None = None) -> str:
        """The checkpoint as JSON text. Raises `CheckpointError` for a value that JSON cannot hold without a codec."""
        saver = Saver(self.codecs)
        output = saver.encode(self.output_type, self.output) if self.output_type is not None else self.output
        data: dict[str, object] = {
            "version": VERSION,
            "run_id": self.run_id,
            "episode": self.episode,
            "prompt": self.prompt,
            "turns": [turn.to_data() for turn in self.transcript],
            "bindings": [
                {"name": name, "type": bound.type.name, "value": _saved(saver, bound)}
                for name, bound in self.bindings.items()
            ],
            "proposed": dict(self.proposed),
            "called": dict(self.called),
            "usage": asdict(self.usage),
            "timing": asdict(self.timing),
            "stop_reason": self.stop_reason.value,
            "output": output,
            "output_type": self.output_type.name if self.output_type is not None else None,
            "pending": _pending_to_data(self.pending) if self.pending is not None else None,
            "message_history": [asdict(message) for message in self.message_history],
            "cut": self.cut,
        }
        try:
            return json_text(data, indent)
        except (TypeError, ValueError) as error:
            raise CheckpointError(
                f"a codec's encode, or an output without a type, gave no JSON data: {error}"
            ) from error

    @classmethod
    def from_json(
        cls, text: str, registry: Registry, *, types: Iterable[ToolType] = (), codecs: Codecs | None = None
    ) -> Self:
        """The checkpoint that `to_json` wrote, its types looked up in `types` and the registry.

        Raises `CheckpointError`.
        """
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise CheckpointError(f"a checkpoint is JSON, and this is not: {error}") from error
        if not isinstance(data, dict) or data.get("version") != VERSION:
            raise CheckpointError(f"expected a checkpoint of version {VERSION}, an object with that version")
        try:
            find = _Types({kind.name: kind for kind in types}, registry)
            return cls(**_fields(data, find, Saver(codecs)), codecs=codecs or {})
        except UnknownTypeError as error:
            raise CheckpointError(f"{error}; resume with the tools that the checkpoint was made with") from error
        except (KeyError, TypeError, ValueError, EpisodeError) as error:
            raise CheckpointError(f"not a checkpoint that to_json wrote: {type(error).__name__}: {error}") from error


def write_atomically(path: Path, text: str) -> None:
    """Replace a file as a whole: after a crash it holds what it held before, or, once this returned, the text. Blocks.

    Several threads may write one file; one of them is the last.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.new")
    try:
        with beside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    if os.name == "posix":
        # The new name, too, survives a loss of power only once its folder is on disk.
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@dataclass(frozen=True, slots=True)
class _Types:
    """Types by their spellings."""

    known: Mapping[str, ToolType]
    registry: Registry

    def __getitem__(self, spelling: str) -> ToolType:
        return self.known.get(spelling) or self.registry.find_type(spelling)


def _saved(saver: Saver, bound: Binding) -> object:
    try:
        return saver.encode(bound.type, bound.value)
    except CheckpointError as error:
        raise CheckpointError(f"binding {bound.name!r}: {error}") from error


def _pending_to_data(pending: Pending) -> dict[str, object]:
    return {
        "text": pending.text,
        "thought": pending.thought,
        "step": step_to_data(pending.step),
        "begun": pending.begun,
    }


def _fields(data: dict[str, Any], types: _Types, saver: Saver) -> dict[str, Any]:
    """The fields of a checkpoint, but for the codecs."""
    kind = types[data["output_type"]] if data["output_type"] is not None else None
    pending = data["pending"]
    return {
        "run_id": str(data["run_id"]),
        "episode": str(data["episode"]),
        "prompt": str(data["prompt"]),
        "transcript": Transcript(turns=tuple(map(Turn.from_data, data["turns"]))),
        "bindings": Bindings(_bound(one, types, saver) for one in data["bindings"]),
        "proposed": {str(key): int(times) for key, times in data["proposed"].items()},
        "called": dict(data["called"]),
        "usage": RunUsage(**data["usage"]),
        "timing": RunTiming(**data["timing"]),
        "stop_reason": StopReason(data["stop_reason"]),
        "output": saver.decode(kind, data["output"]) if kind is not None else data["output"],
        "output_type": kind,
        "pending": Pending(**{**pending, "step": step_from_data(pending["step"])}) if pending is not None else None,
        "message_history": tuple(Message(**one) for one in data["message_history"]),
        "cut": int(data["cut"]),
    }


def _bound(data: dict[str, Any], types: _Types, saver: Saver) -> Binding:
    kind = types[data["type"]]
    try:
        return Binding(name=data["name"], type=kind, value=saver.decode(kind, data["value"]))
    except CheckpointError as error:
        raise CheckpointError(f"binding {data['name']!r}: {error}") from error
