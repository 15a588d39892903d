"""The corners: programs on the edge of a rule, right and wrong side by side, that ship with the harness."""

from __future__ import annotations

import re
from importlib.resources import files

from aufbau.validation.corpora import Language, Program, ProgramSet

_HEADING = re.compile(r"^=== (.+)\n", re.MULTILINE)


def corners(language: Language) -> list[Program]:
    """The programs of a language in the order of the file; what they are is the compiler's word, not ours.

    In the file each program stands below a line `=== NAME`; what precedes the first one is a comment.
    """
    text = files("aufbau.validation").joinpath("corners", f"{language}.txt").read_text(encoding="utf-8")
    _, *parts = _HEADING.split(text)
    return [
        Program(origin=ProgramSet.CORNERS, index=index, name=name, text=program.rstrip("\n").encode() + b"\n")
        for index, (name, program) in enumerate(zip(parts[::2], parts[1::2], strict=True))
    ]
