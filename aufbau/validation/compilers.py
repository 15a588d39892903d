"""The reference compilers: does `ocamlc` or `cc` accept a program, and where does its first diagnostic begin?"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol

from aufbau.validation.corpora import Language
from aufbau.validation.errors import CompilerMissing

C_FLAGS = (
    "-std=c17",
    "-fsyntax-only",
    "-pedantic-errors",
    "-Werror=int-conversion",
    "-Werror=incompatible-pointer-types",
    "-Werror=implicit-function-declaration",
    "-Werror=implicit-int",
    "-Werror=return-type",
)
ML_FLAGS = ("-w", "-a", "-alert", "-all", "-color", "never", "-error-style", "short", "-c")

_ML_PLACE = re.compile(r'^File "[^"\n]*", lines? (\d+)(?:-\d+)?, characters (\d+)-\d+:\n(?:Error: )?(.*)', re.MULTILINE)
_C_PLACE = re.compile(r"^[^:\n]*:(\d+):(?:(\d+):)? (?:fatal )?error: (.*)", re.MULTILINE)


class Outcome(Enum):
    """What a compiler did with a program."""

    ACCEPTED = "accepted"  # it ended with status 0
    REJECTED = "rejected"  # it gave a diagnostic that points into the program
    UNKNOWN = "unknown"  # it ran out of time, or failed without saying where


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """A compiler's word on a program."""

    outcome: Outcome
    offset: int | None = None  # byte offset of the first diagnostic, where it is told
    message: str = ""


class Compiler(Protocol):
    """Anything that accepts or rejects whole programs."""

    def compile(self, text: bytes) -> Diagnosis:
        """The word on one program."""
        ...

    def compile_all(self, texts: Sequence[bytes]) -> list[Diagnosis]:
        """The word on each of some programs, the same as alone."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandCompiler:
    """A compiler that is run in a folder of its own, once for a program or for many."""

    command: tuple[str, ...]  # without the file
    suffix: str
    place: re.Pattern[str]  # line, column and message of a diagnostic
    first_column: int  # how the compiler numbers the first column
    seconds: float = 20.0  # time limit of one run

    def compile(self, text: bytes) -> Diagnosis:
        """Write the program to a temporary folder and run the compiler there."""
        return self._run([text])

    def compile_all(self, texts: Sequence[bytes]) -> list[Diagnosis]:
        """One run for all of them where it accepts them; where it does not, half of them at a time.

        A run that accepts says so of every program: `cc` starts anew for each file, and `ocamlc` ends at the first file
        that it refuses. No program can see another, since none names a module `Program0`.
        """
        if len(texts) < 2:
            return [self.compile(text) for text in texts]
        word = self._run(texts)
        if word.outcome is Outcome.ACCEPTED:
            return [word] * len(texts)
        middle = len(texts) // 2
        return [*self.compile_all(texts[:middle]), *self.compile_all(texts[middle:])]

    def _run(self, texts: Sequence[bytes]) -> Diagnosis:
        """One run; what it says where it refuses is about the first of the texts, so only of use when that is alone."""
        with tempfile.TemporaryDirectory(prefix="aufbau-") as folder:
            names = [f"program{number}{self.suffix}" for number in range(len(texts))]
            for name, text in zip(names, texts, strict=True):
                Path(folder, name).write_bytes(text)
            try:
                run = subprocess.run(
                    [*self.command, *names],
                    cwd=folder,
                    capture_output=True,
                    timeout=self.seconds * len(texts),
                    check=False,
                    stdin=subprocess.DEVNULL,
                    env={**os.environ, "LC_ALL": "C"},  # messages in English, plain quotes
                )
            except subprocess.TimeoutExpired:
                message = f"{self.command[0]} took longer than {self.seconds:g} s"
                return Diagnosis(outcome=Outcome.UNKNOWN, message=message)
        if run.returncode == 0:
            return Diagnosis(outcome=Outcome.ACCEPTED)
        return self._diagnosis(texts[0], run.stderr.decode(errors="replace"))

    def _diagnosis(self, text: bytes, output: str) -> Diagnosis:
        found = self.place.search(output)
        if found is None:
            message = output.strip() or "failed without a message"
            return Diagnosis(outcome=Outcome.UNKNOWN, message=message)
        # gcc leaves the column out where a line is very long.
        offset = offset_of(text, int(found[1]), int(found[2]) - self.first_column) if found[2] else None
        return Diagnosis(outcome=Outcome.REJECTED, offset=offset, message=found[3].strip())


def offset_of(text: bytes, line: int, column: int) -> int:
    """The byte offset of a line, counted from 1, and a byte column, counted from 0; kept inside the text."""
    start = 0
    for _ in range(line - 1):
        end = text.find(b"\n", start)
        if end < 0:
            return len(text)
        start = end + 1
    return min(start + max(column, 0), len(text))


def find_compiler(language: Language) -> CommandCompiler:
    """The reference compiler of a language. Raises `CompilerMissing`."""
    if language is Language.ML:
        program = _find("ocamlc", "apt install ocaml-nox, or opam install ocaml-base-compiler")
        return CommandCompiler(command=(program, *ML_FLAGS), suffix=".ml", place=_ML_PLACE, first_column=0)
    program = _find("cc", "apt install gcc libc6-dev")
    return CommandCompiler(
        command=(program, *C_FLAGS, *_column_flags(program)), suffix=".c", place=_C_PLACE, first_column=1
    )


def _find(name: str, remedy: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise CompilerMissing(
            f"{name} is not on PATH, so there is nothing to compare with; install it ({remedy}), "
            "or ask only for what a corpus records (--recorded --sets valid,invalid,beyond_valid,beyond_invalid)"
        )
    return found


def _column_flags(program: str) -> tuple[str, ...]:
    """gcc counts a tab as eight columns unless told otherwise; clang counts bytes and doesn't know the option."""
    version = subprocess.run([program, "--version"], capture_output=True, timeout=20, check=False).stdout
    return () if b"clang" in version else ("-fdiagnostics-column-unit=byte",)
