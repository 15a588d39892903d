"""Decoding apart from any model: the order of candidates, the mask's exactness, and how a generation ends."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit.models import Decoder, FinishReason, LogitsError, PrefixLike, Sampling, StopPolicy
from aufbau.vocabulary import Vocabulary, admissible
from tests.agentkit.models_toys import Brackets, Digits, Nothing

SPELLINGS = [b"1", b"23", b"x", b"4x", b"", b"1", b"\xc3", b"12345", b" "]
VOCABULARY = Vocabulary(SPELLINGS, stop=[4])


def decoder(
    prefix: PrefixLike | None,
    *,
    vocabulary: Vocabulary = VOCABULARY,
    sampling: Sampling | None = None,
    policy: StopPolicy = StopPolicy.STRICT,
    max_tokens: int = 50,
    stop: tuple[str, ...] = (),
) -> Decoder:
    return Decoder(
        vocabulary,
        prefix=prefix,
        sampling=sampling or Sampling(),
        stop_policy=policy,
        max_tokens=max_tokens,
        stop=stop,
    )


def scores(*favourites: int, size: int = len(SPELLINGS)) -> np.ndarray:
    """Falling scores for the favourites, and equal low ones for the rest."""
    values = np.full(size, -5.0, dtype=np.float32)
    for place, token in enumerate(favourites):
        values[token] = 5.0 - place
    return values


@pytest.mark.parametrize(
    ("favourites", "chosen", "rejected"),
    [
        ((2, 1), 1, 1),  # "x" is refused
        ((3, 6, 8, 0), 0, 3),  # the whole token counts, half a character too
        ((4, 1), 1, 1),  # a stop token before anything is written
        ((7, 1), 1, 1),  # five digits are too many
        ((5, 0), 5, 0),
        ((2,), 0, 1),  # equal scores: the lowest id
    ],
)
def test_greedy_takes_the_best_admissible(favourites: tuple[int, ...], chosen: int, rejected: int) -> None:
    record = decoder(Digits()).step(scores(*favourites))
    assert record is not None
    assert (record.token, record.rejected, record.first_choice) == (chosen, rejected, rejected == 0)


@given(
    values=st.lists(st.floats(-3, 3, width=16), min_size=9, max_size=9),
    text=st.sampled_from(["", "1", "234"]),
)
def test_greedy_equals_the_maximum_of_the_masked_scores(values: list[float], text: str) -> None:
    prefix = Digits().feed(text.encode())
    mask = admissible(prefix, VOCABULARY)
    mask[list(VOCABULARY.stop)] = bool(text)
    record = decoder(prefix).step(np.array(values, dtype=np.float32))
    assert record is not None
    assert record.token == int(np.where(mask, values, -np.inf).argmax())


@pytest.mark.parametrize("temperature", [0.7, 1.0, 2.5])
def test_sampling_has_the_masked_distribution(temperature: float) -> None:
    logits = np.array([0.5, 1.0, 3.0, 0.1, 1.5, -0.5, 0.0, 2.0, 0.0], dtype=np.float32)
    prefix = Digits().feed(b"7")
    mask = admissible(prefix, VOCABULARY)
    mask[4] = True  # the stop token, since "7" is satisfied
    weights = np.where(mask, np.exp(logits.astype(float) / temperature), 0.0)
    expected = weights / weights.sum()
    draws = 8_000
    counts = np.zeros(len(logits))
    state = decoder(prefix, sampling=Sampling(temperature=temperature, seed=11), max_tokens=draws + 1)
    for _ in range(draws):
        state.prefix, state.finish = prefix, None  # back to the same place, with the generator going on
        record = state.step(logits)
        assert record is not None
        assert record.token is not None
        counts[record.token] += 1
    assert counts[~mask].sum() == 0
    cells = expected > 0
    square = float((((counts - draws * expected) ** 2)[cells] / (draws * expected[cells])).sum())
    freedom = int(cells.sum()) - 1
    # Wilson and Hilferty: the 99.9% point of the chi-square distribution.
    limit = freedom * (1 - 2 / (9 * freedom) + 3.09 * math.sqrt(2 / (9 * freedom))) ** 3
    assert square < limit


def test_equal_seeds_draw_equally_and_salts_differently() -> None:
    def run(seed: int, salt: int) -> list[int | None]:
        state = Decoder(
            Vocabulary([bytes((byte,)) for byte in range(200)]),
            prefix=None,
            sampling=Sampling(temperature=1.0, seed=seed),
            stop_policy=StopPolicy.STRICT,
            max_tokens=20,
            salt=salt,
        )
        while state.finish is None:
            state.step(np.zeros(200))
        return [record.token for record in state.records]

    assert run(1, 0) == run(1, 0)
    assert run(1, 0) != run(2, 0)
    assert run(1, 0) != run(1, 1)


def test_entropy_and_probability_are_those_before_the_mask() -> None:
    logits = np.log(np.array([0.1, 0.2, 0.4, 0.05, 0.05, 0.1, 0.05, 0.05, 1e-30])).astype(np.float32)
    logits[8] = -np.inf
    record = decoder(Digits()).step(logits)
    assert record is not None
    probabilities = np.exp(logits[:8].astype(float))
    probabilities /= probabilities.sum()
    assert record.entropy == pytest.approx(float(-(probabilities * np.log(probabilities)).sum()), abs=1e-6)
    assert record.logprob == pytest.approx(math.log(0.2), abs=1e-6)


@pytest.mark.parametrize("policy", list(StopPolicy))
def test_stop_tokens_by_policy(policy: StopPolicy) -> None:
    live = decoder(Digits(), policy=policy)
    live.step(scores(4, 1))
    assert live.finish is (FinishReason.STOP if policy is StopPolicy.PAPER else None)
    assert live.text == ("" if policy is StopPolicy.PAPER else "23")
    satisfied = decoder(Digits(b"1"), policy=policy)
    satisfied.step(scores(4, 1))
    assert satisfied.finish is FinishReason.STOP
    assert satisfied.prefix == Digits(b"1")


def test_special_tokens_are_never_text() -> None:
    vocabulary = Vocabulary([b"1", b"<pad>", b""], special=[1], stop=[2])
    record = decoder(Digits(), vocabulary=vocabulary, policy=StopPolicy.PAPER).step(scores(1, 0, size=3))
    assert record is not None
    assert record.token == 0


def test_it_ends_where_nothing_can_follow() -> None:
    state = decoder(Digits(b"12"))
    state.step(scores(1))
    assert state.finish is FinishReason.SATISFIED
    assert state.text == "23"
    assert state.prefix == Digits(b"1223")


def test_a_complete_start_needs_no_token() -> None:
    state = decoder(Digits(b"1234"))
    assert state.finish is FinishReason.SATISFIED
    assert state.records == []


@pytest.mark.parametrize("prefix", [Nothing(), Digits(b"x")])
def test_dead_ends(prefix: PrefixLike) -> None:
    state = decoder(prefix)
    while state.finish is None:
        state.step(scores(1))
    assert state.finish is FinishReason.DEAD_END
    assert state.text == ""


@pytest.mark.parametrize(("budget", "text"), [(0, ""), (1, "1"), (2, "11")])
def test_the_budget(budget: int, text: str) -> None:
    state = decoder(Digits(), max_tokens=budget)
    while state.finish is None:
        state.step(scores(0))
    assert state.finish is FinishReason.LENGTH
    assert state.text == text


def test_a_character_of_several_tokens() -> None:
    vocabulary = Vocabulary([b"(", b")", b"\xc3", b"\xa9", b"\xa8"])
    state = decoder(Brackets(), vocabulary=vocabulary)
    for favourites in ((0,), (2,), (4, 3), (1,)):
        state.step(scores(*favourites, size=5))
    assert (state.text, state.finish) == ("(é)", FinishReason.SATISFIED)
    assert state.records[2].rejected == 1


@pytest.mark.parametrize(
    ("tokens", "text", "finish"),
    [
        ([b"a", b"b\n", b"\nc"], "ab", FinishReason.STOP),  # across two tokens
        ([b"a\n", b"b\n"], "a\nb\n", None),
        ([b"x END y"], "x ", FinishReason.STOP),
        ([b"x\n\nEND"], "x", FinishReason.STOP),  # the first of several
    ],
)
def test_stop_strings_of_free_text(tokens: list[bytes], text: str, finish: FinishReason | None) -> None:
    state = decoder(None, vocabulary=Vocabulary(tokens), stop=("END", "\n\n"))
    for token in range(len(tokens)):
        state.step(scores(token, size=len(tokens)))
    assert (state.text, state.finish) == (text, finish)


def test_scores_beyond_the_vocabulary_are_never_chosen() -> None:
    values = scores(12, 0, size=20)
    record = decoder(None).step(values)
    assert record is not None
    assert record.token == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scores_that_are_no_numbers_are_refused(bad: float) -> None:
    values = scores(0)
    values[3] = bad
    with pytest.raises(LogitsError, match="float32"):
        decoder(Digits()).step(values)


@pytest.mark.parametrize("temperature", [-1.0, math.inf, math.nan])
def test_a_temperature_that_is_none_is_refused(temperature: float) -> None:
    with pytest.raises(ValueError, match="temperature"):
        Sampling(temperature=temperature)
