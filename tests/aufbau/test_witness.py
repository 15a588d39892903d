"""Witnesses: cases with their texts, shortness against exhaustive search, proofs that there is none, and the laws."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aufbau import Grammar, Oracle, Outcome, Prefix, Verdict
from tests.aufbau.checkers import Fun, Scope, fun_program, mutated, shown, some_type
from tests.aufbau.walks import walk

FUN, STLC = Oracle(Grammar.load("fun")), Oracle(Grammar.load("stlc"))
TOOL = Oracle(Grammar.load("dialects/grammars/tool.auf"))
SCOPE: Scope = {"n": "Int", "is": ("Int", "Bool"), "twice": (("Int", "Int"), ("Int", "Int"))}
KEYS = {"open": "int", "some call": "int", "some docs": "int"}
quick = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
randoms = st.integers(0, 2**48).map(Random)


def fun(text: str | bytes, scope: Scope = SCOPE) -> Prefix:
    """A prefix of `fun` under a scope."""
    return FUN.start(context={name: shown(bound) for name, bound in scope.items()}).feed(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "0"),
        ("1", ""),
        ("1 +", "0"),
        ("1.", "0"),
        ("let", " a:Int=0;a"),
        ("let x : Fl", "oat=0.0;n"),
        ("((((", "n))))"),
        ("is(", "0)"),
        ("tr", "ue"),
        ("let b : Bool = ", "is(0);b"),
        ("let f : Int = ((foo : Bool -> ", "Int)=>0)((a:Bool)=>0);f"),
        ("let f : Int -> Int = (", "n:Int)=>n;f"),
    ],
)
def test_a_continuation_of_fun(text: str, wanted: str) -> None:
    found = fun(text).witness()
    assert found.outcome is Outcome.FOUND and found.text is not None
    assert fun(text).feed(found.text).verdict is Verdict.SATISFIED
    assert fun(text).feed(wanted).verdict is Verdict.SATISFIED
    assert len(found.text) <= len(wanted), found


@pytest.mark.parametrize(
    "text",
    [
        "let a : Int -> Int -> Bool -> (Float -> Int) -> Bool -> Int = ",
        "let a : ((Int -> Bool) -> Float) -> Bool -> (Int -> Int) = (",
        "let a : Float = ((b : Int -> (Bool -> Float -> Int) -> Bool) => 1.5)(",
    ],
)
def test_large_types_need_no_luck(text: str) -> None:
    found = fun(text).witness()
    assert found.text is not None and found.steps < 5_000, found
    assert fun(text).feed(found.text).verdict is Verdict.SATISFIED


@pytest.mark.parametrize("grammar", [FUN, STLC, TOOL], ids=["fun", "stlc", "tool"])
def test_no_shorter_continuation_exists(grammar: Oracle) -> None:
    """Against all continuations of up to three bytes, over the bytes that can follow."""
    start = grammar.start(
        context=None if grammar is not FUN else {"f": "Int -> Bool"}, ambient=KEYS if grammar is TOOL else None
    )
    for seed in range(25):
        random = Random(seed)
        data = walk(random, start, random.randint(0, 9))
        prefix = start.feed(data[: random.randint(0, len(data))])
        found = prefix.witness()
        known = len(found.text) if found.text is not None and found.shortest else None
        level, depth = [prefix], 0
        while depth < (3 if known is None else min(known, 3)) and len(level) < 300:
            assert all(p.verdict is not Verdict.SATISFIED for p in level), (prefix, found)
            if found.outcome is Outcome.NONE and not level:
                break
            level = [p.feed(bytes((byte,))) for p in level for byte in p.next_bytes() if byte < 0x80]
            depth += 1


@quick
@given(random=randoms)
def test_every_live_prefix_of_fun_has_a_witness(random: Random) -> None:
    """Theorem 2.6 for `fun`, by machine."""
    scope = dict(random.sample(sorted(SCOPE.items()), random.randint(0, 3)))
    if random.random() < 0.5:
        text = fun_program(random, some_type(random, ("Int", "Float", "Bool"), 2), scope, 2)
        data = (mutated(random, Fun, text) if random.random() < 0.5 else text).encode()
    else:
        data = walk(random, fun("", scope), random.randint(1, 25))
    prefix = fun(data[: random.randint(0, 80)], scope)
    if prefix.lost_at is not None:
        prefix = fun(prefix.text[: prefix.lost_at], scope)
    found = prefix.witness()
    assert found.text is not None, f"live without a witness: {prefix.text.decode()!r} under {scope}: {found}"
    assert prefix.feed(found.text).verdict is Verdict.SATISFIED


@quick
@given(random=randoms)
def test_no_continuation_where_none_is_proved_to_be(random: Random) -> None:
    """Prefixes of satisfied texts have witnesses, so no proof may say that they have none."""
    start = STLC.start(context={"x": "A", "foo": "A -> B", "f": "(A -> B) -> A"})
    data = walk(random, start, random.randint(1, 15))
    end = start.feed(data)
    if end.verdict is not Verdict.SATISFIED:
        finish = end.witness(max_steps=600)
        data += finish.text or b""
        if finish.text is None:
            return
    assert start.feed(data[: random.randint(0, len(data))]).witness(max_steps=600).outcome is not Outcome.NONE


@pytest.mark.parametrize("text", ["λf:A->B.f(", "λf:(A->B)->C.f(", "λf:A->A.f(", "λf:A->B.λg:B->C.g(", r"(\x:A.x)("])
def test_stlc_dead_ends_are_refuted(text: str) -> None:
    prefix = STLC.start().feed(text)
    found = prefix.witness()
    assert prefix.verdict is Verdict.LIVE
    assert found.outcome is Outcome.NONE and "model" in found.reason, found


@pytest.mark.parametrize(
    ("text", "wanted"), [("λf:A->B.λx:A.f(", b"x)"), ("λf:A->B.λg:B->C.λx:A.g(", b"f x)"), ("λx:A.", b"x")]
)
def test_stlc_is_completed_where_it_can_be(text: str, wanted: bytes) -> None:
    assert STLC.start().feed(text).witness().text == wanted


def test_tools_are_decided_by_what_is_bound() -> None:
    start = TOOL.start(symbol="Program", ambient=KEYS)
    dead = start.feed("let s = summarize(").witness()
    assert dead.outcome is Outcome.NONE and dead.text is None and "tried" in dead.reason
    assert start.feed('let d = search("a').witness().text == b'");return 0;'
    bound = TOOL.start(context={"d": "docs"}, symbol="Program", ambient=KEYS)
    assert bound.feed("let s = summarize(").witness().text == b"d);return 0;"


@pytest.mark.parametrize(
    ("text", "wanted"), [("// hey", b"\n0"), ("0 // hey", b""), ("/* a", b"*/0"), ("(0 // )", b"\n)")]
)
def test_ignorable_text_is_ended_as_it_must_be(text: str, wanted: bytes) -> None:
    ignored = [r"[ \n]+", r"\/\/[^\n]*", r"\/\*([^*]|\*+[^*\/])*\*+\/"]
    grammar = Grammar.parse("".join(f"%ignore /{p}/\n" for p in ignored) + "\nE ::= '0' | '(' E ')'\n")
    assert Oracle(grammar).start().feed(text).witness().text == wanted


def test_bounds_leave_the_question_open() -> None:
    prefix = fun("let f : Int -> Int -> Int -> Bool = ")
    short = prefix.witness(max_bytes=1)
    assert short.outcome is Outcome.UNKNOWN and "1 bytes" in short.reason
    hasty = prefix.witness(max_steps=3)
    assert hasty.outcome is Outcome.UNKNOWN and "3 steps" in hasty.reason


def test_lost_and_satisfied_prefixes_need_no_search() -> None:
    lost = fun("let x : Int = true").witness()
    assert lost.outcome is Outcome.NONE and "lost at byte 15" in str(lost)
    done = fun("1").witness()
    assert done.text == b"" and done.shortest and done.steps == 0
