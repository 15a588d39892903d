"""Laws that every grammar must keep, on texts sampled from the oracle itself, spoiled ones, and random bytes."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import aufbau
from aufbau import Grammar, Oracle, Prefix, Verdict
from aufbau.grammar.grammar import shipped
from tests.aufbau.walks import chunks, spoiled, walk

ROOT = Path(aufbau.__file__).parent.parent
GRAMMARS = {name: name for name in shipped()} | {
    path.stem: str(path) for path in sorted((ROOT / "dialects" / "grammars").glob("*.auf"))
}
TOOLS = ("tool", "tool_sexpr", "tool_xml")
# Names in scope for the walks, in each grammar's own types.
CONTEXTS: dict[str, dict[str, str]] = {
    "minimal": {"x": "A", "foo": "A → A"},
    "stlc": {"x": "A", "foo": "A -> B", "f": "(A -> B) -> A"},
    "fun": {"x": "Int", "foo": "Int -> Bool", "f": "(Int -> Bool) -> Int"},
} | {name: {"x": "int", "foo": "docs", "f": "string"} for name in TOOLS}


def keys_of(source: str) -> list[str]:
    """The ambient keys that a grammar declares."""
    return re.findall("'([^']*)'", source.partition("%ambient")[2].partition("\n")[0])


# With names of all types in scope, all that there is to say of them is true.
AMBIENT = {name: dict.fromkeys(keys_of(Path(GRAMMARS[name]).read_text()), "int") for name in TOOLS}
LENGTHS = {"minimal": 8, "tool_xml": 40}  # of walks, in lexemes
# A set of ml or c costs many times one of the others, so their turn comes with the slow tests.
LARGE = {"ml", "c"}
every_grammar = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in LARGE else []) for name in GRAMMARS]
)
# A set is judged one lexeme ahead. In ml and c a lexeme can be taken whose successor is dead under what is in scope,
# so LOST may come a lexeme late there (never a false one); what is said of single bytes and lexemes is left to these.
exact_grammar = pytest.mark.parametrize("name", [name for name in GRAMMARS if name not in LARGE])
seeds = st.integers(0, 2**48).map(Random)


def examples(count: int) -> settings:
    """Settings for a law that costs some milliseconds an example."""
    return settings(max_examples=count, suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors])


@cache
def oracle(name: str) -> Oracle:
    """The oracle of a shipped grammar."""
    return Oracle(Grammar.load(GRAMMARS[name]))


@cache
def reloaded(name: str) -> Oracle:
    """The oracle of the same grammar, rendered and read again."""
    return Oracle(Grammar.parse(oracle(name).grammar.source()))


def begun(engine: Oracle, name: str, random: Random) -> Prefix:
    """An empty prefix at one of the roots, with or without names in scope."""
    symbol = random.choice((engine.grammar.model.start, *engine.grammar.model.roots))
    if random.random() < 0.3:
        # Without names, nothing that can be a docs exists, and no name of any type is bound.
        ambient = {
            key: bound
            for key, bound in AMBIENT.get(name, {}).items()
            if key != "some docs" and not key.startswith("name ")
        }
        return engine.start(symbol=symbol, ambient=ambient)
    return engine.start(context=CONTEXTS.get(name), symbol=symbol, ambient=AMBIENT.get(name))


def sampled(prefix: Prefix, random: Random, name: str) -> bytes:
    """A text for the laws: a walk, a spoiled walk, or noise. Walks in the ambiguous minimal grammar are short."""
    kind = random.randrange(8)
    if kind == 0:
        return random.randbytes(random.randint(0, 12))
    text = walk(random, prefix, 8 if name == "minimal" else random.randint(1, 25))
    return text if kind < 4 else spoiled(random, text)


def facts(prefix: Prefix) -> tuple[object, ...]:
    """What feeding in pieces must not change."""
    return (prefix.verdict, prefix.lost_at, prefix.types, prefix.context, prefix.extensible, prefix.text)


@every_grammar
@examples(25)
@given(random=seeds)
def test_feeding_in_pieces_is_feeding_at_once(name: str, random: Random) -> None:
    start = begun(oracle(name), name, random)
    text = sampled(start, random, name)
    at_once = facts(start.feed(text))
    stepped, chunked = start, start
    for byte in text:
        stepped = stepped.feed(bytes((byte,)))
    for chunk in chunks(random, text):
        chunked = chunked.feed(chunk)
    assert facts(stepped) == facts(chunked) == at_once


@every_grammar
@examples(25)
@given(random=seeds)
def test_lost_is_final_and_satisfied_has_no_lost_prefix(name: str, random: Random) -> None:
    start = begun(oracle(name), name, random)
    step, lost_at = start, None
    for at, byte in enumerate(sampled(start, random, name) + random.randbytes(2)):
        step = step.feed(bytes((byte,)))
        if lost_at is None and step.verdict is Verdict.LOST:
            lost_at = at
        assert (step.verdict is Verdict.LOST) is (lost_at is not None)
        assert step.lost_at == lost_at
        if lost_at is not None:
            assert not step.extensible and step.next_bytes() == b"" and step.expected() == [] and step.tree() is None


@every_grammar
@examples(20)
@given(random=seeds)
def test_rendering_and_reloading_changes_no_verdict(name: str, random: Random) -> None:
    assert reloaded(name).grammar == oracle(name).grammar
    seed = random.getrandbits(32)
    start, again = (begun(engine, name, Random(seed)) for engine in (oracle(name), reloaded(name)))
    text = sampled(start, random, name)
    assert facts(start.feed(text)) == facts(again.feed(text))


@every_grammar
@examples(25)
@given(random=seeds)
def test_the_twin_keeps_what_the_semantic_grammar_keeps(name: str, random: Random) -> None:
    symbol = random.choice((oracle(name).grammar.model.start, *oracle(name).grammar.model.roots))
    start = oracle(name).start(context=CONTEXTS.get(name), ambient=AMBIENT.get(name), symbol=symbol)
    step, twin = start, oracle(name).syntactic().start(symbol=symbol)
    for byte in sampled(start, random, name):
        step, twin = step.feed(bytes((byte,))), twin.feed(bytes((byte,)))
        if step.verdict is Verdict.LOST:
            break
        assert twin.verdict is not Verdict.LOST, f"the twin loses {step.text!r}"
        assert step.verdict is not Verdict.SATISFIED or twin.verdict is Verdict.SATISFIED


@every_grammar
@examples(15)
@given(random=seeds)
def test_trying_is_feeding_and_changes_nothing(name: str, random: Random) -> None:
    start = begun(oracle(name), name, random)
    text = sampled(start, random, name)
    prefix = start.feed(text[: random.randint(0, len(text))])
    before = facts(prefix)
    for _ in range(6):
        more = walk(random, prefix, 2) if random.random() < 0.5 else random.randbytes(3)
        assert prefix.try_feed(more) is prefix.feed(more).verdict
        assert prefix.try_feed(more) is start.feed(prefix.text + more).verdict
    assert facts(prefix) == before


@exact_grammar
@examples(4)
@given(random=seeds)
def test_next_bytes_are_the_bytes_that_are_not_lost(name: str, random: Random) -> None:
    prefix = begun(oracle(name), name, random)
    prefix = prefix.feed(walk(random, prefix, 8))
    for _ in range(3):
        following = prefix.next_bytes()
        wanted = [byte for byte in range(256) if prefix.try_feed(bytes((byte,))) is not Verdict.LOST]
        assert list(following) == wanted
        if prefix.verdict is Verdict.LIVE:
            assert following, f"a live prefix that nothing can follow: {prefix.text!r}"
        if not following:
            break
        prefix = prefix.feed(bytes((random.choice(following),)))


@exact_grammar
@examples(15)
@given(random=seeds)
def test_what_is_expected_can_be_fed(name: str, random: Random) -> None:
    """At a lexeme boundary each literal and each name that is expected may come next."""
    start = begun(oracle(name), name, random)
    prefix = start.feed(walk(random, start, 10) + b" ")
    for expected in prefix.expected():
        if expected.kind.value in ("literal", "name"):
            assert prefix.try_feed(expected.text) is not Verdict.LOST, f"{expected} after {prefix.text!r}"


@every_grammar
def test_threads_share_an_oracle_and_a_prefix(name: str) -> None:
    random = Random(7)
    alone = Oracle(Grammar.load(GRAMMARS[name]))
    shared = Oracle(Grammar.load(GRAMMARS[name]))
    context, ambient = CONTEXTS.get(name), AMBIENT.get(name)
    texts = [sampled(alone.start(context=context, ambient=ambient), random, name) for _ in range(12)]
    wanted = [facts(alone.start(context=context, ambient=ambient).feed(text)) for text in texts]
    start = shared.start(context=context, ambient=ambient)

    def feed(number: int) -> tuple[object, ...]:
        prefix = start if number % 2 else shared.start(context=context, ambient=ambient)
        for byte in texts[number % len(texts)]:
            prefix = prefix.feed(bytes((byte,)))
        return facts(prefix)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(feed, range(4 * len(texts))))
    assert found == wanted * 4


@exact_grammar
def test_walks_reach_satisfied_prefixes(name: str) -> None:
    """The laws are worth nothing on texts that are all lost at once."""
    verdicts = []
    for seed in range(30):
        random = Random(seed)
        start = oracle(name).start(context=CONTEXTS.get(name), ambient=AMBIENT.get(name))
        verdicts.append(start.feed(walk(random, start, LENGTHS.get(name, 25))).verdict)
    assert verdicts.count(Verdict.SATISFIED) >= 3
    assert Verdict.LOST not in verdicts
