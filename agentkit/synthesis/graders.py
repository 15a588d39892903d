"""Graders: does the compiler accept a program with its type, does it behave, does it equal a reference?"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from agentkit.synthesis import calculi
from agentkit.synthesis.compilers import Word, compiler_word
from agentkit.synthesis.errors import TestsError
from agentkit.synthesis.harness import UnitTest, build, first_failure
from agentkit.synthesis.languages import Language, known_language
from agentkit.synthesis.sandbox import End, SandboxLimits, SandboxResult, run_sandboxed, working_folder

RUN_LIMITS: Final = SandboxLimits()


class GradeKind(Enum):
    """What a grade is about. They are never added up: a valid program may do anything."""

    # A compiler, or a checker written apart from the engine, accepts the program at the required type.
    VALIDITY = "validity"
    # It was compiled and run, and did what unit tests ask.
    BEHAVIOUR = "behaviour"
    # It has the normal form of a reference.
    EQUIVALENCE = "equivalence"


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """What a grader says of a program."""

    passed: bool
    kind: GradeKind
    why: str = ""
    """Where it did not pass: what was wrong, in a line."""

    def to_data(self) -> dict[str, object]:
        """As JSON has it."""
        return {"passed": self.passed, "kind": self.kind.value, "why": self.why}


async def compiles(
    language: Language | str, program: str, goal: str | None = None, context: Mapping[str, str] | None = None
) -> Judgement:
    """VALIDITY: a judge that shares no code with the engine accepts the program, and that it has the goal's type.

    For ML and C that is ocamlc or cc, which ask of the goal what `compiler_word` says; for the lambda calculi a checker
    written by hand. `context` gives free names with their types; C has none. Raises `CompilerMissing`, and `TestsError`
    for a goal or a context that can't be used.
    """
    language = _of(language, "validity", lambda one: True)
    if not language.has_compiler:
        why = calculi.type_problem(language, program, goal, context)
        return Judgement(passed=why is None, kind=GradeKind.VALIDITY, why=why or "")
    word = await compiler_word(language, program, goal, context)
    return Judgement(passed=word.accepted, kind=GradeKind.VALIDITY, why=word.message)


async def behaves(
    language: Language | str, program: str, tests: Sequence[UnitTest], *, limits: SandboxLimits = RUN_LIMITS
) -> Judgement:
    """BEHAVIOUR of an ML or C program: it passes every test, within the limits of a sandbox.

    Raises `CompilerMissing`. Tests that don't compile against the program are the program's failure, since it may
    lack the name or have another type.
    """
    language = _of(language, "tests", lambda one: one.has_compiler)
    async with working_folder() as folder:
        built = await build(language, folder, program, tests)
        if isinstance(built, Word):
            return Judgement(passed=False, kind=GradeKind.BEHAVIOUR, why=built.message)
        # A folder of its own, so that what it writes can't touch what it is.
        inner = folder / "run"
        inner.mkdir()
        result = await run_sandboxed(["../program"], inner, limits=limits, stdin=f"{built.nonce}\n".encode())
    why = first_failure(result.stdout, built.nonce, tests)
    if why is not None or not result.succeeded:
        why = "; ".join(part for part in (why, _ending(result, limits)) if part)
    return Judgement(passed=why is None, kind=GradeKind.BEHAVIOUR, why=why or "")


def equivalent(
    language: Language | str,
    program: str,
    reference: str,
    goal: str | None = None,
    context: Mapping[str, str] | None = None,
) -> Judgement:
    """EQUIVALENCE of a term of STLC or finite lambda: it has the goal's type, and the reference's normal form.

    Terms are compared after β and η, up to the names of what they bind; in finite lambda `let` is unfolded too, and
    arithmetic is done (`agentkit.synthesis.normal`). `context` gives free names with their types. Nothing of the
    engine takes part. Raises `TestsError` for a reference, goal or context that is none.
    """
    language = _of(language, "equivalence", lambda one: not one.has_compiler)
    why = calculi.difference(language, program, reference, goal, context)
    return Judgement(passed=why is None, kind=GradeKind.EQUIVALENCE, why=why or "")


def _ending(result: SandboxResult, limits: SandboxLimits) -> str:
    """How a run ended that did not end well."""
    match result.end:
        case End.TIME:
            return f"it ran out of time ({limits.wall_s:g} s on the clock, {limits.cpu_s} s of processor)"
        case End.OUTPUT:
            return f"it wrote more than {limits.output_bytes} bytes"
        case End.FILE:
            return f"it wrote a file of more than {limits.file_bytes} bytes"
        case End.SIGNALLED:
            return f"it was ended by {signal.Signals(result.status).name}"
        case End.EXITED:
            said = result.stderr.decode(errors="replace").strip()[:200]
            return "" if not result.status else f"it ended with status {result.status}{f': {said}' if said else ''}"


def _of(language: Language | str, what: str, fits: Callable[[Language], bool]) -> Language:
    """The language, which must be one that can be graded so. Raises `TestsError`."""
    known = known_language(language)
    if known is None or not fits(known):
        names = ", ".join(one.value for one in Language if fits(one))
        raise TestsError(f"{what} can't grade programs in {str(language)!r}; it can in {names}")
    return known
