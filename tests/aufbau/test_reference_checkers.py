"""The oracle against hand-written checkers of the same languages, and the search for dead ends in `fun`."""

from __future__ import annotations

import heapq
from itertools import count
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aufbau import Grammar, Oracle, Prefix, Verdict
from tests.aufbau.checkers import (
    Fun,
    Inference,
    Scope,
    Stlc,
    Type,
    fun_program,
    inference_program,
    judge,
    mutated,
    shown,
    some_type,
    stlc_program,
)

FUN, STLC = Oracle(Grammar.load("fun")), Oracle(Grammar.load("stlc"))
_UNANNOTATED = (Path(__file__).parent / "cases" / "inference.txt").read_text(encoding="utf-8")
INFERENCE = Oracle(Grammar.parse(_UNANNOTATED.partition("\n====\n")[0] + "\n"))
FUN_SCOPE: Scope = {"n": "Int", "is": ("Int", "Bool"), "twice": (("Int", "Int"), ("Int", "Int"))}
INFERENCE_SCOPE: Scope = {"n": "int", "is": ("int", "bool"), "twice": (("int", "int"), ("int", "int"))}
STLC_SCOPE: Scope = {"a": "A", "b": "B", "f": ("A", "B"), "g": (("A", "B"), "C"), "id": ("A", "A")}
quick = settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
# Seeds, not `st.randoms`: the generators draw some hundred numbers, of which hypothesis would make most zero.
randoms = st.integers(0, 2**48).map(Random)


def begun(oracle: Oracle, scope: Scope, goal: Type | None = None) -> Prefix:
    """The empty prefix under a scope."""
    context = {name: shown(bound) for name, bound in scope.items()}
    return oracle.start(context=context, goal=None if goal is None else shown(goal))


def agree(oracle: Oracle, language: type[Fun | Inference | Stlc], text: str, scope: Scope) -> None:
    """The oracle is satisfied exactly when the checker accepts, with the same type, and no prefix is lost then."""
    wanted = judge(language, text, scope)
    prefix = begun(oracle, scope).feed(text)
    if wanted is None:
        assert prefix.verdict is not Verdict.SATISFIED, f"the checker rejects it: {text}"
        return
    assert prefix.verdict is Verdict.SATISFIED, f"the checker accepts it: {prefix.explain()}"
    assert prefix.types == (wanted,)
    demanded = begun(oracle, scope)
    demanded = oracle.start(context=demanded.context, goal=wanted).feed(text)
    assert demanded.verdict is Verdict.SATISFIED, f"lost under its own type as goal: {demanded.explain()}"
    step = begun(oracle, scope)
    for byte in text.encode():
        step = step.feed(bytes((byte,)))
        assert step.verdict is not Verdict.LOST, str(step.explain())


@quick
@given(random=randoms)
def test_fun_accepts_well_typed_programs(random: Random) -> None:
    wanted = some_type(random, ("Int", "Float", "Bool"), 2)
    text = fun_program(random, wanted, FUN_SCOPE, 2)[:200]
    if judge(Fun, text, FUN_SCOPE) is None:  # cut off
        text = "1"
    agree(FUN, Fun, text, FUN_SCOPE)


@quick
@given(random=randoms)
def test_fun_judges_mutations(random: Random) -> None:
    text = fun_program(random, some_type(random, ("Int", "Bool"), 1), FUN_SCOPE, 2)
    agree(FUN, Fun, mutated(random, Fun, text)[:250], FUN_SCOPE)


@quick
@given(
    words=st.lists(
        st.sampled_from(
            [
                "(",
                ")",
                "n",
                "is",
                "twice",
                "1",
                "2.5",
                "true",
                "+",
                "*.",
                ":",
                "=>",
                "->",
                "Int",
                "Bool",
                "let",
                "x",
                "=",
                ";",
                "is(",
                "n)",
                "(x:Int)=>",
            ]
        )
    )
)
def test_fun_judges_random_words(words: list[str]) -> None:
    agree(FUN, Fun, " ".join(words[:20]), FUN_SCOPE)


@quick
@given(random=randoms)
def test_stlc_judges_generated_programs(random: Random) -> None:
    wanted = some_type(random, ("A", "B", "C"), 2)
    agree(STLC, Stlc, stlc_program(random, wanted, STLC_SCOPE, 4)[:250], STLC_SCOPE)


@quick
@given(random=randoms)
def test_stlc_judges_mutations(random: Random) -> None:
    text = stlc_program(random, some_type(random, ("A", "B", "C"), 2), STLC_SCOPE, 3)
    agree(STLC, Stlc, mutated(random, Stlc, text)[:250], STLC_SCOPE)


@quick
@given(
    words=st.lists(
        st.sampled_from(["λx:A.", "\\y:A->B.", "(", ")", "a", "b", "f", "g", "id", "x", "y", "f a", ":", "."])
    )
)
def test_stlc_judges_random_words(words: list[str]) -> None:
    agree(STLC, Stlc, " ".join(words[:20]), STLC_SCOPE)


@quick
@given(random=randoms)
def test_inference_judges_random_terms(random: Random) -> None:
    """Γ with holes: the types of unannotated lambdas, found by another unification than the engine's."""
    agree(INFERENCE, Inference, inference_program(random, ("n", "is", "twice"), 4)[:160], INFERENCE_SCOPE)


# Dead ends: every type of `fun` has a closed term, so Theorem 2.6 promises a completion for every live prefix

# What the search pays for a lexeme: a closed term needs literals, lambdas and what closes them; the rest is dear.
_FREE = frozenset([")", ";", ":", "=", "=>", "0", ".5", "0.5", "true", "Int", "x"])
_SAMPLES = ("0", "0.5", ".5", "5", "x")


def continuations(prefix: Prefix) -> set[str]:
    """Texts that may follow: whole lexemes, or the rest of one that has begun."""
    done = prefix.text.decode()
    found: set[str] = set()
    for expected in prefix.expected():
        for text in _SAMPLES if expected.text.startswith("[") else (expected.text,):
            begun = max(n for n in range(len(text)) if done.endswith(text[:n]))
            found |= {text[begun:], text, f" {text}" if done[-1:].isalnum() and text[0].isalnum() else text}
    return found


def price(done: str, text: str) -> int:
    """What a step of the search costs; to lengthen a name or a number leads nowhere new."""
    longer = done[-1:].isalnum() and text[0].isalnum() and text in _SAMPLES
    return 30 * longer + (0 if text.strip() in _FREE else 3 if text in ("(", "Bool", "Float") else 15)


def completion(prefix: Prefix, budget: int = 800) -> str | None:
    """A completion found by best-first search over lexemes, or None."""
    order = count()
    queue: list[tuple[int, int, Prefix, str]] = [(0, 0, prefix, "")]
    while queue and budget > 0:
        cost, _, current, added = heapq.heappop(queue)
        budget -= 1
        if current.verdict is Verdict.SATISFIED:
            return added
        tried = [(text, current.feed(text)) for text in sorted(continuations(current))]
        open_ = [(text, after) for text, after in tried if after.verdict is not Verdict.LOST]
        forced = len([text for text, _ in open_ if text != "("]) == 1
        for text, after in open_:
            step = 0 if forced and text not in ("(", "let") else price(current.text.decode(), text)
            heapq.heappush(queue, (cost + step, -next(order), after, added + text))
    return None


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(random=randoms)
def test_every_live_prefix_of_fun_has_a_completion(random: Random) -> None:
    scope = dict(random.sample(sorted(FUN_SCOPE.items()), random.randint(0, 3)))
    text = fun_program(random, some_type(random, ("Int", "Float", "Bool"), 2), scope, 2)
    if random.random() < 0.5:
        text = mutated(random, Fun, text)
    data = text.encode()[: random.randint(0, 60)]
    prefix = begun(FUN, scope).feed(data)
    if prefix.verdict is Verdict.LOST:
        assert prefix.lost_at is not None
        prefix = begun(FUN, scope).feed(data[: prefix.lost_at])
    assert completion(prefix) is not None, f"live without a completion: {prefix.text.decode()!r} under {scope}"


@pytest.mark.parametrize(
    "text",
    [
        "let x : Int = f",
        "let x : Int = (f",
        "let x : Bool = h(1)",
        "let x : Int = ((y : Bool) => f)(true",
        "let g : (Int -> Bool) -> Int = (k : ",
        "f(",
        "1 +",
        "let f : Int -> Int = f",
    ],
)
def test_left_recursion_hides_no_dead_end(text: str) -> None:
    """Cases in which a weakened demand would see the contradiction only after the argument."""
    scope: Scope = {"f": ("Int", "Bool"), "h": ("Int", ("Bool", "Int")), "top": (("Int", "Int"), "Int")}
    prefix = begun(FUN, scope).feed(text)
    kept = prefix if prefix.lost_at is None else begun(FUN, scope).feed(text.encode()[: prefix.lost_at])
    assert completion(kept) is not None, kept.text
