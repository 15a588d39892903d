"""Exact masked decoding, apart from any model: choose a token from scores, and follow the prefix.

The mask is lazy (`aufbau.choice`): an answer to "is this token admissible?" is only sought for tokens that could win.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from time import perf_counter
from typing import cast

import numpy as np
import numpy.typing as npt

from agentkit.models.base import (
    Completable,
    FinishReason,
    Generation,
    PrefixLike,
    Sampling,
    Steering,
    StopPolicy,
    Timing,
    TokenRecord,
    Usage,
)
from agentkit.models.budget import Budget
from agentkit.models.errors import LogitsError
from aufbau.choice import Choice, greedy, race, ranked
from aufbau.verdict import Verdict
from aufbau.vocabulary import Vocabulary


class Decoder:
    """The state of one generation: its prefix, its text, and whether it has ended.

    Call `step` with the scores of what follows `records` until `finish` is set. The scores may have more entries
    than the vocabulary (padded embeddings); those are never chosen. A step may take tokens back: then `taken_back`
    grows, and `records` is shorter.
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
        stop_tokens: Collection[int] = (),
        salt: int = 0,
        steer: bool = False,
    ) -> None:
        """`salt` makes equal seeds draw differently in different places of a conversation.

        `stop_tokens` end a free text beside the vocabulary's own; `steer` is that of `Session.generate`.
        """
        self._vocabulary = vocabulary
        self._sampling = sampling
        self._stop_policy = stop_policy
        self._max_tokens = max_tokens
        self._stop = tuple(text.encode() for text in stop if text) if prefix is None else ()
        self._stop_tokens = frozenset((*vocabulary.stop, *(stop_tokens if prefix is None else ())))
        seed = None if sampling.seed is None else (sampling.seed, salt)
        self._random = np.random.default_rng(seed)
        self._text = bytearray()
        self.prefix = prefix
        self.records: list[TokenRecord] = []
        self.oracle_s = 0.0
        self.finish: FinishReason | None = None
        self.generated = 0
        self.taken_back = 0
        self._budget: Budget | None = None
        self._check_end()
        if steer and stop_policy is StopPolicy.STRICT and isinstance(prefix, Completable):
            self._set_out(prefix)

    @property
    def text(self) -> str:
        """What was generated so far."""
        return self._text.decode(errors="replace")

    def generation(self, usage: Usage, *, model_s: float) -> Generation:
        """The generation so far, once `finish` is set."""
        if self.finish is None:
            raise ValueError("this generation has not ended; call `step` until `finish` is set")
        budget = self._budget
        return Generation(
            text=self.text,
            prefix=self.prefix,
            tokens=tuple(self.records),
            finish=self.finish,
            usage=usage,
            timing=Timing(model_s=model_s, oracle_s=self.oracle_s),
            steering=Steering.OFF if budget is None else budget.steering,
            steering_reason="" if budget is None else budget.reason,
        )

    def step(self, logits: npt.NDArray[np.floating]) -> TokenRecord | None:
        """Choose the next token and take it; None at a dead end. Sets `finish` when this was the last one."""
        log_total, entropy = _distribution(logits)
        known = logits[: len(self._vocabulary)]
        drawn = self._choose(known)
        if drawn is None:
            if not self._leave_dead_end():
                self.finish = FinishReason.DEAD_END
            return None
        choice, steered = drawn
        record = TokenRecord(
            token=choice.token,
            text=self._vocabulary.spelling(choice.token),
            entropy=entropy,
            first_choice=choice.rank == 0,
            rejected=choice.rank,
            logprob=float(logits[choice.token]) - log_total,
            steered=steered,
            preferred=self._vocabulary.spelling(choice.refused[0]) if choice.refused else None,
            given_up=float(known.max()) - float(logits[choice.token]),
        )
        self.records.append(record)
        self.generated += 1
        self._take(record)
        return record

    def _choose(self, scores: npt.NDArray[np.floating]) -> tuple[Choice, bool] | None:
        """A token, and whether the budget had a say in it."""
        prefix = self.prefix
        if self._sampling.temperature:
            scores = race(scores, self._random, self._sampling.temperature)
        if prefix is None:
            best = next(ranked(scores), None)
            return None if best is None else (Choice(token=best, rank=0, refused=()), False)
        start = perf_counter()
        may_stop = self._stop_policy is StopPolicy.PAPER or prefix.verdict is Verdict.SATISFIED
        ends = self._vocabulary.stop if may_stop else ()
        if self._budget is not None and self._budget.checked:
            drawn: tuple[Choice, bool] | None = self._budget.choose(scores, ends, self._rest - 1)
        else:
            choice = greedy(prefix, self._vocabulary, scores, ends=ends)
            drawn = None if choice is None else (choice, False)
        self.oracle_s += perf_counter() - start
        return drawn

    def _take(self, record: TokenRecord) -> None:
        if record.token in self._stop_tokens:
            self.finish = FinishReason.STOP
            return
        self._text += record.text
        if self.prefix is not None and record.text:
            start = perf_counter()
            self.prefix = self.prefix.feed(record.text)
            self.oracle_s += perf_counter() - start
        self._check_end(len(record.text))
        if self.finish is None:
            self._stay_within()

    # The budget

    @property
    def _rest(self) -> int:
        return self._max_tokens - self.generated

    def _set_out(self, prefix: Completable) -> None:
        if self.finish is not None:
            return
        start = perf_counter()
        self._budget = Budget(self._vocabulary, prefix, self._max_tokens)
        self.oracle_s += perf_counter() - start
        if self._budget.steering is Steering.TOO_SMALL:
            self.finish = FinishReason.LENGTH

    def _stay_within(self) -> None:
        budget = self._budget
        if budget is None:
            return
        start = perf_counter()
        # As it was at the start; asking the protocol again would compute a verdict for each token.
        if not budget.follow(len(self.records), cast(Completable, self.prefix), self._rest):
            self._take_back(budget)
        self.oracle_s += perf_counter() - start

    def _leave_dead_end(self) -> bool:
        budget = self._budget
        if budget is None or budget.place is None or budget.place.count == len(self.records):
            return False
        self._take_back(budget)
        return True

    def _take_back(self, budget: Budget) -> None:
        place = budget.take_back(len(self.records))
        self.taken_back += len(self.records) - place.count
        del self.records[place.count :]
        self._text[:] = b"".join(record.text for record in self.records)
        self.prefix = place.prefix

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
        elif self.generated >= self._max_tokens:
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
