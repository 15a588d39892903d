"""What the harness writes down of each program, one JSON object a line, and how a run is taken up again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, fields
from enum import Enum
from pathlib import Path
from typing import Final, Generic, Protocol, TextIO, TypeVar, final

from aufbau.validation.corpora import ProgramSet
from aufbau.validation.errors import ResumeError
from aufbau.validation.witnesses import Completion
from aufbau.witness import Outcome


class Finding(Enum):
    """How the oracle and the compiler compare on a program."""

    AGREES = "agrees"  # accepted and satisfied, or rejected and lost
    FALSE_PRUNE = "false prune"  # accepted, yet some prefix was called LOST for its meaning
    UNREAD = "surface not read"  # accepted, in the fragment, but the grammar's surface does not have it
    REFUSED = "accepted, not satisfied"  # accepted and never lost, yet not SATISFIED at its end
    UNSOUND = "rejected, satisfied"  # the compiler rejects what the oracle calls SATISFIED
    OUTSIDE = "outside the surface"  # the syntactic twin does not take what the compiler has read by then
    OPEN = "rejected, not lost"  # rejected and LIVE at its end: it may have a completion
    UNJUDGED = "not judged"  # the oracle ran out of a budget, or the compiler gave no word


FAULTS = (Finding.FALSE_PRUNE, Finding.UNREAD, Finding.REFUSED, Finding.UNSOUND, Finding.UNJUDGED)
# Sets whose accepted programs all belong to the fragment.
_INSIDE = (ProgramSet.VALID, ProgramSet.GENERATED, ProgramSet.RECURSION)


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One judged program."""

    origin: str  # a `ProgramSet`
    index: int
    variant: str = ""  # the mutation, of a mutant
    name: str
    size: int  # bytes
    accepted: bool | None  # the compiler's word
    diagnostic: int | None = None  # where it begins
    message: str = ""
    verdict: str | None  # at the end; None: the oracle gave up
    lost_at: int | None = None
    twin: str | None  # the syntactic twin's
    twin_lost_at: int | None = None
    seconds: float  # of the semantic oracle, over all prefixes
    failure: str = ""
    features: tuple[str, ...] = ()
    context: str = ""  # the text around the byte at which it was lost
    unread: str = ""  # the word at which the twin was lost
    text: str = ""  # of programs that no corpus holds
    ending: Completion | None = None  # of a rejected program that is LIVE at its end
    completions: tuple[Completion, ...] = ()  # of prefixes of an accepted program

    @property
    def finding(self) -> Finding:
        """How the oracle and the compiler compare."""
        if self.failure or self.verdict is None or self.accepted is None:
            return Finding.UNJUDGED
        if not self.accepted:
            # The compiler read on where even the twin could not: what stops the oracle is not the program's error.
            lost, start = self.twin_lost_at, self.diagnostic
            if lost is not None and start is not None and lost < start:
                return Finding.OUTSIDE
            return {"satisfied": Finding.UNSOUND, "lost": Finding.AGREES, "live": Finding.OPEN}[self.verdict]
        if self.verdict == "satisfied":
            return Finding.AGREES
        if self.twin != "satisfied":
            inside = ProgramSet(self.origin) in _INSIDE and not self.variant
            return Finding.UNREAD if inside else Finding.OUTSIDE
        return Finding.FALSE_PRUNE if self.verdict == "lost" else Finding.REFUSED

    @property
    def title(self) -> str:
        """Set, place, name and mutation of the program."""
        return f"{self.origin} {self.index}: {self.name}" + (f", {self.variant}" if self.variant else "")

    @property
    def completable(self) -> bool:
        """Whether a rejected text begins a program that the oracle and, if it was asked, the compiler accept."""
        return self.ending is not None and self.ending.outcome == Outcome.FOUND.value and not self.ending.refused

    @property
    def strays(self) -> tuple[Completion, ...]:
        """Prefixes of an accepted program whose completion is refused, or proved not to exist."""
        return tuple(c for c in self.completions if c.refused or c.outcome == Outcome.NONE.value)

    @property
    def faults(self) -> int:
        """How many faults of the grammar or the engine the program shows."""
        return (self.finding in FAULTS) + len(self.strays)

    def to_line(self) -> str:
        """The record as a line of JSON."""
        return json.dumps(asdict(self), ensure_ascii=False) + "\n"

    @classmethod
    def from_line(cls, line: str) -> Record:
        """A record read back. Raises `ValueError` for a line that is none."""
        data = json.loads(line)
        if not isinstance(data, dict) or data.keys() != {f.name for f in fields(cls)}:
            raise ValueError("not a record of this version")
        data["features"] = tuple(data["features"])
        data["ending"] = data["ending"] and Completion(**data["ending"])
        data["completions"] = tuple(Completion(**completion) for completion in data["completions"])
        return cls(**data)


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """What a run depends on; records may only be added to by a run with the same."""

    language: str
    grammar: str  # digest of its source
    corpus: str
    options: dict[str, int | str] = field(default_factory=dict)


class Entry(Protocol):
    """What a journal can hold: it is one line of JSON, an object without the key `done`."""

    def to_line(self) -> str:
        """The line, its end included."""
        ...


E = TypeVar("E", bound=Entry)


@final
class Journal(Generic[E]):
    """The records of a run in a folder: appended as they come, whole tasks at a time."""

    MANIFEST = "run.json"
    RECORDS = "records.jsonl"

    def __init__(self, folder: Path, manifest: Manifest, read: Callable[[str], E], *, resume: bool) -> None:
        """Open the folder, afresh or to go on; `read` gives a record back. Raises `ResumeError`."""
        self._path: Final = folder / self.RECORDS
        self.records: Final[list[E]] = []
        self.done: Final[set[str]] = set()  # keys of finished tasks
        folder.mkdir(parents=True, exist_ok=True)
        place = folder / self.MANIFEST
        shown = json.dumps(asdict(manifest), indent=1, sort_keys=True)
        if self._path.exists():
            if not resume:
                raise ResumeError(f"{folder} holds the records of a run; go on with --resume, or name another --out")
            if place.read_text(encoding="utf-8") != shown:
                raise ResumeError(
                    f"{folder} holds the records of a run with another grammar or other options "
                    f"(compare {place}); name another --out"
                )
            self._load(read)
        place.write_text(shown, encoding="utf-8")
        self._file: Final[TextIO] = self._path.open("a", encoding="utf-8")

    def _load(self, read: Callable[[str], E]) -> None:
        """Read what is there; a task whose end mark is missing (the run was cut off) is dropped and done again."""
        kept = size = 0
        pending: list[E] = []
        data = self._path.read_bytes()
        for line in data.splitlines(keepends=True):
            size += len(line)
            if not line.endswith(b"\n"):
                break
            try:
                found = json.loads(line)
                if "done" in found:
                    self.records.extend(pending)
                    self.done.add(found["done"])
                    pending, kept = [], size
                else:
                    pending.append(read(line.decode()))
            except (ValueError, TypeError) as error:
                raise ResumeError(f"{self._path}: {error} in {line[:60]!r}; name another --out") from error
        with self._path.open("r+b") as file:
            file.truncate(kept)

    def add(self, key: str, records: Iterable[E]) -> None:
        """Write the records of a finished task."""
        found = list(records)
        self._file.write("".join(record.to_line() for record in found) + json.dumps({"done": key}) + "\n")
        self._file.flush()
        self.records.extend(found)
        self.done.add(key)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
