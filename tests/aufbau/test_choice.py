"""The lazy path: the same token as from the whole mask, few tries, and a bound on what a cut misses."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aufbau import Prefix, Verdict
from aufbau.choice import Choice, Scores, cut, greedy, race, ranked, sample, shares
from aufbau.vocabulary import Vocabulary
from tests.aufbau.test_laws import begun, every_grammar, examples, oracle, sampled, seeds
from tests.aufbau.test_masks import vocabulary


def place(name: str, random: Random) -> tuple[Prefix, Vocabulary]:
    """Some prefix of a grammar, and a vocabulary with the token 0 as its end."""
    prefix = begun(oracle(name), name, random)
    text = sampled(prefix, random, name)
    words = vocabulary(random, text)
    return prefix.feed(text[: random.randint(0, len(text))]), Vocabulary(list(words), stop=[0])


def scores(random: Random, count: int) -> Scores:
    """Scores of one of several kinds: with equals, without, with impossible tokens, in single precision."""
    values = np.random.default_rng(random.getrandbits(32)).normal(scale=random.choice([0.1, 3.0, 300.0]), size=count)
    if random.random() < 0.5:
        values = values.round()
    if random.random() < 0.3:
        values[values < 0] = -np.inf
    return values if random.random() < 0.5 else values.astype(np.float32)


def masked(prefix: Prefix, words: Vocabulary, ends: list[int]) -> np.ndarray:
    """The whole mask, the ends included."""
    mask = prefix.oracle.mask(prefix, words)
    mask[ends] = True
    return mask


def best(mask: np.ndarray, values: Scores, tries: int) -> Choice | None:
    """What a full sort of all scores finds: the best in the mask, and what comes before it."""
    order = [int(token) for token in np.argsort(-values, kind="stable") if values[token] > -np.inf]
    found = next((token for token in order if mask[token]), None)
    if found is None:
        return None
    before = order[: order.index(found)]
    return Choice(token=found, rank=len(before), refused=tuple(before[:tries]))


@every_grammar
@examples(12)
@given(random=seeds, tries=st.sampled_from([0, 1, 5, 10_000]), ends=st.sampled_from([[], [0]]))
def test_greedy_is_the_maximum_of_the_masked_scores(name: str, random: Random, tries: int, ends: list[int]) -> None:
    prefix, words = place(name, random)
    values = scores(random, len(words))
    choice = greedy(prefix, words, values, ends=ends, tries=tries)
    assert choice == best(masked(prefix, words, ends), values, tries)


@every_grammar
@examples(12)
@given(
    random=seeds,
    tries=st.sampled_from([0, 1, 5, 10_000]),
    ends=st.sampled_from([[], [0]]),
    temperature=st.sampled_from([1e-6, 0.3, 1.0, 2.5, 1e6]),
)
def test_sampling_is_the_maximum_of_the_masked_race(
    name: str, random: Random, tries: int, ends: list[int], temperature: float
) -> None:
    """With the same times for all tokens, whatever was tried; `test_a_race_has_the_distribution_of_its_scores`."""
    prefix, words = place(name, random)
    values, seed = scores(random, len(words)), random.getrandbits(32)
    draw = np.random.default_rng(seed)
    choice = sample(prefix, words, values, draw, temperature=temperature, ends=ends, tries=tries)
    raced = race(values, np.random.default_rng(seed), temperature)
    assert choice == best(masked(prefix, words, ends), raced, tries)


@given(
    values=st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0]), max_size=700),
    taken=st.integers(0, 700),
)
def test_candidates_come_in_the_order_of_a_full_sort(values: list[float], taken: int) -> None:
    expected = sorted((i for i in range(len(values)) if values[i] > -np.inf), key=lambda i: (-values[i], i))
    assert list(islice(ranked(np.array(values)), taken)) == expected[:taken]


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_candidates_of_many_scores(kind: type[np.floating]) -> None:
    values = np.random.default_rng(3).normal(size=20_000).astype(kind)
    kept = values.copy()
    assert list(ranked(values)) == list(np.argsort(-values, kind="stable"))
    assert (values == kept).all()


def unlikely(counts: np.ndarray, expected: np.ndarray) -> bool:
    """Whether chi-square is past its 99.9% point (Wilson and Hilferty) for these counts."""
    cells = expected > 0
    square = float((((counts - expected) ** 2)[cells] / expected[cells]).sum())
    freedom = int(cells.sum()) - 1
    return square > freedom * (1 - 2 / (9 * freedom) + 3.09 * math.sqrt(2 / (9 * freedom))) ** 3


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_a_race_has_the_distribution_of_its_scores(temperature: float) -> None:
    """The first two that arrive: a draw, and a draw from the rest."""
    values = np.array([0.5, 2.0, -np.inf, -1.0, 1.5, 0.0])
    weights = np.exp(values / temperature)
    weights /= weights.sum()
    pairs = np.outer(weights, weights) / (1 - weights)[:, None]
    np.fill_diagonal(pairs, 0.0)
    random, draws = np.random.default_rng(17), 20_000
    counts = np.zeros(pairs.shape)
    for _ in range(draws):
        first, second = islice(ranked(race(values, random, temperature)), 2)
        counts[first, second] += 1
    assert counts.sum(where=pairs == 0) == 0
    assert not unlikely(counts, draws * pairs)
    assert unlikely(counts, draws * np.where(pairs > 0, 1 / 20, 0))


@pytest.mark.parametrize("temperature", [1e-300, 1e300])
def test_temperatures_at_the_edge(temperature: float) -> None:
    """Very cold is greedy; very hot takes every token that is possible at all."""
    values = np.array([1.0, 3.0, -np.inf, 2.0])
    races = [list(ranked(race(values, np.random.default_rng(seed), temperature))) for seed in range(60)]
    assert {order[0] for order in races} == ({1} if temperature < 1 else {0, 1, 3})
    assert {len(order) for order in races} == {3}


@every_grammar
@examples(12)
@given(random=seeds, tried=st.integers(0, 40), temperature=st.sampled_from([0.5, 1.0, 2.0]))
def test_a_cut_loses_no_more_than_it_says(name: str, random: Random, tried: int, temperature: float) -> None:
    prefix, words = place(name, random)
    values, ends = scores(random, len(words)), random.choice([[], [0]])
    found = cut(prefix, words, values, tried, temperature=temperature, ends=ends)
    mask = masked(prefix, words, ends)
    order = list(islice(ranked(values), tried))
    assert list(found.tokens) == [token for token in order if mask[token]]
    parts = found.shares
    assert parts.admitted + parts.refused + parts.untouched == pytest.approx(1.0)
    possible = np.flatnonzero(mask & (values > -np.inf))
    if len(possible):
        weights = np.exp((values[possible].astype(np.float64) - values[possible].max()) / temperature)
        missed = float(weights[~np.isin(possible, order)].sum() / weights.sum())
        assert missed <= parts.lost + 1e-12
    if tried >= len(words):
        assert parts.lost == 0.0


def test_a_cut_in_figures() -> None:
    """Of five tokens two are tried; the special one is known to be no text."""
    prefix = oracle("fun").start(context={"x": "Int"}, goal="Int")
    words = Vocabulary([b"x", b"]", b"1", b"<end>", b"2"], stop=[3])
    values = np.log([0.3, 0.25, 0.2, 0.15, 0.1])
    found = cut(prefix, words, values, 2)
    assert found.tokens == (0,)
    parts = found.shares
    assert (parts.admitted, parts.refused, parts.untouched) == pytest.approx((0.3, 0.4, 0.3))
    assert parts.lost == pytest.approx(0.5)
    swapped = values[[1, 0, 2, 3, 4]]
    choice = greedy(prefix, words, swapped)
    assert choice == Choice(token=0, rank=1, refused=(1,))
    parts = shares(swapped, [choice.token], choice.refused)
    assert (parts.admitted, parts.refused, parts.untouched) == pytest.approx((0.25, 0.3, 0.45))
    assert parts.lost == pytest.approx(0.45 / 0.7)


def test_shares_of_what_is_hardly_probable() -> None:
    """Where exponentials of all that is left vanish, the bound still says which of it weighs more."""
    values = np.array([0.0, -2000.0, -2001.0])
    parts = shares(values, [1], [0])
    assert (parts.admitted, parts.refused, parts.untouched) == (0.0, 1.0, 0.0)
    assert parts.lost == pytest.approx(1 / (1 + math.e))
    assert shares(values, [], [0]).lost == 1.0
    assert shares(values, [], [0, 1, 2]).lost == 0.0


@dataclass
class Odd:
    """Texts of an odd number of bytes, and how often it was asked."""

    asked: list[bytes] = field(default_factory=list)

    def try_feed(self, data: bytes, /) -> Verdict:
        self.asked.append(data)
        return Verdict.LIVE if len(data) % 2 else Verdict.LOST


def test_only_tokens_that_could_win_are_tried() -> None:
    words = Vocabulary([b"aa", b"bb", b"", b"c", b"d"], stop=[2])
    odd = Odd()
    choice = greedy(odd, words, np.array([5.0, 4.0, 4.5, 3.0, 2.0]), tries=0)
    assert choice == Choice(token=3, rank=3, refused=(0, 2, 1))
    assert odd.asked == [b"aa", b"bb", b"c"]


def test_what_was_chosen_is_fed_for_free() -> None:
    prefix = oracle("fun").start(context={"foo": "Int -> Bool"})
    words = Vocabulary([b"]", b"foo (1", b"x y"])
    choice = greedy(prefix, words, np.array([3.0, 2.0, 1.0]))
    assert choice is not None
    text = words.spelling(choice.token)
    assert prefix.feed(text)._state is prefix.feed(text)._state  # the one that was tried


@pytest.mark.parametrize("size", [3, 9])
def test_scores_may_be_fewer_or_more_than_tokens(size: int) -> None:
    """Embeddings are padded, and added tokens may lack scores; both are never chosen."""
    prefix = oracle("fun").start(context={"x": "Int"})
    words = Vocabulary([b"]", b"x", b"}", b"x", b"1"])
    for tries in (0, 10):
        choice = greedy(prefix, words, np.arange(size, dtype=np.float32), tries=tries)
        assert choice is not None
        assert choice.token == (4 if size > 4 else 1)


def test_nothing_to_choose_from() -> None:
    prefix = oracle("fun").start()
    for words in (Vocabulary([]), Vocabulary([b"]", b"}"])):
        for tries in (0, 10):
            assert greedy(prefix, words, np.zeros(len(words)), tries=tries) is None
            assert sample(prefix, words, np.zeros(len(words)), np.random.default_rng(0), tries=tries) is None
    assert greedy(prefix.feed("]"), Vocabulary([b"1"]), np.zeros(1)) is None


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scores_that_are_no_numbers_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="wider"):
        greedy(Odd(), Vocabulary([b"a", b"b"]), np.array([0.0, bad]))


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.inf, math.nan])
def test_a_temperature_that_is_none_is_refused(temperature: float) -> None:
    words, values = Vocabulary([b"a"]), np.zeros(1)
    for call in (
        partial(sample, Odd(), words, values, np.random.default_rng(0), temperature=temperature),
        partial(cut, Odd(), words, values, 1, temperature=temperature),
    ):
        with pytest.raises(ValueError, match="greedy"):
            call()
