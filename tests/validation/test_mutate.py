"""Mutations: what each does to programs of two languages, and laws that hold of all."""

from __future__ import annotations

import pytest

from aufbau import Grammar, Oracle
from aufbau.validation import Generator, Language, Mutation, Mutator
from aufbau.validation.mutate import Edit, edited
from tests.validation.subjects import oracle

ML, C = Language.ML, Language.C
# language, program, mutation, some mutants that it must give
MUTANTS = [
    (ML, "let x : int = 1 let y : int = x + x", Mutation.RENAMED, ["let x : int = 1 let y : int = y + x"]),
    (ML, "let x : int = 1 let y : int = x", Mutation.UNBOUND, ["let x : int = 1 let y : int = xx"]),
    (ML, "let x : int = 1 let y : bool = true", Mutation.LITERAL, ["let x : int = true let y : bool = true"]),
    (ML, "let x : bool = 1 < 2 + 3", Mutation.SWAPPED, ["let x : bool = 2 + 3 < 1", "let x : bool = 1 < 3 + 2"]),
    (ML, "let x : int = 1 + 2", Mutation.DROPPED, ["let x : int = 1"]),
    (ML, "let rec f (x : int) : int -> int = f x let y : int = f 1 2", Mutation.DROPPED,
     ["let rec f (x : int) : int -> int = f x let y : int = f 1"]),
    (ML, "let rec f (x : int) : int = f x", Mutation.ADDED, ["let rec f (x : int) : int = f x x"]),
    (ML, "let y : bool = true let rec f (x : int) : int = f x", Mutation.RESULT,
     ["let y : bool = true let rec f (x : int) : int = true"]),
    (ML, "let x : int = 1 let y : int = 2", Mutation.SHADOWED, ["let x : int = 1 let x : int = 2"]),
    (ML, "let x : int = 1 let y : int = x let z : int = 3", Mutation.EARLY,
     ["let x : int = 1 let y : int = z let z : int = 3"]),
    (C, "int f(int a) { int b = 1; return a; }", Mutation.RENAMED, ["int f(int a) { int b = 1; return f; }"]),
    (C, "int f(int a) { int b = 1; return a; }", Mutation.SHADOWED, ["int f(int a) { int a = 1; return a; }"]),
    (C, "int f(int a) { int b = a; int c = 1; return b; }", Mutation.EARLY,
     ["int f(int a) { int b = c; int c = 1; return b; }"]),
    (C, "int f(int a) { int *b = &a; return 1; }", Mutation.RESULT, ["int f(int a) { int *b = &a; return &a; }"]),
]  # fmt: skip


def all_of(subject: Oracle, text: str, mutation: Mutation) -> set[str]:
    """All mutants of one kind."""
    found = Mutator(subject).mutants(text.encode(), count=500, seed="0")
    return {mutant.text.decode() for mutant in found if mutant.mutation is mutation}


@pytest.mark.parametrize(("language", "text", "mutation", "wanted"), MUTANTS)
def test_mutants(language: Language, text: str, mutation: Mutation, wanted: list[str]) -> None:
    found = all_of(oracle(language), text, mutation)
    assert set(wanted) <= found, sorted(found)


def test_every_mutation_has_a_case() -> None:
    assert {mutation for _, _, mutation, _ in MUTANTS} == set(Mutation)


@pytest.mark.parametrize("language", Language)
def test_mutants_differ_and_change_where_they_say(language: Language) -> None:
    mutator = Mutator(oracle(language))
    for seed in range(6):
        text = Generator(oracle(language), length=30).sample(f"m{seed}")
        assert text is not None
        found = mutator.mutants(text, count=6, seed="1")
        assert [m.text for m in found] == [m.text for m in mutator.mutants(text, count=6, seed="1")]
        assert len({m.text for m in found} | {text}) == len(found) + 1
        for mutant in found:
            assert mutant.text[: mutant.at] == text[: mutant.at]


def test_kinds_are_spread() -> None:
    text = b"let x : int = 1 + 2 let y : bool = x < 2 let z : int = if y then x else 3"
    found = Mutator(oracle(Language.ML)).mutants(text, count=8, seed="2")
    assert len({mutant.mutation for mutant in found}) == 8


def test_nothing_comes_of_what_is_not_satisfied() -> None:
    assert Mutator(oracle(Language.ML)).mutants(b"let x : int = ", count=3, seed="0") == []


def test_types_are_no_expressions() -> None:
    found = all_of(oracle(Language.ML), "let x : int = 1", Mutation.LITERAL)
    assert found and all(text.startswith("let x : int = ") for text in found)


def test_a_grammar_without_rules_only_moves_what_it_sees() -> None:
    plain = Oracle(Grammar.parse("Item ::= /[a-z]/\nAll ::= Item | All ',' Item"))
    assert all_of(plain, "a, b", Mutation.DROPPED) == {"a"}
    assert all_of(plain, "a, b", Mutation.RENAMED) == set()


# text, edits, result
EDITS: list[tuple[str, list[Edit], str]] = [
    ("f x", [(2, 3, b"yy")], "f yy"),
    ("f(x)", [(2, 3, b"y")], "f(y)"),
    ("a+b", [(0, 1, b"x1"), (2, 3, b"a")], "x1 + a"),
    ("ab", [(1, 1, b"c")], "a c b"),
    ("abc", [(1, 2, b"")], "ac"),
]


@pytest.mark.parametrize(("text", "edits", "result"), EDITS)
def test_edits(text: str, edits: list[Edit], result: str) -> None:
    assert edited(text.encode(), edits).decode() == result
