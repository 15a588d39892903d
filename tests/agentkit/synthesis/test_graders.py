"""What ocamlc, cc and unit tests say of programs, right ones and wrong ones of each kind."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from _pytest.mark.structures import ParameterSet

from agentkit.synthesis import (
    CompilerMissing,
    GradeKind,
    SandboxLimits,
    TestsError,
    UnitTest,
    behaves,
    compiles,
    harness,
)
from agentkit.synthesis.graders import Judgement
from agentkit.synthesis.harness import first_failure
from agentkit.synthesis.ocaml_text import last_expression

LIMITS = SandboxLimits(wall_s=10.0, cpu_s=1, memory_bytes=256 << 20)


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every temporary folder of a test is gone in the end."""
    root = Path(tempfile.mkdtemp(prefix="graders-test-"))
    root.chmod(0o755)
    monkeypatch.setattr(tempfile, "tempdir", str(root))
    yield
    root.rmdir()


def word(language: str, program: str, goal: str | None, context: dict[str, str] | None = None) -> Judgement:
    async def main() -> Judgement:
        return await compiles(language, program, goal, context)

    judgement = anyio.run(main)
    assert judgement.kind is GradeKind.VALIDITY
    assert judgement.passed == (not judgement.why)
    return judgement


def slow(*case: object) -> ParameterSet:
    """A case for the longer suite."""
    return pytest.param(*case, marks=pytest.mark.slow)


SUM = "let rec sum l = match l with [] -> 0 | x :: r -> x + sum r"
C_SUM = "int sum(int *v, int n) { int s = 0; for (int i = 0; i < n; i++) s += v[i]; return s; }"
VALIDITY = [
    # language, program, goal, what the judge objects to
    ("ml", SUM, None, ""),
    ("ml", SUM, "int list -> int", ""),
    ("ml", SUM, "'a list -> int", ""),
    ("ml", SUM, "string list -> int", "int list -> int"),
    ("ml", "let id x = x", "int -> int", ""),
    slow("ml", "let a = 1 let f x = x + a", "int -> int", ""),
    ("ml", "let f x = x + 1 let a = f 1", "int -> int", "expected"),
    ("ml", "let f x = x + 1;; f 3", "int", ""),
    slow("ml", "let f x = x + 1;; f 3 (* ;; *)", "bool", "expected"),
    ("ml", "let f x = x + 1 in f 3", "int", ""),
    ("ml", "let x = let y = 1 in y", "int", ""),
    slow("ml", "let ( |> ) x f = f x", "int -> (int -> bool) -> bool", ""),
    ("ml", "let x = 1 + true", "int", "bool"),
    slow("ml", "1) let x = (2", "int", "Syntax error"),
    ("ml", "type int = A let x = A", "int", "Program.int"),
    ("ml", "exception E", "int", "defines no value"),
    slow("core_ml", "let f (x : int) : int = x", "int -> int", ""),
    slow("c", C_SUM, None, ""),
    ("c", C_SUM, "int sum(int *values, int count);", ""),
    ("c", C_SUM, "double sum(int *values, int count)", "conflicting types"),
    ("c", "int other(void) { return 0; }", "int sum(int *values, int count)", "undefined reference"),
    slow("c", "int sum(int *v, int n);", "int sum(int *values, int count)", "undefined reference"),
    ("c", C_SUM + " int main(void) { return 0; }", "int sum(int *values, int count)", ""),
    ("c", "int main(void) { return 0; }", "int main(void)", ""),
    ("c", "int f(void) { return x; }", None, "undeclared"),
    ("c", "int f(void) { return 0;", None, "expected"),
    slow("core_c", "int f(int a) { return a; }", "int f(int)", ""),
    ("stlc", "λx:A.x", "A -> A", ""),
    ("stlc", "λx:A.x", "A -> B", "A -> A"),
    ("fun", "(x: Int) => x + y", "Int -> Int", "not in scope"),
]


@pytest.mark.parametrize(("language", "program", "goal", "why"), VALIDITY)
def test_validity(language: str, program: str, goal: str | None, why: str) -> None:
    judgement = word(language, program, goal)
    assert judgement.passed == (not why)
    assert why in judgement.why


def test_a_context_declares_names() -> None:
    assert word("ml", "let g x = f x", "int -> bool", {"f": "?A -> bool"}).passed
    assert word("fun", "f(1)", "Bool", {"f": "Int -> Bool"}).passed
    with pytest.raises(TestsError, match="prefix"):
        word("c", "int g(void) { return 0; }", None, {"f": "int"})


@pytest.mark.parametrize(
    ("language", "goal"), [("ml", "intt -> int"), ("ml", "->"), ("c", "int *f"), ("c", "int f(int"), ("stlc", "A ->")]
)
def test_a_goal_that_is_none_is_not_the_programs_fault(language: str, goal: str) -> None:
    program = {"ml": SUM, "c": C_SUM, "stlc": "λx:A.x"}[language]
    with pytest.raises(TestsError, match="goal"):
        word(language, program, goal)


def unit_tests(*pairs: tuple[str, str] | tuple[str, str, str]) -> list[UnitTest]:
    return [UnitTest(call=pair[0], expect=pair[1], setup=pair[2] if len(pair) > 2 else "") for pair in pairs]


ML_TESTS = unit_tests(("sum []", "0"), ("sum [1; 2; 3]", "6"))
C_TESTS = unit_tests(("sum((int[]){1, 2, 3}, 3)", "6"), ("sum(v, 2)", "9", "int v[] = {4, 5};"))
LISTING = "List.iter (fun n -> Printf.printf \"\\n%s %d holds\\n\" (String.make 32 'a') n) [0; 1]"
BEHAVIOUR = [
    # language, program, tests, why it fails
    ("ml", SUM, ML_TESTS, ""),
    ("ml", "let sum = List.fold_left ( + ) 0 let () = print_int (sum [1])", ML_TESTS, ""),
    ("ml", "let sum l = List.length l", ML_TESTS, "sum [1; 2; 3] = 6 failed: it gave another value"),
    ("ml", 'let sum l = failwith "no"', ML_TESTS, 'sum [] = 0 failed: it raised Failure(\\"no\\")'),
    ("ml", 'let sum (l : int list) = ""', ML_TESTS, "the tests don't fit it"),
    slow("ml", "let total l = 0", ML_TESTS, "Unbound value sum"),
    slow("ml", "let sum l = 1 + true", ML_TESTS, "bool"),
    (
        "ml",
        "let rec sum l = if l = [] then 0 else sum l",
        ML_TESTS,
        "it ran out of time",
    ),
    slow("ml", "let rec sum l = 1 + sum l", ML_TESTS, "Stack overflow"),
    ("ml", "let sum l = Array.length (Array.make 1_000_000_000 0)", ML_TESTS, "Out of memory"),
    ("ml", 'let sum l = while true do print_string "much ado" done; 0', ML_TESTS, "it wrote more than"),
    slow("ml", f"let sum l = 0 let () = {LISTING}", ML_TESTS, "sum [1; 2; 3] = 6 failed"),
    ("ml", f"let sum l = 0 let () = {LISTING}; exit 0", ML_TESTS, "sum [] = 0 was not reached"),
    ("ml", "let sum l = 0 let compare _ _ = 0 let ( = ) _ _ = true let exit _ = ()", ML_TESTS, "another value"),
    slow("ml", "let nonce = input_line stdin let sum l = 0", ML_TESTS, "was not reached"),
    ("c", C_SUM, C_TESTS, ""),
    slow("c", "static " + C_SUM + " int main(void) { return 1; }", C_TESTS, ""),
    ("c", C_SUM.replace("s = 0", "s = 1"), C_TESTS, "failed: it gave 7"),
    ("c", "#include <stdlib.h>\n" + C_SUM.replace("return s", "exit(0)"), C_TESTS, "did not end"),
    ("c", C_SUM.replace("return s", "return *(int *)0"), C_TESTS, "SIGSEGV"),
    ("c", C_SUM.replace("return s", "for (;;) ; return s"), C_TESTS, "it ran out of time"),
    ("c", "double sum(int *v, int n) { return 1; }", C_TESTS, "it gave 1"),
    slow("c", "int sum(int v) { return v; }", C_TESTS, "the tests don't fit it"),
    slow("c", C_SUM[:-1], C_TESTS, "expected"),
    (
        "c",
        "#include <unistd.h>\nint sum(int *v, int n) { int k = 0; while (fork() >= 0) k++; return 6; }",
        C_TESTS[:1],
        "",  # not one process more than itself
    ),
    (
        "c",
        "#include <stdlib.h>\nint sum(int *v, int n) { return malloc((size_t)1 << 30) ? 6 : 9; }",
        C_TESTS,
        "it gave 9",
    ),
    (
        "c",
        '#include <stdio.h>\nint sum(int *v, int n) { FILE *f = fopen("big", "w"); if (!f) return 0;'
        " for (;;) { char b[4096] = {0}; fwrite(b, 1, 4096, f); } }",
        C_TESTS,
        "it wrote a file of more than",
    ),
    (
        "c",
        'const char *name(void) { return "ab"; } float half(float x) { return x / 2; }'
        " char up(char c) { return c - 32; }"
        " void swap(int *a, int *b) { int t = *a; *a = *b; *b = t; }",
        unit_tests(
            ("name()", '"ab"'),
            ("half(0.2f)", "0.1"),
            ("up('a')", "'A'"),
            ("(swap(&a, &b), a)", "2", "int a = 1, b = 2;"),
        ),
        "",
    ),
    ("c", "double half(double x) { return x / 2.001; }", unit_tests(("half(1)", "0.5")), "it gave 0.49975"),
]


@pytest.mark.parametrize(("language", "program", "tests", "why"), BEHAVIOUR)
def test_behaviour(language: str, program: str, tests: list[UnitTest], why: str) -> None:
    async def main() -> Judgement:
        # What never ends is given less time, and what ends more than it needs on a busy machine.
        limits = replace(LIMITS, wall_s=1.0) if "time" in why else LIMITS
        return await behaves(language, program, tests, limits=limits)

    judgement = anyio.run(main)
    assert judgement.kind is GradeKind.BEHAVIOUR
    assert (judgement.passed, judgement.passed or why in judgement.why) == (not why, True), judgement.why


@pytest.mark.parametrize(
    "macros",
    [
        "#define SWAP(n, call, expect) (n, expect, expect)\n#define _Generic(x,a,b,c,d,e,w) switch (1) w SWAP\n",
        "#define sum(v, n) 0), (0)); (void)(0, (0\n",
        "#define sum(v, n) 0); return (0\n",
    ],
)
def test_macros_of_a_program_do_not_reach_the_comparison(macros: str) -> None:
    assert not anyio.run(behaves, "c", f"int sum(int *v, int n) {{ return 0; }}\n{macros}", C_TESTS).passed


@pytest.mark.parametrize(("language", "program", "tests"), [("ml", SUM, ML_TESTS), ("c", C_SUM, C_TESTS)])
def test_a_program_is_run_whatever_the_umask(language: str, program: str, tests: list[UnitTest]) -> None:
    before = os.umask(0o077)
    try:
        assert anyio.run(behaves, language, program, tests).passed
    finally:
        os.umask(before)


def test_only_lines_with_the_nonce_count() -> None:
    tests = unit_tests(("f 1", "1"), ("f 2", "2"))
    said = b"\nn0nce 0 begins\n\nn0nce 0 holds\nother 1 holds\n1 holds\nn0nce 1\n"
    assert first_failure(said, "n0nce", tests) == "f 2 = 2 was not reached"
    assert first_failure(said + b"n0nce 1 holds 2\n", "n0nce", tests) is None
    assert first_failure(said + b"n0nce 1 differs 3\n", "n0nce", tests) == "f 2 = 2 failed: it gave 3"


def test_the_nonce_is_another_each_time_and_in_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a program could read, even its own file, says nothing of the nonce."""
    seen: list[str] = []
    texts: list[bytes] = []
    original = harness.build

    async def build(language: object, folder: Path, program: str, tests: list[UnitTest]) -> object:
        built = await original(language, folder, program, tests)  # type: ignore[arg-type]
        assert isinstance(built, harness.Built)
        seen.append(built.nonce)
        texts.extend(path.read_bytes() for path in folder.iterdir())
        return built

    monkeypatch.setattr("agentkit.synthesis.graders.build", build)
    for language, program, tests in (("ml", SUM, ML_TESTS), ("c", C_SUM, C_TESTS)):
        assert anyio.run(behaves, language, program, tests).passed
    assert len(set(seen)) == 2 and len(texts) > 6
    assert not any(nonce.encode() in text for nonce in seen for text in texts)


@pytest.mark.parametrize(
    "data",
    [{"call": "f 1"}, {"call": "f 1", "expect": 1}, {"call": "f 1", "expect": "1", "other": "x"}],
)
def test_unit_tests_of_other_forms_are_refused(data: dict[str, object]) -> None:
    with pytest.raises(TestsError, match="call and expect"):
        UnitTest.from_data(data)


def test_unit_tests_are_data() -> None:
    test = UnitTest.from_data({"call": "f 1", "expect": "2"})
    assert test == UnitTest(call="f 1", expect="2") != replace(test, setup="int a;")
    with pytest.raises(TestsError, match="at least one"):
        anyio.run(behaves, "ml", SUM, [])
    with pytest.raises(TestsError, match="ml, c, core_ml, core_c"):
        anyio.run(behaves, "stlc", "λx:A.x", [test])


@pytest.mark.parametrize(("language", "program"), [("ml", "ocamlc"), ("c", "cc")])
def test_a_missing_compiler_says_what_to_install(language: str, program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(CompilerMissing, match=f"{program} is not on PATH.*install"):
        word(language, "", None)


ENDINGS = [
    ("1 + 1", ("", "1 + 1")),
    ("let x = 1", None),
    ("let x = 1;;", None),
    ("let x = 1;; x", ("let x = 1;;", "x")),
    ("let x = ';' let y = \";;\";; (* ;; *) f x ;;", ("let x = ';' let y = \";;\";;", "f x")),
    ("let x = 1 (* ;; 2 *)", None),
    ("let s = {|;; 1|}", None),
    ("(* (* ;; *) *) 3", ("", "3")),
    ("type t = A;; A", ("type t = A;;", "A")),
    ("", None),
]


@pytest.mark.parametrize(("program", "wanted"), ENDINGS)
def test_the_last_expression_of_a_program(program: str, wanted: tuple[str, str] | None) -> None:
    assert last_expression(program) == wanted
