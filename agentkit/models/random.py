"""A model that draws uniformly among the admissible tokens: the fuzzer of grammars, dialects and agents."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio.lowlevel
import numpy as np

from agentkit.models.base import (
    Generation,
    Message,
    PrefixLike,
    Sampling,
    StopPolicy,
    TokenRecord,
    Usage,
)
from agentkit.models.decoding import Decoder
from agentkit.models.errors import SessionError
from agentkit.models.reasoning import ReasoningFormat
from aufbau.vocabulary import Vocabulary


def byte_vocabulary() -> Vocabulary:
    """One token for each byte, and a stop token after them."""
    return Vocabulary([*(bytes((byte,)) for byte in range(256)), b""], stop=[256])


class RandomModel:
    """Every admissible token is equally probable, the stop token included where the policy admits it.

    Without a vocabulary the tokens are the single bytes. One seed gives one series of generations for
    each session.
    """

    def __init__(self, seed: int, vocabulary: Vocabulary | None = None, *, name: str = "random") -> None:
        self.name = name
        self.vocabulary = byte_vocabulary() if vocabulary is None else vocabulary
        self._seed = seed

    def session(self) -> RandomSession:
        """A conversation that draws the model's series of tokens from its start."""
        return RandomSession(self.vocabulary, self._seed)


class RandomSession:
    """One conversation with a random model; the messages are not read."""

    def __init__(self, vocabulary: Vocabulary, seed: int) -> None:
        self._vocabulary = vocabulary
        self._seed = seed
        self._generations = 0
        self._closed = False

    @property
    def reasoning(self) -> ReasoningFormat | None:
        """None: what it draws has no form."""
        return None

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
        """See `agentkit.models.Session`; always draws, whatever temperature is asked."""
        if self._closed:
            raise SessionError("this session is closed; open another with model.session()")
        seed = self._seed if sampling.seed is None else sampling.seed
        decoder = Decoder(
            self._vocabulary,
            prefix=prefix,
            sampling=Sampling(temperature=1.0, seed=seed),
            stop_policy=stop_policy,
            max_tokens=max_tokens,
            stop=stop,
            salt=self._generations,
            steer=steer,
        )
        self._generations += 1
        flat = np.zeros(len(self._vocabulary))
        while decoder.finish is None:
            await anyio.lowlevel.checkpoint()
            record = decoder.step(flat)
            if record is not None and on_token is not None:
                on_token(record)
        return decoder.generation(Usage(generated_tokens=decoder.generated), model_s=0.0)

    async def aclose(self) -> None:
        """Close the conversation."""
        self._closed = True
