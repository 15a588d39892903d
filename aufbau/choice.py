"""The lazy path for decoders that hold scores: the exact token of a mask, without the mask.

Tokens are tried in the order in which they would win, and the first admissible one is taken. For greedy decoding that
is the order of the scores. For sampling it is that of a race in which each token arrives after an exponential time at
the rate of its probability: its order is that of drawing without replacement (Efraimidis and Spirakis 2006; with the
logarithm of times, the Gumbel-max trick), so the first admissible one has the distribution of masking everything and
renormalising.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from aufbau.oracle import Prefix
from aufbau.verdict import Verdict
from aufbau.vocabulary.vocabulary import Vocabulary

Scores = npt.NDArray[np.floating[Any]]

# Refusals after which the mask is asked. A refusal costs 5 to 50 µs, a mask over 49k tokens about 1 ms, and the first
# ones some 100 ms. Decoding freely with SmolLM2, a fresh oracle of the tool language takes 0.12 ms a token with 512 and
# 0.44 with 64; an ML one that was used before 0.6 with either and 1.0, at most 106, where the mask is never asked.
TRIES: Final = 512
# Below the best token: how many are looked for one at a time, then sorted at first, and how the sorted portions grow.
_SINGLY: Final = 8
_PORTION: Final = 64
_GROWTH: Final = 8


class Tried(Protocol):
    """All that choosing needs of a prefix; `aufbau.Prefix` has it."""

    def try_feed(self, data: bytes, /) -> Verdict:
        """The verdict after `data`, committing nothing."""
        ...


@runtime_checkable
class Masked(Protocol):
    """A prefix of another kind that can be asked for all tokens at once; of an `aufbau.Prefix` the oracle is asked."""

    def mask(self, vocabulary: Vocabulary, /) -> npt.NDArray[np.bool_]:
        """For each token whether `try_feed` admits it, in an array that is the caller's."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """The token that a decoder would have taken from the masked scores."""

    token: int
    rank: int  # how many tokens came before it, none of them admissible
    refused: tuple[int, ...]  # the first of these, as far as the oracle was asked about them one by one


@dataclass(frozen=True, kw_only=True, slots=True)
class Shares:
    """How the probability before the mask divides, as far as the oracle was asked; the three add up to 1."""

    admitted: float
    refused: float
    untouched: float
    # Of the masked distribution, at most so much lies on untouched tokens: untouched / (admitted + untouched). It is
    # also how far at most, in total variation, the admitted tokens, renormalised, are from the masked distribution.
    lost: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Cut:
    """What is admissible among the most probable tokens, and what is missed by looking no further."""

    tokens: tuple[int, ...]  # by falling probability
    shares: Shares


def greedy(
    prefix: Tried, vocabulary: Vocabulary, logits: Scores, *, ends: Collection[int] = (), tries: int = TRIES
) -> Choice | None:
    """The best admissible token, the lowest id among equals; None at a dead end.

    Scores past the vocabulary belong to no token, and a token at -inf is never chosen (so is anything cut away by
    top-k or top-p, which are the caller's). `ends` are stop tokens, where the caller lets the text end. After `tries`
    refusals the rest is asked at once, by `Oracle.mask` or as `Masked` says; that changes the cost and not the choice.
    """
    return _first(prefix, vocabulary, _scores(logits, vocabulary), ends, tries)


def sample(
    prefix: Tried,
    vocabulary: Vocabulary,
    logits: Scores,
    random: np.random.Generator,
    *,
    temperature: float = 1.0,
    ends: Collection[int] = (),
    tries: int = TRIES,
) -> Choice | None:
    """An admissible token drawn from the masked and renormalised distribution; otherwise as `greedy`.

    What is drawn does not depend on how many tokens are tried: equal generators give equal choices.
    """
    scores = _scores(logits, vocabulary)
    return _first(prefix, vocabulary, race(scores, random, temperature), ends, tries)


def cut(
    prefix: Tried,
    vocabulary: Vocabulary,
    logits: Scores,
    tries: int,
    *,
    temperature: float = 1.0,
    ends: Collection[int] = (),
) -> Cut:
    """What is admissible among the `tries` most probable tokens, with a bound on what that misses."""
    scores = _scores(logits, vocabulary)
    tried = list(islice(ranked(scores), tries))
    found = [token for token in tried if _admits(prefix, vocabulary, token, ends)]
    silent = [token for token in vocabulary.special if token < len(scores) and token not in ends]
    return Cut(tokens=tuple(found), shares=shares(scores, found, {*tried, *silent}.difference(found), temperature))


def shares(logits: Scores, admitted: Collection[int], refused: Collection[int], temperature: float = 1.0) -> Shares:
    """The shares of some tokens that were admitted, of some that were refused, and of all others.

    Also for a `Choice`: its token, what was refused before it, and how much the oracle was not asked about.
    """
    _check(temperature)
    untouched = np.ones(len(logits), np.bool_)
    untouched[[*admitted, *refused]] = False
    found = _mass(logits[[*admitted]], temperature)
    gone = _mass(logits[[*refused]], temperature)
    rest = _mass(logits[untouched], temperature)
    total = np.logaddexp(np.logaddexp(found, gone), rest)
    return Shares(
        admitted=float(np.exp(found - total)),
        refused=float(np.exp(gone - total)),
        untouched=float(np.exp(rest - total)),
        lost=float(np.exp(rest - np.logaddexp(found, rest))) if rest > -np.inf else 0.0,
    )


def _mass(logits: Scores, temperature: float) -> float:
    """The logarithm of the sum of exponentials, which does not vanish where all of them are small."""
    highest = float(logits.max(initial=-np.inf))
    if highest == -np.inf:
        return highest
    total = float(np.exp((logits.astype(np.float64) - highest) / temperature).sum())
    return highest / temperature + float(np.log(total))


# The orders of candidates


def ranked(scores: Scores) -> Iterator[int]:
    """Token ids by falling score, equals by rising id, never those at -inf; no more is sorted than is read."""
    left = scores
    for place in range(min(_SINGLY, len(scores))):
        best = int(left.argmax())
        if left[best] == -np.inf:
            return
        yield best
        if not place:
            left = scores.copy()
        left[best] = -np.inf
    portion = _PORTION
    while True:
        floor = np.partition(left, -portion)[-portion] if portion < len(left) else -np.inf
        # All equals at the border as well, so that they stay in order.
        picked = np.flatnonzero((left >= floor) & (left > -np.inf))
        if not len(picked):
            return
        yield from picked[np.argsort(-left[picked], kind="stable")].tolist()
        left[picked] = -np.inf
        portion *= _GROWTH


def race(scores: Scores, random: np.random.Generator, temperature: float) -> npt.NDArray[np.float64]:
    """New scores whose order is that of drawing without replacement from the softmax of the old ones.

    But for a factor, each is a score over the temperature less the logarithm of an exponential time; those at -inf
    stay there. The generator is asked for one time for each score. It costs 0.6 ms for 49k scores, 3 ms for 151k.
    """
    _check(temperature)
    times = random.standard_exponential(len(scores))
    np.maximum(times, np.finfo(np.float64).tiny, out=times)  # 0 is possible, and has no logarithm
    np.log(times, out=times)
    # Scaled from the side on which nothing overflows.
    times *= -min(temperature, 1.0)
    times += scores.astype(np.float64, copy=False) / max(temperature, 1.0)
    return times


def _scores(logits: Scores, vocabulary: Vocabulary) -> Scores:
    scores = np.asarray(logits)[: len(vocabulary)]
    if len(scores) and not scores.max() < np.inf:
        raise ValueError("the scores contain NaN or infinity; compute them in a wider number format")
    return scores


def _check(temperature: float) -> None:
    if not 0.0 < temperature < np.inf:
        raise ValueError(f"a temperature is a finite number above 0, not {temperature}; for 0 use `greedy`")


# The oracle


def _first(prefix: Tried, vocabulary: Vocabulary, scores: Scores, ends: Collection[int], tries: int) -> Choice | None:
    refused: list[int] = []
    for token in ranked(scores):
        if len(refused) >= tries and isinstance(prefix, Prefix | Masked):
            return _first_of_mask(prefix, vocabulary, scores, ends, refused)
        if _admits(prefix, vocabulary, token, ends):
            return Choice(token=token, rank=len(refused), refused=tuple(refused))
        refused.append(token)
    return None


def _first_of_mask(
    prefix: Prefix | Masked, vocabulary: Vocabulary, scores: Scores, ends: Collection[int], refused: list[int]
) -> Choice | None:
    mask = prefix.oracle.mask(prefix, vocabulary) if isinstance(prefix, Prefix) else prefix.mask(vocabulary)
    mask[[*ends]] = True
    token = next(ranked(np.where(mask[: len(scores)], scores, -np.inf)), None)
    if token is None:
        return None
    before = np.count_nonzero(scores > scores[token]) + np.count_nonzero(scores[:token] == scores[token])
    return Choice(token=token, rank=int(before), refused=tuple(refused))


def _admits(prefix: Tried, vocabulary: Vocabulary, token: int, ends: Collection[int]) -> bool:
    if token in vocabulary.special:
        return token in ends
    # What is tried is kept by the prefix, so feeding the chosen token afterwards is free.
    return prefix.try_feed(vocabulary.spelling(token)) is not Verdict.LOST
