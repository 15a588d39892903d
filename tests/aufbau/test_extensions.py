"""Schemes, scopes, name spaces, given names and bottom-up calls: laws, and Hindley-Milner inference by hand."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aufbau import Grammar, Oracle, Prefix, Verdict
from aufbau.expected import ExpectationKind
from tests.aufbau import hm_checker as hm
from tests.aufbau.checkers import inference_program
from tests.aufbau.walks import chunks, spoiled, walk

CASES = Path(__file__).parent / "cases"
NAMES = ("schemes", "scopes", "spaces", "given", "bottomup")
CONTEXTS: dict[str, dict[str, str]] = {
    "schemes": {"id": "?A -> ?A", "n": "int", "k": "?A -> ?B -> ?A"},
    "scopes": {"foo": "int", "f": "int -> bool"},
    "spaces": {"foo": "int"},
    "given": {"foo": "float", "id": "?A -> ?A"},
    "bottomup": {"foo": "int -> bool", "x": "int"},
}
every_grammar = pytest.mark.parametrize("name", NAMES)
seeds = st.integers(0, 2**48).map(Random)


def examples(count: int) -> settings:
    """Settings for a law that costs some milliseconds an example."""
    return settings(max_examples=count, suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors])


def source(name: str) -> str:
    """The grammar of a case file."""
    return (CASES / f"{name}.txt").read_text(encoding="utf-8").partition("\n====\n")[0] + "\n"


@cache
def oracle(name: str) -> Oracle:
    """The oracle of a case file."""
    return Oracle(Grammar.parse(source(name)))


@cache
def reloaded(name: str) -> Oracle:
    """The same, rendered and read again."""
    return Oracle(Grammar.parse(oracle(name).grammar.source()))


def begun(engine: Oracle, name: str, random: Random) -> Prefix:
    """The empty prefix, with or without names in scope."""
    return engine.start(context=CONTEXTS[name] if random.random() < 0.6 else None)


def sampled(prefix: Prefix, random: Random) -> bytes:
    """A walk, or a spoiled one."""
    text = walk(random, prefix, random.randint(1, 22))
    return text if random.random() < 0.6 else spoiled(random, text)


def facts(prefix: Prefix) -> tuple[object, ...]:
    """What feeding in pieces, rendering and threads must not change."""
    return (prefix.verdict, prefix.lost_at, prefix.types, prefix.context, prefix.extensible, prefix.text)


@every_grammar
@examples(20)
@given(random=seeds)
def test_pieces_rendering_and_tries_change_nothing(name: str, random: Random) -> None:
    seed = random.getrandbits(32)
    start, again = (begun(engine, name, Random(seed)) for engine in (oracle(name), reloaded(name)))
    text = sampled(start, random)
    wanted = facts(start.feed(text))
    assert facts(again.feed(text)) == wanted
    stepped, chunked = start, start
    for byte in text:
        assert stepped.try_feed(bytes((byte,))) is stepped.feed(bytes((byte,))).verdict
        stepped = stepped.feed(bytes((byte,)))
    for chunk in chunks(random, text):
        chunked = chunked.feed(chunk)
    assert facts(stepped) == facts(chunked) == wanted


@every_grammar
def test_rendering_reads_equal(name: str) -> None:
    assert reloaded(name).grammar == oracle(name).grammar
    assert reloaded(name).grammar.source() == oracle(name).grammar.source()


@every_grammar
@examples(15)
@given(random=seeds)
def test_the_twin_loses_nothing_that_is_kept(name: str, random: Random) -> None:
    step, twin = begun(oracle(name), name, random), oracle(name).syntactic().start()
    for byte in sampled(step, random):
        step, twin = step.feed(bytes((byte,))), twin.feed(bytes((byte,)))
        if step.verdict is Verdict.LOST:
            break
        assert twin.verdict is not Verdict.LOST, f"the twin loses {step.text!r}"


@every_grammar
def test_walks_reach_satisfied_prefixes(name: str) -> None:
    """The laws are worth nothing on texts that are all lost at once."""
    verdicts = []
    for seed in range(30):
        random = Random(seed)
        start = oracle(name).start(context=CONTEXTS[name])
        verdicts.append(start.feed(walk(random, start, 22)).verdict)
    assert verdicts.count(Verdict.SATISFIED) >= 5 and Verdict.LOST not in verdicts


@every_grammar
def test_threads_share_an_oracle_and_a_prefix(name: str) -> None:
    random = Random(11)
    texts = [sampled(oracle(name).start(context=CONTEXTS[name]), random) for _ in range(10)]
    alone, shared = Oracle(Grammar.parse(source(name))), Oracle(Grammar.parse(source(name)))
    wanted = [facts(alone.start(context=CONTEXTS[name]).feed(text)) for text in texts]
    start = shared.start(context=CONTEXTS[name])

    def feed(number: int) -> tuple[object, ...]:
        prefix = start if number % 2 else shared.start(context=CONTEXTS[name])
        for byte in texts[number % len(texts)]:
            prefix = prefix.feed(bytes((byte,)))
        return facts(prefix)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(feed, range(3 * len(texts)))) == wanted * 3


@pytest.mark.parametrize("name", ["scopes", "spaces"])
@examples(20)
@given(random=seeds)
def test_a_program_in_two_turns_is_one_program(name: str, random: Random) -> None:
    """Γ after one text is where the next one begins; names in name spaces and open types are not carried."""
    first = oracle(name).start()
    first = first.feed(walk(random, first, 12))
    if first.verdict is not Verdict.SATISFIED or any("?" in bound for bound in first.context.values()):
        return
    if name == "spaces" and any(word in first.text for word in (b"type", b"field", b"def")):
        return
    start = oracle(name).start(context=first.context)
    assert start.context == first.context
    more = walk(random, start, 8)
    assert first.feed(b" " + more).verdict is start.feed(more).verdict


# Schemes against Hindley-Milner


def _scope() -> Mapping[str, hm.Scheme]:
    a, b = hm.Unknown(), hm.Unknown()
    return {"n": hm.scheme(hm.INT), "is": hm.scheme(hm.INT, hm.BOOL), "k": hm.scheme(a, b, a)}


def agree(text: str) -> bool:
    """Hold the oracle against the checker; whether they accept."""
    scope = _scope()
    start = oracle("schemes").start(context={name: hm.shown(known.body) for name, known in scope.items()})
    wanted, prefix = hm.judge(text, scope), start.feed(text)
    if wanted is None:
        assert prefix.verdict is not Verdict.SATISFIED, f"the checker rejects it: {text}"
        return False
    assert prefix.verdict is Verdict.SATISFIED, f"the checker accepts {text}: {prefix.explain()}"
    assert prefix.types == (wanted,)
    demanded = oracle("schemes").start(context=start.context, goal=wanted).feed(text)
    assert demanded.verdict is Verdict.SATISFIED, f"lost under its own type as goal: {demanded.explain()}"
    step = start
    for byte in text.encode():
        step = step.feed(bytes((byte,)))
        assert step.verdict is not Verdict.LOST, str(step.explain())
    return True


@examples(60)
@given(random=seeds)
def test_schemes_are_those_of_hindley_and_milner(random: Random) -> None:
    agree(hm.program(random, ("n", "is", "k"), 4)[:160])


def test_the_generator_makes_programs_that_are_accepted() -> None:
    programs = [hm.program(Random(seed), ("n", "is", "k"), 3) for seed in range(60)]
    accepted = [text for text in programs if agree(text)]
    assert 10 <= len(accepted) < 60 and any("let" in text for text in accepted)


# Bottom-up calls


@cache
def demanded() -> Oracle:
    """The grammar of `bottomup` without its directive."""
    return Oracle(Grammar.parse("\n".join(line for line in source("bottomup").split("\n") if line[:1] != "%")))


@examples(60)
@given(random=seeds)
def test_bottom_up_calls_change_only_when_a_text_is_lost(random: Random) -> None:
    text = inference_program(random, ("x", "foo"), 3)[:120].encode()
    text = text if random.random() < 0.5 else spoiled(random, text)
    goal = random.choice((None, None, "int", "bool", "?A -> int"))
    late, early = (
        e.start(context=CONTEXTS["bottomup"], goal=goal).feed(text) for e in (oracle("bottomup"), demanded())
    )
    assert late.types == early.types
    assert (late.verdict is Verdict.SATISFIED) is (early.verdict is Verdict.SATISFIED)
    if late.lost_at is not None:
        assert early.lost_at is not None and early.lost_at <= late.lost_at


# What people are told

# grammar, context, text, what str(explain()) holds
TOLD = [
    ("spaces", {}, "type b = list", ["list is not in scope", "type.x ∈ Γ", "unit : int", "string : bool"]),
    ("spaces", {}, "type a = unit; type a ", ["a is in scope already", "type.x ∉ Γ[]", "fresh name"]),
    ("spaces", {}, "use 1 : string", ["string has type bool, but int is demanded"]),
    ("spaces", {}, "let x = unit", ["unit is not in scope", "x ∈ Γ", "list : int -> int"]),
    ("scopes", {}, "let a = 1; let a ", ["a is in scope already", "x ∉ Γ[]"]),
    ("scopes", {}, "apart a = 1 b = a", ["a is not in scope", "print : ?A -> unit"]),
    ("schemes", {"id": "?A -> ?A"}, "id 1 + true", ["bool", "int", "id : ?A -> ?A"]),
    ("schemes", {}, "fn x => let f = fn y => < x , y > in x + 1 + f", ["?A -> < int, ?A >", "int"]),
    ("given", {}, "length 1", ["int", "?A list", "hole : ?A"]),
]


@pytest.mark.parametrize(("name", "context", "text", "parts"), TOLD)
def test_lost_prefixes_are_explained(name: str, context: dict[str, str], text: str, parts: list[str]) -> None:
    prefix = oracle(name).start(context=context).feed(text)
    assert prefix.verdict is Verdict.LOST
    told = str(prefix.explain())
    assert "\0" not in told
    assert [part for part in parts if part not in told] == [], told


# grammar, text, names that may follow, with their types
OFFERED = [
    ("spaces", "type b = ", {"unit": "int", "string": "bool"}),
    ("spaces", "type b = un", {"unit": "int"}),
    ("spaces", "type ua = unit; type b = u", {"ua": "int", "unit": "int"}),
    ("spaces", "type ua = unit; let b = ", {"list": "int -> int"}),
    ("spaces", "field f : unit; let b = .", {"f": "int"}),
    ("spaces", "def d : unit; type e = unit; use both ", {"d": "int"}),
    ("scopes", "let a = 1; { let a = true; use ", {"a": "bool", "print": "?A -> unit"}),
    ("scopes", "hole h; use ", {"h": "?A", "print": "?A -> unit"}),
    ("schemes", "let id = fn x => x in fn y => ", {"id": "?A -> ?A", "y": "?A"}),
    ("schemes", "fn x => let f = fn y => < x , y > in ", {"f": "?A -> < ?B, ?A >", "x": "?A"}),
    ("given", "length ", {"hole": "?A"}),
    ("given", "1 ", {}),
    ("given", "pi ", {"+": "float -> float -> float"}),
]


@pytest.mark.parametrize(("name", "text", "names"), OFFERED)
def test_names_are_offered_as_people_write_them(name: str, text: str, names: dict[str, str]) -> None:
    prefix = oracle(name).start().feed(text)
    offered = {e.text: e.type for e in prefix.expected() if e.kind is ExpectationKind.NAME}
    assert {key: bound for key, bound in offered.items() if key in names or name != "given"} == names
    for key in names:
        begun = max(n for n in range(len(key) + 1) if text.endswith(key[:n]))
        assert prefix.try_feed(key[begun:] + " ") is not Verdict.LOST


def test_given_names_are_not_handed_on() -> None:
    """They lie outside of what the start gives, so a later turn may still shadow them."""
    start = oracle("scopes").start(context={"a": "int"})
    first = start.feed("let b = 1;")
    assert start.context == {"a": "int"} and first.context == {"a": "int", "b": "int"}
    second = oracle("scopes").start(context=first.context)
    assert second.feed("let print = 1;").context == {"a": "int", "b": "int", "print": "int"}
    assert second.feed("let b").feed(" ").verdict is Verdict.LOST


def test_left_recursion_under_an_ambient_key_ends() -> None:
    text = (
        "Type* ::= 'int'\nNum(num) ::= /[0-9]+/\nAdd(add) ::= E[l] '+' Num[r]\nE ::= Num | Add\n\n"
        "'k' ∈ Γ\n--- (num)\n'int'\n\nΓ['k':'int'] ⊢ l : ?A, Γ['k':'int'] ⊢ r : ?A\n--- (add)\n'int'\n"
    )
    start = Oracle(Grammar.parse(text)).start()
    assert start.feed("1").verdict is Verdict.LIVE
    assert start.feed("1 + 2").type == "int"


KEPT = """%start S
Name ::= /[a-z]+/
Type* ::= 'int' | 'bool'
K(k) ::= Name[x]
L(l) ::= K[e] Name[y]
V(v) ::= Name[x] Name[y]
S ::= L V

--- (k)
Γ → Γ[x:?A] ⊢ ?A

Γ ⊢ e : ?A
--- (l)
Γ → Γ'[y:∀?A] ⊢ ⊤

Γ(x) = 'int', Γ(y) = 'bool'
--- (v)
⊤
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("--- (k)", "x ∉ Γ\n--- (k)"),
        ("Γ'[y:∀?A] ⊢ ⊤", "Γ'[y:?A] ⊢ ⊤"),
        ("K[e] Name[y]", "K[e] Name[x] Name[y]"),
    ],
    ids=["plain", "reads", "mono", "in-order"],
)
def test_what_is_kept_is_not_generalised(old: str, new: str) -> None:
    """∀ leaves alone the holes that the children's own exports, or earlier entries, put into Γ."""
    text = KEPT.replace(old, new) if old else KEPT
    names = "a b a b"
    if "Name[x] Name[y]\nV" in text:
        text, names = text.replace("Γ → Γ'[y:∀?A]", "Γ → Γ[x:?A][y:∀?A]"), "c a b a b"
    # Once the first name is an int, so is the second, and no bool can follow.
    prefix = Oracle(Grammar.parse(text)).start().feed(names)
    assert prefix.lost_at is not None and prefix.lost_at >= len(names) - len(" a b"), prefix.context
    fitting = Oracle(Grammar.parse(text.replace("Γ(y) = 'bool'", "Γ(y) = 'int'"))).start().feed(names)
    assert fitting.verdict is Verdict.SATISFIED and set(fitting.context.values()) == {"int"}
