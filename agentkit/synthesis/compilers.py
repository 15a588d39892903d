"""What `ocamlc` and `cc` say of a program, and of its type; built programs for tests. Each run is in a sandbox."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentkit.synthesis.errors import CompilerMissing, SandboxError, TestsError
from agentkit.synthesis.languages import Language
from agentkit.synthesis.ocaml_text import last_expression
from agentkit.synthesis.sandbox import End, SandboxLimits, SandboxResult, run_sandboxed, working_folder
from aufbau.validation.compilers import C_FLAGS, ML_FLAGS

COMPILER_LIMITS: Final = SandboxLimits(
    wall_s=30.0, cpu_s=30, memory_bytes=4 << 30, file_bytes=64 << 20, output_bytes=1 << 20, processes=4096, files=256
)
BUILD_FLAGS: Final = tuple(flag for flag in C_FLAGS if flag != "-fsyntax-only")
_REMEDIES: Final = {
    "ocamlc": "apt install ocaml-nox, or opam install ocaml-base-compiler",
    "cc": "apt install gcc libc6-dev, or xcode-select --install",
}
# ocamlc ends at its first error, which may take several lines; cc and the linker go on, a line for each.
_FIRST_ERROR: Final = re.compile(r"^Error: ((?:.|\n)*)|error: (.*)|^.*(undefined reference to .*)$", re.MULTILINE)
_VALUE: Final = re.compile(r"^(?:val|external) (\( ?\S+ ?\)|[\w']+) :", re.MULTILINE)
_HOLE: Final = re.compile(r"\?(\w+)")
_VARIABLE: Final = r"'\1"
_FUNCTION: Final = re.compile(r"([A-Za-z_]\w*)\s*\(")


@dataclass(frozen=True, kw_only=True, slots=True)
class Word:
    """A compiler's word on a text."""

    accepted: bool
    message: str = ""


def find_program(name: str) -> str:
    """The path of a compiler. Raises `CompilerMissing`, which says what to install."""
    found = shutil.which(name)
    if found is None:
        raise CompilerMissing(name, _REMEDIES[name])
    return found


async def compiler_word(
    language: Language, program: str, goal: str | None = None, context: Mapping[str, str] | None = None
) -> Word:
    """Whether the language's compiler accepts a program, and the type that the goal requires of it.

    In ML that is the type of the last expression or, where the program ends in definitions, of the last value that they
    define; type variables in a goal stand for any type. In C the goal is a prototype, which the program must not
    contradict and whose function it must define. `context` declares names of ML before the program.
    """
    if context and language.is_c:
        raise TestsError("cc can't judge a C program under a context; declare the names in its prefix")
    async with working_folder() as folder:
        if language.is_ml:
            word = await _ml_word(folder, _declared(context or {}) + program, goal)
        else:
            word = await _c_word(folder, program, goal)
    if goal is not None and not word.accepted:
        await check_goal(language, goal)
    return word


async def check_goal(language: Language, goal: str) -> None:
    """Raises `TestsError` for a goal that no program of ML or C could have."""
    async with working_folder() as folder:
        if language.is_ml:
            word = await _ml_check(folder, f"let (_ : {goal}) = assert false")
            if not word.accepted:
                raise TestsError(
                    f"the goal {goal!r} is no type of OCaml: {word.message}; write one as 'int list -> int'"
                )
            return
        prototype_name(goal)
        (folder / "goal.c").write_text(f"{goal.strip().rstrip(';')};\n", encoding="utf-8")
        word = await run_compiler(c_command(*C_FLAGS, "goal.c"), folder)
        # What a header or the program itself would define is not wrong yet.
        if not word.accepted and "unknown type" not in word.message:
            raise TestsError(f"the goal {goal!r} is no prototype of C: {word.message}")


async def run_compiler(command: list[str], folder: Path) -> Word:
    """Run a compiler in a folder. Raises `SandboxError` where it gives no verdict."""
    result = await run_sandboxed(command, folder, limits=COMPILER_LIMITS, drop_user=False)
    if result.end is not End.EXITED:
        raise SandboxError(f"{command[0]} gave no verdict: it was ended ({result.end.value})")
    return Word(accepted=result.succeeded, message=_message(result))


def _message(result: SandboxResult) -> str:
    if result.succeeded:
        return ""
    text = result.stderr.decode(errors="replace")
    found = _FIRST_ERROR.search(text)
    message = next(part for part in found.groups() if part) if found is not None else text
    return " ".join(message.split())[:500] or "it failed without a message"


# OCaml


def ml_command(*arguments: str) -> list[str]:
    """A call of ocamlc that warns of nothing."""
    return [find_program("ocamlc"), *(flag for flag in ML_FLAGS if flag != "-c"), *arguments]


def _declared(context: Mapping[str, str]) -> str:
    """Names with types, as definitions that are never evaluated; the engine's holes are OCaml's type variables."""
    return "".join(f"let {name} : {_HOLE.sub(_VARIABLE, bound)} = assert false\n" for name, bound in context.items())


async def _ml_word(folder: Path, program: str, goal: str | None) -> Word:
    (folder / "program.ml").write_text(program, encoding="utf-8")
    word = await run_compiler(ml_command("-c", "program.ml"), folder)
    if not word.accepted or goal is None:
        return word
    return await _ml_typed(folder, program, goal)


async def _ml_typed(folder: Path, program: str, goal: str) -> Word:
    """Whether what an accepted program ends with has the type."""
    ending = last_expression(program)
    if ending is not None:
        before, expression = ending
        word = await _ml_check(folder, f"{before}\n;; let (_ : {goal}) = (\n{expression}\n)")
        if word.accepted or not expression.startswith("let"):
            return word
    interface = await run_sandboxed(ml_command("-i", "program.ml"), folder, limits=COMPILER_LIMITS, drop_user=False)
    values = _VALUE.findall(interface.stdout.decode(errors="replace"))
    if not values:
        return Word(accepted=False, message=f"the program defines no value, so none of type {goal}")
    return await _ml_check(folder, f"let (_ : {goal}) = Program.({values[-1]})")


async def _ml_check(folder: Path, text: str) -> Word:
    (folder / "check.ml").write_text(text, encoding="utf-8")
    return await run_compiler(ml_command("-c", "check.ml"), folder)


# C


def c_command(*arguments: str) -> list[str]:
    """A call of cc with the flags that the grammar is held against."""
    return [find_program("cc"), *arguments]


def prototype_name(goal: str) -> str:
    """The function that a prototype declares. Raises `TestsError`."""
    found = _FUNCTION.search(goal)
    if found is None:
        raise TestsError(f"the goal {goal!r} is no prototype; write one as in 'int sum(int *values, int count)'")
    return found[1]


async def _c_word(folder: Path, program: str, goal: str | None) -> Word:
    (folder / "program.c").write_text(program, encoding="utf-8")
    word = await run_compiler(c_command(*C_FLAGS, "program.c"), folder)
    if not word.accepted or goal is None:
        return word
    name = prototype_name(goal)
    if name == "main":
        return await run_compiler(c_command(*BUILD_FLAGS, "program.c", "-o", "program", "-lm"), folder)
    prototype = goal.strip().rstrip(";")
    # A function that is declared and not defined is only missed by the linker, so something must refer to it.
    harness = (
        f'#define main program_main\n#include "program.c"\n#undef main\n{prototype};\n'
        f"int main(void) {{ void (*volatile wanted)(void) = (void (*)(void)){name}; return wanted == 0; }}\n"
    )
    (folder / "check.c").write_text(harness, encoding="utf-8")
    return await run_compiler(c_command(*BUILD_FLAGS, "check.c", "-o", "check", "-lm"), folder)
