"""A model that always wants one thing next, whatever is admissible: for what a stubborn model does under the oracle."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio.lowlevel
import numpy as np

from agentkit.models import (
    Decoder,
    Generation,
    Message,
    PrefixLike,
    ReasoningFormat,
    Sampling,
    StopPolicy,
    TokenRecord,
    Usage,
    byte_vocabulary,
)


class LeaningModel:
    """Byte by byte it would write `wish`, again and again; behind that, any other byte is about as good."""

    name = "leaning"

    def __init__(self, wish: bytes) -> None:
        self.wish = wish

    def session(self) -> LeaningSession:
        """A conversation."""
        return LeaningSession(self.wish)


class LeaningSession:
    """One conversation; the messages are not read."""

    reasoning: ReasoningFormat | None = None

    def __init__(self, wish: bytes) -> None:
        self._wish = wish
        self._vocabulary = byte_vocabulary()
        self._noise = np.random.default_rng(0)

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
        """See `agentkit.models.Session`."""
        decoder = Decoder(
            self._vocabulary,
            prefix=prefix,
            sampling=sampling,
            stop_policy=stop_policy,
            max_tokens=max_tokens,
            stop=stop,
            steer=steer,
        )
        while decoder.finish is None:
            await anyio.lowlevel.checkpoint()
            scores = self._noise.random(len(self._vocabulary))
            scores[self._wish[decoder.generated % len(self._wish)]] = 50.0
            record = decoder.step(scores)
            if record is not None and on_token is not None:
                on_token(record)
        return decoder.generation(Usage(generated_tokens=decoder.generated), model_s=0.0)

    async def aclose(self) -> None:
        """Nothing to give up."""
