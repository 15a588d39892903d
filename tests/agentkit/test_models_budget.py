"""Budgets: a text that is steered ends SATISFIED within its tokens, whatever the model prefers."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from itertools import product

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkit.models import (
    Completable,
    FinishReason,
    Generation,
    PrefixLike,
    RandomModel,
    Sampling,
    Steering,
    StopPolicy,
    byte_vocabulary,
)
from agentkit.models.budget import fewest_tokens
from aufbau import Grammar, LimitError, Oracle, Prefix, Verdict, Witness
from aufbau.vocabulary import Vocabulary
from dialects import CLikeDialect
from registry import builtin
from tests.agentkit.models_toys import Brackets, Counted, Nothing

# Some words of the languages, as a tokenizer has them, beside all single bytes.
WORDS = [
    *("let", "return", "if", "then", "else", "int", "(int", "fun", "match", "true", "false", "void", "x", "0"),
    *(");", "()", "->", "=", "(((", "+", "{", "}", "\\", ":", ";", 'search("', '");'),
]
LONGER = [*(word.encode() for word in WORDS), *(b" " + word.encode() for word in WORDS)]
MANY = Vocabulary(
    [*(bytes((byte,)) for byte in range(256)), *LONGER, b""],
    stop=[256 + len(LONGER)],
)
VOCABULARIES = {"bytes": byte_vocabulary(), "words": MANY}
# STLC searches take the longest; its guarantee rests on the start alone, since it is not covered.
GRAMMARS = ["tool", "fun", "core_ml", "core_c", pytest.param("stlc", marks=pytest.mark.slow)]


@cache
def start_of(name: str) -> Prefix:
    if name == "tool":
        return CLikeDialect().lower(builtin()).start({})
    text = files("aufbau.languages").joinpath(f"{name}.auf").read_text(encoding="utf-8")
    return Oracle(Grammar.parse(text)).start()


def distance(prefix: Prefix, vocabulary: Vocabulary) -> int:
    text = prefix.witness().text
    assert text is not None
    tokens = fewest_tokens(text, vocabulary)
    assert tokens is not None
    return len(tokens)


def draw(
    prefix: PrefixLike,
    vocabulary: Vocabulary,
    seed: int,
    max_tokens: int,
    *,
    steer: bool = True,
    policy: StopPolicy = StopPolicy.STRICT,
) -> Generation:
    async def main() -> Generation:
        return (
            await RandomModel(seed, vocabulary)
            .session()
            .generate([], prefix=prefix, sampling=Sampling(), max_tokens=max_tokens, stop_policy=policy, steer=steer)
        )

    return anyio.run(main)


# The law


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
@pytest.mark.parametrize("grammar", GRAMMARS)
@settings(max_examples=10)
@given(seed=st.integers(0, 10_000), more=st.one_of(st.integers(0, 12), st.integers(0, 60)))
def test_a_steered_text_ends_satisfied_within_its_budget(grammar: str, vocabulary: str, seed: int, more: int) -> None:
    start, tokens = start_of(grammar), VOCABULARIES[vocabulary]
    budget = distance(start, tokens) + more
    generation = draw(start, tokens, seed, budget)
    assert isinstance(generation.prefix, Prefix)
    assert generation.prefix.verdict is Verdict.SATISFIED, generation
    assert generation.usage.generated_tokens <= budget
    assert generation.steering in (Steering.KEPT, Steering.NOT_NEEDED)
    assert b"".join(record.text for record in generation.tokens) == generation.prefix.text


def test_without_steering_a_text_may_not_end() -> None:
    start = start_of("tool")
    ends = [draw(start, MANY, seed, 12, steer=False) for seed in range(8)]
    assert any(one.prefix is not None and one.prefix.verdict is Verdict.LIVE for one in ends)
    assert all(one.steering is Steering.OFF for one in ends)


def test_a_large_budget_changes_nothing() -> None:
    start = start_of("tool")
    for seed in range(4):
        free, steered = (draw(start, MANY, seed, 400, steer=steer) for steer in (False, True))
        assert (free.text, free.tokens) == (steered.text, steered.tokens)
        assert steered.steering is Steering.NOT_NEEDED


def test_the_papers_policy_is_not_steered() -> None:
    ends = [draw(start_of("tool"), MANY, seed, 12, policy=StopPolicy.PAPER) for seed in range(8)]
    assert {one.steering for one in ends} == {Steering.OFF}
    assert any(one.prefix is not None and one.prefix.verdict is Verdict.LIVE for one in ends)


def test_a_budget_below_the_nearest_end_is_said_at_once() -> None:
    start = start_of("tool")
    generation = draw(start, MANY, 0, distance(start, MANY) - 1)
    assert (generation.tokens, generation.finish) == ((), FinishReason.LENGTH)
    assert generation.steering is Steering.TOO_SMALL
    assert f"takes {distance(start, MANY)} tokens" in generation.steering_reason


# Where no end is known


LETTERS = Vocabulary([b"a", b"b", b"x", b""], stop=[3])


def test_an_end_that_is_not_known_is_said() -> None:
    only_a = Vocabulary([b"a", b"x", b""], stop=[2])
    for vocabulary, start, said in [
        (LETTERS, Counted(known_from=100), "too dark to see"),
        (only_a, Counted(), "the vocabulary cannot spell 'b'"),
    ]:
        assert isinstance(start, Completable)
        generation = draw(start, vocabulary, 3, 1)
        assert generation.steering is Steering.UNKNOWN
        assert generation.steering_reason == said


class Cramped(Counted):
    """One whose search outgrows a limit of the oracle."""

    def feed(self, data: bytes, /) -> Cramped:
        return Cramped(self.text + data)

    def witness(self, max_bytes: int, max_steps: int, *, prove: bool = True) -> Witness:
        raise LimitError("the chart exceeds 30 items")


def test_a_search_that_has_no_room_is_said() -> None:
    generation = draw(Cramped(), LETTERS, 0, 1)
    assert (generation.steering, generation.steering_reason) == (Steering.UNKNOWN, "the chart exceeds 30 items")


def test_an_end_that_is_known_later_is_kept_from_then_on() -> None:
    mostly_a = Vocabulary([*[b"a"] * 8, b"b", b""], stop=[9])
    ends = [draw(Counted(known_from=4), mostly_a, seed, 16) for seed in range(20)]
    longer = [one for one in ends if len(one.text) > 8]
    assert longer and all(one.steering in (Steering.KEPT, Steering.NOT_NEEDED) for one in longer)
    assert all(one.prefix is not None and one.prefix.verdict is Verdict.SATISFIED for one in ends)


def test_a_dead_end_is_left() -> None:
    ends = [draw(Counted(trap=True), LETTERS, seed, 40) for seed in range(30)]
    assert all(one.prefix is not None and one.prefix.verdict is Verdict.SATISFIED for one in ends)
    left = [one for one in ends if one.steering is Steering.KEPT]
    # What was taken back is paid for, and is in no record.
    assert left and all(one.usage.generated_tokens > len(one.tokens) for one in left)
    assert all(b"x" not in record.text for one in left for record in one.tokens)


def test_prefixes_that_know_no_witness_are_not_steered() -> None:
    for start in (Brackets(), Nothing()):
        assert not isinstance(start, Completable)
        assert draw(start, byte_vocabulary(), 0, 3).steering is Steering.OFF


# The fewest tokens


@settings(max_examples=60)
@given(
    words=st.lists(st.text("ab", min_size=1, max_size=3), max_size=6, unique=True),
    text=st.text("ab", max_size=7),
)
def test_the_fewest_tokens_are_as_few_as_any(words: list[str], text: str) -> None:
    vocabulary = Vocabulary([*(word.encode() for word in words), b""])
    found = fewest_tokens(text.encode(), vocabulary)
    lengths = (
        length
        for length in range(len(text) + 1)
        if any("".join(series) == text for series in product(words, repeat=length))
    )
    assert (None if found is None else len(found)) == next(lengths, None)
    if found is not None:
        assert b"".join(map(vocabulary.spelling, found)) == text.encode()
