"""The reference compilers: their word, the place of the first diagnostic, time-outs, and their absence."""

from __future__ import annotations

import re
import sys

import pytest

from aufbau.validation import CommandCompiler, CompilerMissing, Language, Outcome, find_compiler
from aufbau.validation.compilers import offset_of
from tests.validation.subjects import need_compiler

# language, program; ¦ stands where the first diagnostic begins, and nowhere in accepted programs
WORDS = [
    (Language.ML, "let f (x : int) : int = x\n"),
    (Language.ML, "let f (x : int) : int =\n  if ¦x then 1 else 2\n"),
    (Language.ML, "let x : int =\n  ¦(true\n  && false)\n"),
    (Language.ML, "let x : int = 1 +¦"),
    (Language.ML, "let é = 1\n".replace("é", "x") + "let y : int = ¦z\n"),
    (Language.ML, 'let s : string = "äö" let y : int = ¦z\n'),
    (Language.C, "int f(int x) { return x; }\n"),
    (Language.C, "int f(int x) {\n\t\treturn ¦y;\n}\n"),
    (Language.C, "int f(int *x) { return ¦x; }\n"),
    (Language.C, "int f(int x) { ¦return; }\n"),
    (Language.C, "/* ä */ int f(int x) { return ¦y; }\n"),
]


@pytest.mark.parametrize(("language", "marked"), WORDS)
def test_word_and_place(language: Language, marked: str) -> None:
    need_compiler(language)
    text = marked.replace("¦", "").encode()
    found = find_compiler(language).compile(text)
    if "¦" not in marked:
        assert (found.outcome, found.offset) == (Outcome.ACCEPTED, None)
        return
    assert found.outcome is Outcome.REJECTED and found.message
    place = len(marked[: marked.index("¦")].encode())
    assert found.offset is not None
    # An error at the end of the text is told at its last byte or behind it.
    assert found.offset == place or (place == len(text) and found.offset >= place - 1)


# line, column, offset in the text "ab\nç\n"
OFFSETS = [(1, 0, 0), (1, 2, 2), (2, 0, 3), (2, 2, 5), (3, 0, 6), (9, 4, 6), (1, 99, 6), (1, -1, 0)]


@pytest.mark.parametrize(("line", "column", "offset"), OFFSETS)
def test_offsets(line: int, column: int, offset: int) -> None:
    assert offset_of("ab\nç\n".encode(), line, column) == offset


def stand_in(program: str, seconds: float = 20) -> CommandCompiler:
    """A compiler made of a line of Python."""
    place = re.compile(r"^(\d+):(\d+): (.*)", re.MULTILINE)
    return CommandCompiler(
        command=(sys.executable, "-c", program), suffix=".x", place=place, first_column=1, seconds=seconds
    )


# program of the stand-in, what comes of it, offset, what the message holds
STAND_INS = [
    ("pass", Outcome.ACCEPTED, None, ""),
    ("import sys; sys.exit('1:3: bad')", Outcome.REJECTED, 2, "bad"),
    ("import sys; sys.exit('out of memory')", Outcome.UNKNOWN, None, "out of memory"),
    ("import sys; sys.exit(1)", Outcome.UNKNOWN, None, "without a message"),
    ("import time; time.sleep(60)", Outcome.UNKNOWN, None, "longer than 0.5 s"),
]


@pytest.mark.parametrize(("program", "outcome", "offset", "message"), STAND_INS)
def test_outcomes(program: str, outcome: Outcome, offset: int | None, message: str) -> None:
    found = stand_in(program, 0.5 if "sleep" in program else 20).compile(b"abcdef")
    assert (found.outcome, found.offset) == (outcome, offset)
    assert message in found.message


@pytest.mark.parametrize("language", Language)
def test_a_missing_compiler_is_named_with_the_remedy(language: Language, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(CompilerMissing, match=r"is not on PATH.*install it \(apt install"):
        find_compiler(language)
