"""Programs from outside: reads the gzipped JSON lines of a corpus folder."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from aufbau.validation.errors import CorpusError


class Language(Enum):
    """A language that has a reference compiler."""

    ML = "ml"  # compared with ocamlc
    C = "c"  # compared with the system's cc

    def __str__(self) -> str:
        return self.value


class ProgramSet(Enum):
    """Where a program comes from, and with that what is claimed of it."""

    VALID = "valid"  # outside programs that the compiler accepts, inside the basic fragment
    INVALID = "invalid"  # outside programs that it rejects, inside the basic fragment
    BEYOND_VALID = "beyond_valid"  # accepted, with features beyond the basic fragment
    BEYOND_INVALID = "beyond_invalid"  # rejected, with features beyond the basic fragment
    GENERATED = "generated"  # sampled from the grammar's own mask, and mutants of these
    MUTATED = "mutated"  # mutants of the programs of `valid`
    RECURSION = "recursion"  # the systematic probe of recursive definitions
    CORNERS = "corners"  # programs written to sit on a rule's edge, right and wrong, that ship with the harness

    def __str__(self) -> str:
        return self.value


FROM_CORPUS = (ProgramSet.VALID, ProgramSet.INVALID, ProgramSet.BEYOND_VALID, ProgramSet.BEYOND_INVALID)


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """A program with what is known of it before the oracle is asked."""

    origin: ProgramSet
    index: int  # place in its set; names need not be unique
    name: str
    text: bytes
    accepted: bool | None = None  # the compiler's word; None when it has not been asked
    diagnostic: int | None = None  # byte offset at which the compiler's first diagnostic begins
    message: str = ""
    features: tuple[str, ...] = ()  # what it needs beyond the basic fragment


def corpus_file(folder: Path, language: Language, origin: ProgramSet) -> Path:
    """The file of a set."""
    return folder / language.value / f"{origin.value}.jsonl.gz"


def read_corpus(folder: Path, language: Language, origin: ProgramSet, *, every: int = 1) -> Iterator[Program]:
    """The programs of a set in the order of the file, only every so many-th one if asked.

    Raises `CorpusError` for a file that is missing or damaged and for a record that lacks a field.
    """
    path = corpus_file(folder, language, origin)
    index = -1
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for index, line in enumerate(lines):
                if index % every == 0:
                    yield _program(json.loads(line), origin, index)
    except FileNotFoundError as error:
        raise CorpusError(
            f"there is no {path}; --corpus names the folder that holds {language}/{origin}.jsonl.gz"
        ) from error
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise CorpusError(
            f"{path}, record {index + 1}: {type(error).__name__}: {error}; each line is a JSON object with "
            "id, text, expect and, for rejected programs, error.off0"
        ) from error


def _program(record: dict[str, object], origin: ProgramSet, index: int) -> Program:
    expect = record["expect"]
    if expect not in ("valid", "invalid"):
        raise ValueError(f"expect is {expect!r}, not valid or invalid")
    error = record.get("error")
    diagnostic = error.get("off0") if isinstance(error, dict) else None
    features = record.get("features") or ()
    if not isinstance(features, list | tuple):
        raise ValueError(f"features is {features!r}, not a list")
    return Program(
        origin=origin,
        index=index,
        name=str(record["id"]),
        text=str(record["text"]).encode(),
        accepted=expect == "valid",
        diagnostic=diagnostic if isinstance(diagnostic, int) else None,
        message=str(record.get("compiler_message") or ""),
        features=tuple(str(feature) for feature in features),
    )
