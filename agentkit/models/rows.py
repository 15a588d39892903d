"""What other people's decoders ask for each row of a batch: which tokens may follow what it has generated.

Nothing here knows of tensors. A row is persistent, so rows may be reordered, copied and taken back as a decoder likes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from agentkit.models.base import PrefixLike, StopPolicy
from aufbau.choice import greedy
from aufbau.oracle import Prefix
from aufbau.verdict import Verdict
from aufbau.vocabulary import Vocabulary, admissible

Bools = npt.NDArray[np.bool_]
Scores = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class Row:
    """One text at work."""

    prefix: PrefixLike
    # Stop tokens, and others that are no text, since the text has ended; empty while it goes on.
    ended: tuple[int, ...] = ()

    @property
    def lost(self) -> bool:
        """The text holds what was never admissible."""
        return self.prefix.verdict is Verdict.LOST


class Rows:
    """Rows over one vocabulary: their first state, the next one, and what each admits."""

    def __init__(
        self, vocabulary: Vocabulary, *, stop_policy: StopPolicy = StopPolicy.STRICT, stop: Iterable[int] | None = None
    ) -> None:
        """`stop` are the tokens at which the decoder ends a text, where they are not the vocabulary's."""
        self.vocabulary: Final = vocabulary
        self.stop: Final = vocabulary.stop if stop is None else tuple(dict.fromkeys(stop))
        self._paper = stop_policy is StopPolicy.PAPER
        if not self.stop:
            raise ValueError(
                "the vocabulary names no stop token, so a decoder could not be told that a text is complete; give the"
                " ids at which it ends as stop=(…)"
            )
        text = [token for token in self.stop if token not in vocabulary.special]
        if text:
            raise ValueError(
                f"the stop tokens {text} are text in the vocabulary, or not in it at all; name them where it is made,"
                " as Vocabulary.from_tokenizer(tokenizer, stop=(…))"
            )

    def after(self, row: Row, token: int) -> Row:
        """The row after one more token. A token that is no text ends it; one that has no spelling at all loses it."""
        if row.ended or token in self.vocabulary.special:
            # What follows the end of a row is padding, which its decoder writes and nobody reads.
            return Row(row.prefix, (*row.ended, token))
        # An id past the vocabulary spells nothing; no text goes on with the byte 255.
        spelling = self.vocabulary.spelling(token) if 0 <= token < len(self.vocabulary) else b"\xff"
        return Row(row.prefix.feed(spelling))

    def replay(self, row: Row, tokens: Sequence[int]) -> Row:
        """The row after several tokens."""
        for token in tokens:
            row = self.after(row, token)
        return row

    def mask(self, row: Row, out: Bools) -> bool:
        """Say for every token whether it may follow, as `TransformersModel` decides it; False where none may.

        Written into `out`, which may be wider than the vocabulary: what lies past it is no token.
        """
        ends = self._ends(row)
        size = len(self.vocabulary)
        out[size:] = False
        if not self._writes(row):
            out[:size] = False
        elif isinstance(row.prefix, Prefix):
            row.prefix.oracle.mask(row.prefix, self.vocabulary, out[:size])
        else:
            out[:size] = admissible(row.prefix, self.vocabulary)
        out[list(ends)] = True
        return bool(ends) or bool(out.any())

    def best(self, row: Row, scores: Scores) -> int | None:
        """The token that may follow and has the highest score, the lowest id among equals; None where none may."""
        ends = self._ends(row)
        if not self._writes(row):
            return max(sorted(ends), key=lambda token: float(scores[token]), default=None)
        choice = greedy(row.prefix, self.vocabulary, scores, ends=ends)
        return None if choice is None else choice.token

    def first(self, row: Row, ranked: Iterable[int]) -> int | None:
        """The first token of some, by falling score, that may follow; None where none of them may."""
        ends = self._ends(row)
        writes = self._writes(row)
        for token in ranked:
            if token in ends:
                return token
            if not writes or token in self.vocabulary.special or token >= len(self.vocabulary):
                continue
            if row.prefix.try_feed(self.vocabulary.spelling(token)) is not Verdict.LOST:
                return token
        return None

    def _writes(self, row: Row) -> bool:
        """Whether text may follow at all. What is complete and can only grow by blanks does not go on."""
        if row.ended:
            return False
        verdict = row.prefix.verdict
        return verdict is Verdict.LIVE or (verdict is Verdict.SATISFIED and row.prefix.extensible)

    def _ends(self, row: Row) -> Collection[int]:
        """The stop tokens that may follow."""
        if row.ended:
            # A decoder that asks on has another end in mind than the one it got.
            return [token for token in self.stop if token not in row.ended] or self.stop
        verdict = row.prefix.verdict
        if verdict is Verdict.LOST:
            return ()
        return self.stop if self._paper or verdict is Verdict.SATISFIED else ()
