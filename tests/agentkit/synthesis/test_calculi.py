"""The handwritten checkers of STLC and finite lambda: they say what the engine says, and equality is βη-equality."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentkit.synthesis import Language, TestsError, equivalent
from agentkit.synthesis.calculi import type_problem
from agentkit.synthesis.errors import FuelSpent, TermError
from agentkit.synthesis.fun import read_fun, read_fun_type
from agentkit.synthesis.languages import oracle_of
from agentkit.synthesis.normal import normal_form
from agentkit.synthesis.stlc import read_stlc, read_stlc_type
from agentkit.synthesis.terms import Apply, Arrow, Bound, Lambda, Term, render_type, type_of
from aufbau import Verdict
from tests.agentkit.synthesis.lambda_reducer import reduced, shifted
from tests.aufbau.checkers import Fun, Scope, Stlc, Type, fun_program, mutated, shown, some_type, stlc_program

SCOPES: dict[Language, Scope] = {
    Language.STLC: {"a": "A", "b": "B", "f": ("A", "B"), "g": (("A", "B"), "C"), "id": ("A", "A")},
    Language.FUN: {"n": "Int", "is": ("Int", "Bool"), "twice": (("Int", "Int"), ("Int", "Int"))},
}
# Types with a few inhabitants each, so that random terms are sometimes equal.
FEW: tuple[Type, ...] = (
    ("A", ("A", "A")),
    (("A", "A"), ("A", "A")),
    (("A", ("A", "A")), ("A", "A")),
    ((("A", "A"), "A"), ("A", "A")),
)
quick = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
# Seeds, not `st.randoms`: the generators draw some hundred numbers, of which hypothesis would make most zero.
randoms = st.integers(0, 2**48).map(Random)


def some_text(language: Language, random: Random) -> str:
    """A random text: well typed, or nearly so."""
    is_stlc = language is Language.STLC
    wanted = some_type(random, ("A", "B", "C") if is_stlc else ("Int", "Float", "Bool"), 2)
    text = (stlc_program if is_stlc else fun_program)(random, wanted, SCOPES[language], 4)
    return text if random.random() < 0.5 else mutated(random, Stlc if is_stlc else Fun, text)


def checked_type(language: Language, text: str) -> str | None:
    """The type that the checker under test finds."""
    read, read_type = (read_stlc, read_stlc_type) if language is Language.STLC else (read_fun, read_fun_type)
    try:
        return render_type(type_of(read(text), {name: read_type(shown(b)) for name, b in SCOPES[language].items()}))
    except TermError:
        return None


@pytest.mark.parametrize("language", list(SCOPES), ids=str)
@quick
@given(randoms)
def test_the_engine_is_satisfied_exactly_where_the_checker_accepts(language: Language, random: Random) -> None:
    text = some_text(language, random)
    context = {name: shown(bound) for name, bound in SCOPES[language].items()}
    found = checked_type(language, text)
    prefix = oracle_of(language.value).start(context=context).feed(text)
    assert (prefix.verdict is Verdict.SATISFIED) == (found is not None), text
    if found is not None:
        assert prefix.types == (found,)
        assert type_problem(language, text, found, context) is None
        assert type_problem(language, text, f"({found}) -> ({found})", context) is not None


def closed_term(random: Random, wanted: Type) -> Term:
    """A closed term of a type that has some, perhaps with a redex or an η-expansion around it."""
    bound = read_stlc_type(shown(wanted))
    while checked_type(Language.STLC, text := stlc_program(random, wanted, {}, 7)) != shown(wanted):
        pass
    term = read_stlc(text)
    assert isinstance(bound, Arrow)
    if random.random() < 0.5:
        term = Apply(Lambda(bound, Bound(0)), term)
    if random.random() < 0.5:
        term = Lambda(bound.left, Apply(shifted(term, 1), Bound(0)))
    return term


@quick
@given(randoms)
def test_equal_normal_forms_are_equality_under_beta_and_eta(random: Random) -> None:
    wanted = random.choice(FEW)
    bound = read_stlc_type(shown(wanted))
    left, right = closed_term(random, wanted), closed_term(random, wanted)
    assert (normal_form(left, bound, {}) == normal_form(right, bound, {})) == (reduced(left) == reduced(right))
    assert normal_form(left, bound, {}) == normal_form(reduced(left), bound, {})


def number(random: Random, depth: int) -> tuple[str, str]:
    """An expression of x and y as finite lambda writes it, and the same shuffled by the laws of a ring."""
    if not depth or random.random() < 0.2:
        leaf = random.choice(("x", "y", str(random.randrange(4))))
        return leaf, leaf
    (left, other_left), (right, other_right) = number(random, depth - 1), number(random, depth - 1)
    sign = random.choice("+-*")
    if sign == "-":
        return f"({left} - {right})", f"(0 - {other_right} + {other_left})"
    if sign == "+":
        return f"({left} + {right})", f"({other_right} + {other_left})"
    return f"({left} * {right})", f"({other_right} * ({other_left} - 1) + {other_right})"


@quick
@given(randoms)
def test_integers_are_compared_as_polynomials(random: Random) -> None:
    """Equal up to the laws of a ring; and what has one normal form has the same values."""
    head = "(x: Int) => (y: Int) => "
    (one, same), (other, _) = number(random, 3), number(random, 3)
    assert equivalent("fun", head + same, head + one).passed
    points = [{"x": x, "y": y} for x in (-3, 0, 2, 5, 11) for y in (-2, 0, 1, 7, 13)]
    differ = any(eval(one, {}, point) != eval(other, {}, point) for point in points)
    assert equivalent("fun", head + other, head + one).passed == (not differ)


CASES = [
    # language, program, reference, context, is it equivalent?
    ("stlc", "λx:A.x", "λy:A.y", {}, True),
    ("stlc", r"\x:A.x", "λy:A.y", {}, True),
    ("stlc", "λx:A.λx:A.x", "λx:A.λy:A.y", {}, True),
    ("stlc", "λx:A.λy:A.x", "λx:A.λy:A.y", {}, False),
    ("stlc", "λf:A->B.f", "λf:A → B.λx:A.f x", {}, True),
    ("stlc", "(λf:A->A.λx:A.f (f x)) λx:A.s x", "λx:A.s (s x)", {"s": "A -> A"}, True),
    ("stlc", "f", "λx:A.f x", {"f": "A -> B"}, True),
    ("stlc", "g f", "g λx:A.f x", {"f": "A -> B", "g": "(A -> B) -> C"}, True),
    ("stlc", "λx:A.x x", "λx:A.x", {}, False),
    ("stlc", "λx:B.x", "λx:A.x", {}, False),
    ("stlc", "λx:A.", "λx:A.x", {}, False),
    ("fun", "let a: Int = 2; a * 3", "6", {}, True),
    ("fun", "7 / 2", "3", {}, True),
    ("fun", "(0 - 7) / 2", "0 - 3", {}, True),
    ("fun", "1 / 0", "1 / 0", {}, True),
    ("fun", "1 / 0", "2 / 0", {}, False),
    ("fun", "1.5 +. 0.5", "2.00", {}, True),
    ("fun", "(x: Float) => x +. 1.0", "(x: Float) => 1.0 +. x", {}, False),
    ("fun", "(f: Int -> Int) => f(1 + 1)", "(g: Int -> Int) => g(2)", {}, True),
    ("fun", "(x: Int) => (x + 1) * (x - 1)", "(x: Int) => x * x - 1", {}, True),
    ("fun", "(x: Int) => f(x + x)", "(x: Int) => f(2 * x)", {"f": "Int -> Bool"}, True),
    ("fun", "(b: Bool) => true", "(b: Bool) => b", {}, False),
    ("fun", "(x: Int) => x", "(x: Bool) => x", {}, False),
    ("fun", "(x: Int) => let x: Int = x + 1; x", "(x: Int) => 1 + x", {}, True),
]


@pytest.mark.parametrize(("language", "program", "reference", "context", "wanted"), CASES)
def test_equivalence(language: str, program: str, reference: str, context: dict[str, str], wanted: bool) -> None:
    judgement = equivalent(language, program, reference, context=context)
    assert judgement.passed == wanted
    assert bool(judgement.why) != wanted


@pytest.mark.parametrize(
    ("reference", "goal", "message"),
    [
        ("λx:A.y", None, "y is not in scope"),
        ("λx:A.x", "A -> B", "the reference has type A -> A, but the goal is A -> B"),
        ("λx:A.x", "A ->", "no type"),
    ],
)
def test_a_reference_that_grades_nothing_is_refused(reference: str, goal: str | None, message: str) -> None:
    with pytest.raises(TestsError, match=message):
        equivalent("stlc", "λx:A.x", reference, goal)


def test_other_languages_are_refused() -> None:
    with pytest.raises(TestsError, match="it can in stlc, fun"):
        equivalent("ml", "1", "1")


def squared(times: int) -> str:
    """A term of STLC that applies s to its argument 2 ** 2 ** times times."""
    numeral = "λf:A->A.λx:A.f (f x)"
    for _ in range(times):
        numeral = f"(λf:(A->A)->A->A.λx:A->A.f (f x)) ({numeral})"
    return f"({numeral}) s"


def test_a_term_that_takes_too_long_is_said_to() -> None:
    scope = {"s": read_stlc_type("A -> A")}
    term = read_stlc(squared(1))
    assert normal_form(term, type_of(term, scope), scope) == "λ.(s (s (s (s #0))))"
    with pytest.raises(FuelSpent, match="budget"):
        normal_form(term, type_of(term, scope), scope, fuel=20)
    large = read_stlc(squared(4))
    with pytest.raises(FuelSpent):
        normal_form(large, type_of(large, scope), scope)


@pytest.mark.parametrize("text", ["(" * 5000 + "x" + ")" * 5000, "λx:A." * 5000 + "x", "x" + " x" * 5000])
def test_a_term_nested_too_deeply_is_said_to_be(text: str) -> None:
    assert "too deeply" in equivalent("stlc", text, "λx:A.x").why
