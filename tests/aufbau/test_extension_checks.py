"""What a fault in the newer notation is told: schemes, scopes, name spaces, given names, %bottom-up."""

from __future__ import annotations

import pytest

from aufbau import Grammar, Oracle, Verdict
from tests.aufbau.test_load_checks import BASE, check_fault, refused

# id, text, line, column, part of the message, part of the hint; `BASE` stands before the text.
S = "S(s) ::= Name[x]\n\n"
E = "S(s) ::= Name[x] Num[e]\n\n"
USE = "S(s) ::= Name[x]\n\nx ∈ Γ\n--- (s)\nΓ(x)\n"

EXTENSIONS = [
    # %given and %bottom-up
    ("given-empty", "%given\n" + USE, 1, 7, "%given needs a name and a type", "%given length"),
    ("given-untyped", "%given a\n" + USE, 1, 8, "%given needs a name and a type", "%given length"),
    ("given-no-space", "%given a:int\n" + USE, 1, 8, "%given needs a name and a type", "%given length"),
    (
        "given-unknown-type",
        "%given a :  itn\n" + USE,
        1,
        13,
        "in the type of a: 'itn' begins no type",
        "Type",
    ),
    ("given-long-type", "%given a : int bool\n" + USE, 1, 16, "in the type of a", "types are spelled by"),
    ("given-top", "%given a : ⊤\n" + USE, 1, 12, "'⊤' begins no type", "Type"),
    ("given-lookup", "%given a : Γ(x)\n" + USE, 1, 12, "begins no type", "Type"),
    ("given-scheme", "%given a : ∀?A\n" + USE, 1, 12, "begins no type", "?A"),
    (
        "given-reserved",
        "%given let : int\n" + USE.replace("Name[x]", "'let' Name[x]"),
        1,
        8,
        "no terminal for names spells let",
        "reserved word",
    ),
    ("given-number", "%given 1 : int\n" + USE, 1, 8, "no terminal for names spells 1", "can't be a name"),
    (
        "given-two-words",
        "%given a b : int\n" + USE,
        1,
        8,
        "no terminal for names spells a b",
        "can't be a name",
    ),
    ("given-unknown-space", "%given type.a : int\n" + USE, 1, 8, "spells type.a", "can't be a name"),
    (
        "given-twice",
        "%given a : int\n%given a : bool\n" + USE,
        2,
        8,
        "%given a is declared twice",
        "remove one",
    ),
    ("bottom-up-empty", "%bottom-up\n" + USE, 1, 11, "%bottom-up needs the name", "%bottom-up Program"),
    ("bottom-up-quoted", "%bottom-up 'S'\n" + USE, 1, 12, "%bottom-up needs the name", "%bottom-up Program"),
    ("bottom-up-unknown", "%bottom-up S Nmu\n" + USE, 1, 14, "%bottom-up names Nmu, which is not", "Num"),
    # Name spaces
    (
        "space-nothing-fills",
        S + "tpye.x ∈ Γ\n--- (s)\n⊤\n",
        4,
        6,
        "the name space tpye, in which nothing",
        "%given tpye",
    ),
    (
        "space-looked-up",
        S + "--- (s)\nΓ(type.x)\n",
        3,
        6,
        "the name space type, in which nothing",
        "Γ[type.x:τ]",
    ),
    (
        "space-near",
        S + "tpye.x ∈ Γ\n--- (s)\nΓ → Γ[type.x:'int'] ⊢ ⊤\n",
        4,
        6,
        "the name space tpye",
        "did you mean type",
    ),
    (
        "space-binding",
        "%given ty.a : int\n" + S + "ty.y ∈ Γ\n--- (s)\n⊤\n",
        4,
        1,
        "the binding y",
        "Symbol[y]",
    ),
    ("space-empty", S + ".x ∈ Γ\n--- (s)\n⊤\n", 3, 1, ".x is no name of a name space", "space.x"),
    (
        "space-twice",
        S + "x ∈ Γ, ty.x ∈ Γ\n--- (s)\nΓ → Γ[ty.x:'int'] ⊢ ⊤\n",
        3,
        8,
        "asks Γ twice about x",
        "split",
    ),
    ("fresh-twice", S + "x ∉ Γ, x ∉ Γ[]\n--- (s)\n⊤\n", 3, 8, "asks Γ twice about x", "split"),
    # Γ[], Γ₀ and Γ'
    (
        "member-inner",
        S + "x ∈ Γ[]\n--- (s)\n⊤\n",
        3,
        1,
        "only freshness can ask the innermost scope",
        "x ∉ Γ[]",
    ),
    (
        "ambient-inner",
        "%ambient 'k'\n" + S + "'k' ∈ Γ[]\n--- (s)\n⊤\n",
        4,
        1,
        "only freshness can ask",
        "x ∉ Γ[]",
    ),
    (
        "initial-member",
        S + "x ∈ Γ₀\n--- (s)\n⊤\n",
        3,
        1,
        "this premise can't be read: x ∈ Γ₀",
        "premises are",
    ),
    (
        "scope-lookup",
        S + "Γ[](x) = ?A\n--- (s)\n⊤\n",
        3,
        1,
        "'Γ[](x)' begins no type",
        "look names up with Γ(x)",
    ),
    (
        "scope-after-name",
        E + "Γ[x:'int'][] ⊢ e : ⊤\n--- (s)\n⊤\n",
        3,
        12,
        "an extension without a type",
        "Γ[x:τ]",
    ),
    ("scope-before-initial", E + "Γ[]₀ ⊢ e : ⊤\n--- (s)\n⊤\n", 3, 4, "expected ⊢ after Γ", "Γ ⊢ e"),
    ("kept-in-premise", E + "Γ' ⊢ e : ⊤\n--- (s)\n⊤\n", 3, 2, "expected ⊢ after Γ", "Γ ⊢ e"),
    ("judged-twice", E + "Γ ⊢ e : ⊤, Γ[] ⊢ e : ⊤\n--- (s)\n⊤\n", 3, 12, "judges e twice", "one premise"),
    ("kept-without-type", E + "--- (s)\nΓ → Γ'\n", 4, 1, "an effect without a type", "⊢ σ"),
    ("kept-untyped-name", E + "--- (s)\nΓ → Γ'[x] ⊢ ⊤\n", 4, 8, "an extension without a type", "Γ[x:τ]"),
    ("scope-in-conclusion", E + "--- (s)\nΓ → Γ[] ⊢ ⊤\n", 4, 7, "an extension without a type", "Γ[x:τ]"),
    ("initial-in-conclusion", E + "--- (s)\nΓ₀ → Γ ⊢ ⊤\n", 4, 1, "begins no type", "Type"),
    # ∀
    ("forall-nothing", S + "--- (s)\nΓ → Γ[x:∀] ⊢ ⊤\n", 4, 10, "a type is missing", "⊤"),
    ("forall-whole", S + "--- (s)\nΓ → Γ[x:∀'int'] ⊢ ⊤\n", 4, 7, "∀ has nothing to generalise", "[x:'int']"),
    (
        "forall-solved",
        E + "Γ ⊢ e : ?A, ?A = 'int'\n--- (s)\nΓ → Γ[x:forall ?A] ⊢ ⊤\n",
        5,
        7,
        "the type of x has no",
        "[x:?A]",
    ),
    ("forall-demanded", E + "Γ ⊢ e : ∀?A\n--- (s)\n⊤\n", 3, 9, "begins no type", "?A"),
    ("forall-concluded", S + "--- (s)\nforall ?A\n", 4, 1, "begins no type", "?A"),
]


@pytest.mark.parametrize(
    ("text", "line", "column", "message", "hint"), [pytest.param(*c[1:], id=c[0]) for c in EXTENSIONS]
)
def test_broken_extensions(text: str, line: int, column: int, message: str, hint: str) -> None:
    check_fault(refused(BASE + "\n" + text), BASE.count("\n") + 1 + line, column, message, hint)


def test_base_of_the_extensions_loads() -> None:
    """What the entries of EXTENSIONS add their fault to."""
    given = Oracle(Grammar.parse(BASE + "\n%given a : int\n%bottom-up S\n" + USE)).start()
    assert given.feed("a").type == "int" and given.feed("b").verdict is Verdict.LOST
    spaced = BASE + S + "ty.x ∉ Γ[]\n--- (s)\nΓ → Γ[ty.x:∀?A] ⊢ ⊤\n"
    assert Oracle(Grammar.parse(spaced)).start().feed("a").verdict is Verdict.SATISFIED
    scoped = BASE + E + "x ∈ Γ, x ∉ Γ[], Γ₀[][x:'int'] ⊢ e : ⊤\n--- (s)\nΓ → Γ' ⊢ ⊤\n"
    assert Oracle(Grammar.parse(scoped)).start(context={"x": "int"}).feed("x").verdict is Verdict.LOST
