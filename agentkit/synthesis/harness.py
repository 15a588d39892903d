"""Unit tests as programs: what is compiled around a program, and what its output says of the tests.

A program can't pass by pretending. It is compiled by itself before anything is put around it. The harness reports each
test with a nonce that is drawn for the run, comes through a pipe and is read before any of the program's code runs, so
no text that the program prints counts; neither does its exit status. Macros of a C program, behind which its tests are
compiled, do not reach the comparison, nor what a test expects where that is a literal. What a C program (or
`Obj.magic`) could do is search the memory that it shares with the harness, or define functions in place of the C
library's.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentkit.synthesis.compilers import BUILD_FLAGS, Word, c_command, ml_command, run_compiler
from agentkit.synthesis.errors import TestsError
from agentkit.synthesis.languages import Language

_ML_GUARD: Final = """\
let nonce = input_line stdin
let say number word = Printf.printf "\\n%s %d %s\\n%!" nonce number word
let same left right = compare left right = 0
let check number test =
  say number "begins";
  match test () with
  | true -> say number "holds"
  | false -> say number "differs"
  | exception error -> say number ("raises " ^ String.escaped (Printexc.to_string error))
"""

_C_GUARD: Final = """\
#include <math.h>
#include <stdio.h>
#include <string.h>
static char nonce[80];
__attribute__((constructor(101))) static void listen(void) {{
  if (fgets(nonce, sizeof nonce, stdin)) nonce[strcspn(nonce, "\\n")] = 0;
}}
void begin_{tag}(int number) {{ printf("\\n%s %d begins\\n", nonce, number); fflush(stdout); }}
static void say(int number, int same) {{ printf("\\n%s %d %s", nonce, number, same ? "holds" : "differs"); }}
void whole_{tag}(int number, long long found, long long wanted) {{
  say(number, found == wanted); printf(" %lld\\n", found); fflush(stdout);
}}
void real_{tag}(int number, long double found, long double wanted) {{
  long double scale = fabsl(wanted) > 1 ? fabsl(wanted) : 1;
  say(number, found == wanted || (isnan(found) && isnan(wanted)) || fabsl(found - wanted) <= 1e-6L * scale);
  printf(" %Lg\\n", found); fflush(stdout);
}}
void text_{tag}(int number, const char *found, const char *wanted) {{
  say(number, found && wanted ? !strcmp(found, wanted) : found == wanted);
  printf(" %.60s\\n", found ? found : "NULL"); fflush(stdout);
}}
"""

_C_HEAD: Final = """\
#define main main_{tag}
#include "program.c"
#undef main
{refusals}
void begin_{tag}(int);
void whole_{tag}(int, long long, long long);
void real_{tag}(int, long double, long double);
void text_{tag}(int, const char *, const char *);
int main(void) {{
"""

# The call stands alone: a macro with unbalanced brackets in it can't get at the rest.
_C_TEST: Final = (
    "begin_{tag}({number}); {{ {setup} __auto_type found_{tag} = ({call});"
    " _Generic(found_{tag}, char *: text_{tag}, const char *: text_{tag},"
    " float: real_{tag}, double: real_{tag}, long double: real_{tag}, default: whole_{tag})"
    "({number}, found_{tag}, ({expect})); }}\n"
)
# Words of the above, which as macros of the program would be something else.
_C_WORDS: Final = ("__auto_type", "_Generic", "char", "const", "default", "double", "float", "int", "long", "return")
_C_REFUSALS: Final = "\n".join(f"#ifdef {word}\n#error {word} is a macro\n#endif" for word in _C_WORDS)


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitTest:
    """One expression of a program's language that must give a value, after some text before it.

    ML: `UnitTest(call="sum [1; 2]", expect="3")`, compared by OCaml's structural equality. C: `UnitTest(setup="int
    v[] = {1, 2};", call="sum(v, 2)", expect="3")`; strings are compared as texts, floating values to six digits.
    """

    __test__ = False  # not a class of tests

    call: str
    expect: str
    setup: str = ""

    @classmethod
    def from_data(cls, data: Mapping[str, object]) -> UnitTest:
        """A test from the table of a TOML file. Raises `TestsError`."""
        unknown = set(data) - {"call", "expect", "setup"}
        if unknown or not {"call", "expect"} <= set(data) or not all(isinstance(value, str) for value in data.values()):
            raise TestsError(f"a unit test is a table of texts, call and expect and perhaps setup, not {dict(data)!r}")
        return cls(**{name: str(value) for name, value in data.items()})

    def __str__(self) -> str:
        return f"{f'{self.setup} ' if self.setup else ''}{self.call} = {self.expect}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Built:
    """A program with its tests around it, in the file `program` of the folder."""

    nonce: str
    """To be given on standard input, as a line."""


async def build(language: Language, folder: Path, program: str, tests: Sequence[UnitTest]) -> Built | Word:
    """Compile a program alone, and then with its tests; the compiler's word where it refuses either."""
    if not tests:
        raise TestsError("behaviour needs at least one unit test to be graded by")
    tag = secrets.token_hex(8)
    refused = await (_build_ml if language.is_ml else _build_c)(folder, program, tests, tag)
    return Built(nonce=secrets.token_hex(16)) if refused is None else refused


async def _build_ml(folder: Path, program: str, tests: Sequence[UnitTest], tag: str) -> Word | None:
    (folder / "program.ml").write_text(program, encoding="utf-8")
    word = await run_compiler(ml_command("-c", "program.ml"), folder)
    if not word.accepted:
        return word
    lines = ["open Program\n"]
    for number, test in enumerate(tests):
        same = f"Guard_{tag}.same ({test.setup} {test.call}) ({test.expect})"
        lines.append(f"let () = Guard_{tag}.check {number} (fun () -> {same})\n")
    (folder / f"guard_{tag}.ml").write_text(_ML_GUARD, encoding="utf-8")
    (folder / "tests.ml").write_text("".join(lines), encoding="utf-8")
    # In this order the guard has read the nonce when the program's definitions are evaluated.
    word = await run_compiler(ml_command("-o", "program", f"guard_{tag}.ml", "program.cmo", "tests.ml"), folder)
    return None if word.accepted else Word(accepted=False, message=f"the tests don't fit it: {word.message}")


async def _build_c(folder: Path, program: str, tests: Sequence[UnitTest], tag: str) -> Word | None:
    (folder / "program.c").write_text(program, encoding="utf-8")
    word = await run_compiler(c_command(*BUILD_FLAGS, "-fsyntax-only", "program.c"), folder)
    if not word.accepted:
        return word
    calls = [
        _C_TEST.format(tag=tag, number=number, setup=test.setup, call=test.call, expect=test.expect)
        for number, test in enumerate(tests)
    ]
    (folder / "guard.c").write_text(_C_GUARD.format(tag=tag), encoding="utf-8")
    head = _C_HEAD.format(tag=tag, refusals=_C_REFUSALS)
    (folder / "tests.c").write_text(head + "".join(calls) + "return 0; }\n", encoding="utf-8")
    command = c_command(*BUILD_FLAGS, "-Wno-pedantic", "guard.c", "tests.c", "-o", "program", "-lm")
    word = await run_compiler(command, folder)
    return None if word.accepted else Word(accepted=False, message=f"the tests don't fit it: {word.message}")


def first_failure(output: bytes, nonce: str, tests: Sequence[UnitTest]) -> str | None:
    """Why the tests didn't hold, by what the harness reported; None where each of them held."""
    words: dict[str, list[str]] = {}
    for line in output.decode(errors="replace").splitlines():
        if line.startswith(f"{nonce} "):
            _, number, *word = line.split(" ", 2)
            words.setdefault(number, []).append(word[0] if word else "")
    for place, test in enumerate(tests):
        last = words.get(str(place), [""])[-1]
        if last.split(" ")[0] == "holds":
            continue
        match last.split(" ", 1):
            case ["differs", found]:
                return f"{test} failed: it gave {found}"
            case ["differs"]:
                return f"{test} failed: it gave another value"
            case ["raises", error]:
                return f"{test} failed: it raised {error}"
            case ["begins"]:
                return f"{test} did not end"
            case _:
                return f"{test} was not reached"
    return None
