"""Ends a masked program at an empty line, as a free one ends at its stop strings.

A program of ML or C can always go on, and a model that wants to end one by other means than a stop token (a closing
fence, a blank line and the next turn of a plain prompt) is refused that by the mask: it would write on until its budget
is spent. An empty line after a whole program is where every answer of the prompt's examples ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final, Self, final

import numpy as np
import numpy.typing as npt

from agentkit.models import Generation, Message, PrefixLike, Sampling, Session, StopPolicy, TokenRecord
from agentkit.models.reasoning import ReasoningFormat
from aufbau import Prefix, Verdict
from aufbau.vocabulary import Vocabulary
from aufbau.witness import Witness

_EMPTY_LINE: Final = re.compile(rb"\n[ \t]*\n\s*\Z")


# Refused candidates of one place after which the mask is worked out instead of trying the next one.
_TRIES: Final = 32


@final
class Spellings:
    """The tokens of a vocabulary by their spelling, to look up what a mask says of a text."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary: Final = vocabulary
        self.tokens: Final = {vocabulary.spelling(token): token for token in range(len(vocabulary))}


@final
class ClosingPrefix:
    """A prefix that nothing can be added to once it is SATISFIED and ends in an empty line."""

    def __init__(self, inner: Prefix, spellings: Spellings | None) -> None:
        self.inner: Final = inner
        self._spellings: Final = spellings
        self._refused = 0
        self._mask: npt.NDArray[np.bool_] | None = None

    @property
    def text(self) -> bytes:
        """That of the prefix within."""
        return self.inner.text

    @property
    def verdict(self) -> Verdict:
        """That of the prefix within."""
        return self.inner.verdict

    @property
    def extensible(self) -> bool:
        """Not after the empty line, else as the prefix within."""
        closed = _EMPTY_LINE.search(self.text) is not None and self.verdict is Verdict.SATISFIED
        return not closed and self.inner.extensible

    def feed(self, data: bytes, /) -> Self:
        """The prefix within, fed."""
        return type(self)(self.inner.feed(data), self._spellings)

    def try_feed(self, data: bytes, /) -> Verdict:
        """As the prefix within; after some refusals with the help of the whole mask, which says the same."""
        if self._mask is None and self._refused >= _TRIES and self._spellings is not None:
            self._mask = self.inner.oracle.mask(self.inner, self._spellings.vocabulary)
        if self._mask is not None and self._spellings is not None:
            token = self._spellings.tokens.get(data)
            if token is not None and not self._mask[token]:
                return Verdict.LOST
        verdict = self.inner.try_feed(data)
        self._refused += verdict is Verdict.LOST
        return verdict

    def witness(self, max_bytes: int, max_steps: int, *, prove: bool = True) -> Witness:
        """As of the prefix within."""
        return self.inner.witness(max_bytes, max_steps, prove=prove)


@lru_cache(maxsize=4)
def _spellings(vocabulary: Vocabulary) -> Spellings:
    return Spellings(vocabulary)


@final
class ClosingSession:
    """A session whose masked texts end at an empty line."""

    def __init__(self, inner: Session, vocabulary: Vocabulary | None) -> None:
        """`vocabulary` is that of the model, where it has one that masks can be worked out for."""
        self._inner: Final = inner
        self._spellings: Final = None if vocabulary is None else _spellings(vocabulary)

    @property
    def reasoning(self) -> ReasoningFormat | None:
        """That of the session within."""
        return self._inner.reasoning

    async def generate(
        self,
        messages: Sequence[Message],
        *,
        prefix: PrefixLike | None,
        sampling: Sampling,
        max_tokens: int,
        stop_policy: StopPolicy,
        stop: Sequence[str] = (),
        assistant_prefill: str = "",
        on_token: Callable[[TokenRecord], None] | None = None,
        thinks: bool = False,
        steer: bool = False,
    ) -> Generation:
        """See `agentkit.models.Session`; the prefix that comes back is the one within."""
        generation = await self._inner.generate(
            messages,
            prefix=ClosingPrefix(prefix, self._spellings) if isinstance(prefix, Prefix) else prefix,
            sampling=sampling,
            max_tokens=max_tokens,
            stop_policy=stop_policy,
            stop=stop,
            assistant_prefill=assistant_prefill,
            on_token=on_token,
            thinks=thinks,
            steer=steer,
        )
        reached = generation.prefix
        return replace(generation, prefix=reached.inner) if isinstance(reached, ClosingPrefix) else generation

    async def aclose(self) -> None:
        """Close the session within."""
        await self._inner.aclose()
