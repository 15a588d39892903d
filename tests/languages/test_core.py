"""Core C and core ML: programs against their compilers, and no dead ends, by proof and by machine."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest

from aufbau import Grammar, Oracle, Prefix, Verdict
from aufbau.validation.compilers import CommandCompiler, Outcome, find_compiler
from aufbau.validation.corpora import Language
from aufbau.validation.errors import CompilerMissing
from aufbau.validation.generate import Generator
from tests.aufbau.walks import spoiled

LANGUAGES = {"core_c": Language.C, "core_ml": Language.ML}

# Programs that are satisfied and that the compilers accept.
ACCEPTED = {
    "core_c": [
        "int main(void) { return 0; }",
        "int x; double y = -1.5; char *s = \"hi\\n\"; int *p = 0; char c = '\\'';",
        "int max(int a, int b) { if (a > b) { return a; } else { return b; } return a; }",
        "int fact(int n) { if (n <= 1) { return 1; } return n * fact(n - 1); }",
        "void swap(int *a, int *b) { int t = *a; *a = *b; *b = t; }\n"
        "int main(void) { int x = 1; int y = 2; swap(&x, &y); return x; }",
        "int sum(int n) { int s = 0; for (int i = 0; i < n; i++) { s += i; } return s; }",
        "int length(char *s) { int n = 0; while (*s) { ++s; n++; } return n; }",
        "double half(int n) { return n / 2.0; } int f(double x) { return half((int) x); }",
        "int f(int x) { { int x = 2; x = 3; } return x; }",
        "int f(int **p) { **p = 3; *p = 0; return *(*p + 1) == **p; }",
        "int f(char *p, char *q) { while (p != q && !(p == 0)) { p += 1; } return q - p; }",
        "float mean(float a, float b) { return (a + b) / 2; } // two\n/* and\n * more */ int x;",
        "int *g(int *p) { return (int *) (char *) p; } int f(int n) { return *g(&n) % 7; }",
        "void stop(void) { return; } int main(void) { stop(); }",
        "int f(int a) { if (a) { return 1; } else if (a < 3) { return 2; } else { a = 3; } return a; }",
        "int x = 1; int f(int x) { for (x = 0; x < 3; x -= 1) { int x = 1; x++; } return x; }",
        "int f(int a, int *b) { return a - -1 / *b; }",
    ],
    "core_ml": [
        "1 + 2 * 3 - -4 mod 5",
        "let f (n : int) : int = n + 1 let y : int = f 3",
        "let rec fact (n : int) : int = if n = 0 then 1 else n * fact (n - 1)",
        "let rec sum (l : int list) (acc : int) : int = if l = [] then acc else assert false",
        "let rec f : int -> int = fun n -> if n <= 0 then 0 else f (n - 1)",
        "let compose (f : int -> bool) (g : bool -> int) : int -> int = fun x -> g (f x)",
        "(fun x -> x + 1) 3 :: [1; 2] = []",
        "let l : (int -> int) list = [(fun x -> x); (fun (y : int) -> -y)]",
        "not true && 1 < 2 || [] = [true]",
        "let x : int = let y : int = 2 in y - -1 in x mod 2",
        "let int : int = 1 let list : int list = [int]",
        "let k (a : int) (b : bool) : int = a let h : bool -> int = k 1",
        "if true then fun x -> x else fun y -> y + 1",
        "1 = 2 = true (* a comment *)",
    ],
}
# Programs that the compilers refuse; ¦ stands before the byte at which they are lost.
REFUSED = {
    "core_c": [
        "int f(int x, int x¦) { return x; }",
        "int f(int x) { int *x¦; return 0; }",
        "int g; int g¦(void) { return 1; }",
        "int f(void) { return 1.5 ¦% 2; }",
        "int f(int *p) { return p¦; }",
        "int *f(int p) { return ¦p; }",
        'int f(void) { int x = "a"¦; return x; }',
        "char *f(int *p) { return ¦p; }",
        "int f(int *p) { return p ¦* 2; }",
        "int f(int *p, char *q) { return p == ¦q; }",
        "int f(void) { int *x = &¦x; return 0; }",
        "int f(void) { ¦x = 1; return 0; }",
        "int f(void) { return ¦g(); } int g(void) { return 1; }",
        "int f(int n) { return n; } int g(void) { return f(1¦, 2); }",
        "int f(int n) { return n; } int g(void) { return f(¦); }",
        "void f(void) { return ¦1; }",
        "int f(void) { return¦; }",
        "int f(int x) { return *¦x; }",
        "int f(int x) { return &¦1; }",
        "void f(void) { } int g(void) { return ¦f(); }",
        "int f(double d) { int *p = (int *) ¦d; return 0; }",
        "double f(int *p) { return (double) ¦p; }",
        "int main(void) { } ¦int main(void) { }",
        "int auto¦(void) { return 1; }",
        "int f(int a, int *b) { return a/*b; }",
    ],
    "core_ml": [
        "1 :: ¦true :: []",
        "let x : int = ¦true",
        "let x : int list = [1; ¦true]",
        "if 1 ¦then 2 else 3",
        "let f (x : int) : int = ¦f x",
        "let rec x : int ¦= x + 1",
        "(fun x -> x) 1 ¦2",
        "fun x -> x ¦x",
        "1 = 2 = ¦3",
        "-¦-1",
        "let and¦ : int = 1",
    ],
}
PROGRAMS = [(name, text) for name, texts in ACCEPTED.items() for text in texts]
MISTAKES = [(name, text) for name, texts in REFUSED.items() for text in texts]


@cache
def oracle(name: str) -> Oracle:
    return Oracle(Grammar.load(name))


@cache
def compiler(name: str) -> CommandCompiler:
    try:
        return find_compiler(LANGUAGES[name])
    except CompilerMissing as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize(("name", "text"), PROGRAMS)
def test_what_the_compiler_accepts(name: str, text: str) -> None:
    prefix = oracle(name).start().feed(text)
    assert prefix.verdict is Verdict.SATISFIED, str(prefix.explain())
    assert compiler(name).compile(text.encode()).outcome is Outcome.ACCEPTED


@pytest.mark.parametrize(("name", "text"), MISTAKES)
def test_what_the_compiler_refuses(name: str, text: str) -> None:
    before, mark, after = text.partition("¦")
    prefix = oracle(name).start().feed(before + after)
    assert prefix.lost_at == (len(before.encode()) if mark else None), str(prefix.explain())
    assert prefix.verdict is not Verdict.SATISFIED
    assert compiler(name).compile((before + after).encode()).outcome is not Outcome.ACCEPTED


@pytest.mark.parametrize("name", LANGUAGES)
def test_what_a_comment_may_hold(name: str) -> None:
    """A comment ends for the compiler where it ends for the oracle, whatever character stands in it: what comes after
    the character would not be accepted outside of a comment."""
    comments = ["(* a{}) *)"] if name == "core_ml" else ["// a{}) \n", "/* a{}) */"]
    program = "let x : int = 1" if name == "core_ml" else "int x;"
    held = [*map(chr, range(32)), *"\x7f\"'\\?*/({["]
    texts = [f"{program} {comment.format(one)}" for comment in comments for one in held]
    satisfied = [text for text in texts if oracle(name).start().feed(text).verdict is Verdict.SATISFIED]
    assert len(satisfied) > len(texts) // 3
    for text in satisfied:
        assert compiler(name).compile(text.encode()).outcome is Outcome.ACCEPTED, text


@pytest.mark.parametrize("name", LANGUAGES)
def test_no_dead_ends_by_proof(name: str) -> None:
    report = oracle(name).grammar.check()
    assert report.dead_end_free is True, str(report)


def completed(prefix: Prefix) -> bytes:
    """The text with a continuation that satisfies it, which a live one has."""
    found = prefix.witness()
    assert found.text is not None, f"a dead end: {prefix.text.decode(errors='replace')!r} ({found})"
    return prefix.text + found.text


def every_prefix_can_be_completed(name: str, seeds: range, length: int, compiled: float) -> None:
    """Sampled programs are accepted, and prefixes of theirs, spoiled too, can be completed to accepted ones."""
    generator = Generator(oracle(name), length=length)
    for seed in seeds:
        random = Random(seed)
        text = generator.sample(f"core {seed}")
        assert text is not None
        assert compiler(name).compile(text).outcome is Outcome.ACCEPTED, text.decode()
        prefix = oracle(name).start()
        for byte in spoiled(random, text):
            following = prefix.feed(bytes((byte,)))
            if following.verdict is Verdict.LOST:
                break
            prefix = following
            if random.random() < 0.2:
                whole = completed(prefix)
                if random.random() < compiled:
                    assert compiler(name).compile(whole).outcome is Outcome.ACCEPTED, whole.decode()
        completed(prefix)


@pytest.mark.parametrize("name", LANGUAGES)
def test_every_live_prefix_can_be_completed(name: str) -> None:
    every_prefix_can_be_completed(name, range(8), 15, 0.1)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", LANGUAGES)
def test_every_live_prefix_of_many_programs_can_be_completed(name: str) -> None:
    every_prefix_can_be_completed(name, range(100, 300), 60, 0.05)
