"""Exact masked decoding, apart from any model: choose a token from scores, and follow the prefix.

The mask is lazy (`aufbau.choice`): an answer to "is this token admissible?" is only sought for tokens that could win.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from aufbau.choice import Choice, greedy, race, ranked
from aufbau.verdict import Verdict
from aufbau.vocabulary import Vocabulary


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
        log_total, entropy = _distribution(logits)
        choice = self._choose(logits[: len(self._vocabulary)])
        if choice is None:
            self.finish = FinishReason.DEAD_END
            return None
        record = TokenRecord(
            token=choice.token,
            text=self._vocabulary.spelling(choice.token),
            entropy=entropy,
            first_choice=choice.rank == 0,
            rejected=choice.rank,
            logprob=float(logits[choice.token]) - log_total,
        )
        self.records.append(record)
        self._take(record)
        return record

    def _choose(self, scores: npt.NDArray[np.floating]) -> Choice | None:
        prefix = self.prefix
        if self._sampling.temperature:
            scores = race(scores, self._random, self._sampling.temperature)
        if prefix is None:
            best = next(ranked(scores), None)
            return None if best is None else Choice(token=best, rank=0, refused=())
        start = perf_counter()
        may_stop = self._stop_policy is StopPolicy.PAPER or prefix.verdict is Verdict.SATISFIED
        choice = greedy(prefix, self._vocabulary, scores, ends=self._vocabulary.stop if may_stop else ())
        self.oracle_s += perf_counter() - start
        return choice

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
