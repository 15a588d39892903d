"""Ends a masked program at an empty line, as a free one ends at its stop strings.

A program of ML or C can always go on, and a model that wants to end one by other means than a stop token (a closing
fence, a blank line and the next turn of a plain prompt) is refused that by the mask: it would write on until its budget
is spent. An empty line after a whole program is where every answer of the prompt's examples ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Self, final

import numpy as np
import numpy.typing as npt

from agentkit.models import Generation, Message, PrefixLike, Sampling, Session, StopPolicy, TokenRecord
from agentkit.models.reasoning import ReasoningFormat
from aufbau import Prefix, Verdict
from aufbau.vocabulary import Vocabulary
from aufbau.witness import Witness

_EMPTY_LINE: Final = re.compile(rb"\n[ \t]*\n\s*\Z")


@final
class ClosingPrefix:
    """A prefix that nothing can be added to once it is SATISFIED and ends in an empty line."""

    def __init__(self, inner: Prefix) -> None:
        self.inner: Final = inner

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
        return type(self)(self.inner.feed(data))

    def try_feed(self, data: bytes, /) -> Verdict:
        """As the prefix within."""
        return self.inner.try_feed(data)

    def mask(self, vocabulary: Vocabulary, /) -> npt.NDArray[np.bool_]:
        """That of the prefix within."""
        return self.inner.oracle.mask(self.inner, vocabulary)

    def witness(self, max_bytes: int, max_steps: int, *, prove: bool = True) -> Witness:
        """As of the prefix within."""
        return self.inner.witness(max_bytes, max_steps, prove=prove)


@final
class ClosingSession:
    """A session whose masked texts end at an empty line."""

    def __init__(self, inner: Session) -> None:
        self._inner: Final = inner

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
            prefix=ClosingPrefix(prefix) if isinstance(prefix, Prefix) else prefix,
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
