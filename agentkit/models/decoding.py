"""Exact masked decoding, apart from any model: choose a token from scores, and follow the prefix.

The mask is lazy. Candidates are tried from the best score down, and the first admissible one is taken, so
an answer to "is this token admissible?" is only sought for tokens that could win. For sampling the scores
get Gumbel noise first: the order of `score + noise` is the order of drawing without replacement, so its
first admissible token has exactly the distribution of masking the whole vocabulary and renormalising.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import numpy.typing as npt

from agentkit.models.base import (
    FinishReason,
    Generation,
    PrefixLike,
    Sampling,
    StopPolicy,
    Timing,
    TokenRecord,
    Usage,
)
from agentkit.models.errors import LogitsError
from aufbau.verdict import Verdict
from aufbau.vocabulary import Vocabulary

Scores = npt.NDArray[np.float64]

# Candidates ranked at first when the best one is refused; each further portion is this many times larger.
_FIRST_PORTION = 64
_GROWTH = 8


def ranked(scores: Scores) -> Iterator[int]:
    """Token ids by descending score, equals by ascending id, never those at -inf; sorted as far as read."""
    if not len(scores):
        return
    best = int(scores.argmax())
    if scores[best] == -np.inf:
        return
    yield best
    portion, first = _FIRST_PORTION, True
    remaining = np.flatnonzero(scores > -np.inf)
    while len(remaining):
        values = scores[remaining]
        if portion < len(values):
            floor = np.partition(values, len(values) - portion)[len(values) - portion]
            chosen = values >= floor  # all equals at the border, so that ties stay in order of id
        else:
            chosen = np.ones(len(values), dtype=np.bool_)
        picked = remaining[chosen]
        order = np.argsort(-scores[picked], kind="stable")
        yield from (int(token) for token in picked[order][1 if first else 0 :])
        remaining, portion, first = remaining[~chosen], portion * _GROWTH, False


@dataclass(frozen=True, slots=True)
class _Choice:
    """An admissible token and how many better ones were refused."""

    token: int
    rejected: int


class Decoder:
    """The state of one generation: its prefix, its text, and whether it has ended.

    Call `step` with the scores of the next token until `finish` is set. The scores may have more entries
    than the vocabulary (padded embeddings); those are never chosen.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        prefix: PrefixLike | None,
        sampling: Sampling,
        stop_policy: StopPolicy,
        max_tokens: int,
        stop: Sequence[str] = (),
        salt: int = 0,
    ) -> None:
        """`salt` makes equal seeds draw differently in different places of a conversation."""
        self._vocabulary = vocabulary
        self._sampling = sampling
        self._stop_policy = stop_policy
        self._max_tokens = max_tokens
        self._stop = tuple(text.encode() for text in stop if text) if prefix is None else ()
        seed = None if sampling.seed is None else (sampling.seed, salt)
        self._random = np.random.default_rng(seed)
        self._text = bytearray()
        self.prefix = prefix
        self.records: list[TokenRecord] = []
        self.oracle_s = 0.0
        self.finish: FinishReason | None = None
        self._check_end()

    @property
    def text(self) -> str:
        """What was generated so far."""
        return self._text.decode(errors="replace")

    def generation(self, usage: Usage, *, model_s: float) -> Generation:
        """The generation so far, once `finish` is set."""
        if self.finish is None:
            raise ValueError("this generation has not ended; call `step` until `finish` is set")
        return Generation(
            text=self.text,
            prefix=self.prefix,
            tokens=tuple(self.records),
            finish=self.finish,
            usage=usage,
            timing=Timing(model_s=model_s, oracle_s=self.oracle_s),
        )

    def step(self, logits: npt.NDArray[np.floating]) -> TokenRecord | None:
        """Choose the next token and take it; None at a dead end. Sets `finish` when this was the last one."""
        scores = logits[: len(self._vocabulary)].astype(np.float64)
        log_total, entropy = _distribution(logits)
        choice = self._choose(self._perturbed(scores))
        if choice is None:
            self.finish = FinishReason.DEAD_END
            return None
        record = TokenRecord(
            token=choice.token,
            text=self._vocabulary.spelling(choice.token),
            entropy=entropy,
            first_choice=choice.rejected == 0,
            rejected=choice.rejected,
            logprob=float(scores[choice.token] - log_total),
        )
        self.records.append(record)
        self._take(record)
        return record

    def _perturbed(self, scores: Scores) -> Scores:
        if self._sampling.temperature == 0.0:
            return scores
        noise = self._random.gumbel(size=len(scores))
        return scores / self._sampling.temperature + noise

    def _choose(self, scores: Scores) -> _Choice | None:
        start = perf_counter()
        prefix, stops, special = self.prefix, self._vocabulary.stop, self._vocabulary.special
        if prefix is None:
            return next((_Choice(token, 0) for token in ranked(scores)), None)
        stop_admissible = self._stop_policy is StopPolicy.PAPER or prefix.verdict is Verdict.SATISFIED
        chosen = None
        for rejected, token in enumerate(ranked(scores)):
            if token in special:
                admissible = stop_admissible and token in stops
            else:
                admissible = prefix.try_feed(self._vocabulary.spelling(token)) is not Verdict.LOST
            if admissible:
                chosen = _Choice(token, rejected)
                break
        self.oracle_s += perf_counter() - start
        return chosen

    def _take(self, record: TokenRecord) -> None:
        self._text += record.text
        if record.token in self._vocabulary.stop:
            self.finish = FinishReason.STOP
            return
        if self.prefix is not None and record.text:
            start = perf_counter()
            self.prefix = self.prefix.feed(record.text)
            self.oracle_s += perf_counter() - start
        self._check_end(len(record.text))

    def _check_end(self, fresh: int = 0) -> None:
        """Has the text ended by itself? `fresh` is the length of what the last token added."""
        prefix = self.prefix
        if prefix is not None and prefix.verdict is Verdict.LOST:
            self.finish = FinishReason.DEAD_END
        elif prefix is not None and prefix.verdict is Verdict.SATISFIED and not prefix.extensible:
            self.finish = FinishReason.SATISFIED
        elif fresh and (end := self._stop_found(fresh)) >= 0:
            del self._text[end:]
            self.finish = FinishReason.STOP
        elif len(self.records) >= self._max_tokens:
            self.finish = FinishReason.LENGTH

    def _stop_found(self, fresh: int) -> int:
        """Where the first stop string begins, or -1; only text that the last token touched is searched."""
        places = (self._text.find(text, max(0, len(self._text) - fresh - len(text) + 1)) for text in self._stop)
        return min((place for place in places if place >= 0), default=-1)


def _distribution(logits: npt.NDArray[np.floating]) -> tuple[float, float]:
    """The logarithm of the sum of exponentials, and the entropy of the softmax in nats."""
    highest = float(logits.max())
    if not np.isfinite(highest):
        raise LogitsError(
            "the model's scores contain NaN or infinity; load it in a wider number format, for example dtype='float32'"
        )
    shifted = logits.astype(np.float64) - highest
    weights = np.exp(shifted)
    total = float(weights.sum())
    # 0 * -inf is 0 here: an impossible token adds nothing to the entropy.
    shifted[weights == 0.0] = 0.0
    entropy = float(np.log(total) - (weights @ shifted) / total)
    return highest + float(np.log(total)), max(0.0, entropy)
