"""`OutlinesModel`: any model that Outlines can steer, as a model of agents.

Outlines runs the model and calls a processor of ours for each token. That processor does not only mask: it holds the
`Decoder` that every local model here decodes with, lets it choose, and leaves the chosen token alone. So tokens, seeds,
records and ends are those of `TransformersModel`, and free text can be watched for its stop strings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Any

import anyio.from_thread
import numpy as np

from agentkit.models.base import Generation, Message, PrefixLike, Sampling, StopPolicy, TokenRecord, Usage
from agentkit.models.decoding import Decoder
from agentkit.models.errors import ContextOverflowError, SessionError
from agentkit.models.exclusive import Exclusive
from agentkit.models.masking import from_mlx, native, on_host, only, to_mlx
from agentkit.models.reasoning import ReasoningFormat
from agentkit.models.steerable import Steerable, steerable
from aufbau.vocabulary import Vocabulary


class OutlinesModel:
    """A steerable model of Outlines (`from_transformers`, `from_llamacpp`, `from_mlxlm`), shared as any model is.

    One generation runs at a time, in a worker thread. Nothing is kept between the turns of a session but what the
    back end keeps itself, so a turn reads its whole prompt again.
    """

    def __init__(self, model: Any, *, name: str | None = None) -> None:
        """Raises `ModelLoadError` for a model that Outlines itself cannot steer, as those behind a web service."""
        self._steerable: Steerable = steerable(model)
        self.name: str = name or self._steerable.name
        self.vocabulary: Vocabulary = self._steerable.vocabulary
        self.context_length: int | None = self._steerable.context_length
        self._exclusive = Exclusive(self.name)

    def session(self) -> OutlinesSession:
        """A new conversation."""
        return OutlinesSession(self.name, self._steerable, self._exclusive)


class OutlinesSession:
    """One conversation."""

    def __init__(self, name: str, model: Steerable, exclusive: Exclusive) -> None:
        self._name = name
        self._model = model
        self._exclusive = exclusive
        self._busy = False
        self._closed = False

    @property
    def reasoning(self) -> ReasoningFormat | None:
        """As the chat template has it."""
        return self._model.reasoning

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
        """See `Session`. Cancelled, it ends after the current token; the session stays usable."""
        if self._closed:
            raise SessionError("this session is closed; open another with model.session()")
        if self._busy:
            raise SessionError("this session is generating already; open a session for each conversation")
        self._busy = True
        try:
            prompt = self._model.prompt(messages, assistant_prefill, thinks=thinks)
            length = await self._exclusive.run(lambda: self._model.count(prompt))
            limit = self._model.context_length
            if limit is not None and length >= limit:
                raise ContextOverflowError(self._name, length, limit)
            budget = max_tokens if limit is None else min(max_tokens, limit - length)
            decoder = Decoder(
                self._model.vocabulary,
                prefix=prefix,
                sampling=sampling,
                stop_policy=stop_policy,
                max_tokens=budget,
                stop=stop,
                stop_tokens=[token for text in stop if (token := self._model.added.get(text)) is not None],
                salt=length,
                steer=steer,
            )
            turn = _Turn(self._model, decoder, on_token)
            if decoder.finish is None:
                try:
                    await self._exclusive.run(lambda: turn.run(prompt, budget))
                finally:
                    # A caller that was cancelled may have left the worker alone; it then ends at its next token.
                    turn.abandoned = True
            usage = Usage(
                prompt_tokens=length,
                prefilled_tokens=length if decoder.generated else 0,
                generated_tokens=decoder.generated,
            )
            return decoder.generation(usage, model_s=turn.model_s)
        finally:
            self._busy = False

    async def aclose(self) -> None:
        """Close the conversation; the model itself stays loaded."""
        self._closed = True


class _LoopLeft(Exception):
    """Leaves the back end's loop where it knows no token that would end it."""


class _Turn:
    """One generation at work: a logits processor that lets the decoder choose.

    What goes wrong in it is kept and raised by `run`: llama.cpp calls processors from C, where errors are lost.
    """

    def __init__(self, model: Steerable, decoder: Decoder, on_token: Callable[[TokenRecord], None] | None) -> None:
        self._model = model
        self._decoder = decoder
        self._on_token = on_token
        self._failure: BaseException | None = None
        self._told_s = 0.0
        self._goes_on = True
        self.abandoned = False
        self.model_s = 0.0

    def run(self, prompt: str, budget: int) -> None:
        """Let the back end generate; in a worker thread."""
        begun = perf_counter()
        decoder, oracle_before = self._decoder, self._decoder.oracle_s
        while not self.abandoned:
            # Once more where the decoder took tokens back, which no back end can: from the text that it kept.
            self._goes_on = True
            generated = decoder.generated
            with suppress(_LoopLeft):
                self._model.generate(prompt + decoder.text, self, budget - generated)
            if self._failure is not None:
                raise self._failure
            if decoder.finish is not None:
                break
            if decoder.generated == generated and not self.abandoned:
                raise SessionError(f"{self._model.name} ended a generation before its first token; see what it reports")
        self.model_s = perf_counter() - begun - (decoder.oracle_s - oracle_before) - self._told_s

    def reset(self) -> None:
        """Outlines asks this of processors; each turn has one of its own."""

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Scores that leave nothing but the token that the decoder chooses, or the end."""
        if not native(scores):
            return to_mlx(self(input_ids, from_mlx(scores)))
        table = scores[None] if len(scores.shape) == 1 else scores
        token = self._model.end
        try:
            anyio.from_thread.check_cancelled()
            if self._goes_on and not self.abandoned:
                token = self._chosen(table)
        except BaseException as error:
            self._failure, self._goes_on = error, False
        if token is None:
            raise _LoopLeft
        alone = only(table, [token])
        return alone[0] if len(scores.shape) == 1 else alone

    def _chosen(self, scores: Any) -> int | None:
        """The next token; the end where it was the last one or tokens were taken back."""
        decoder, taken_back = self._decoder, self._decoder.taken_back
        host = on_host(scores)
        record = decoder.step(np.asarray(scores.float().cpu() if host is None else host)[0])
        if record is not None and self._on_token is not None:
            begun = perf_counter()
            anyio.from_thread.run_sync(self._on_token, record)
            self._told_s += perf_counter() - begun
        self._goes_on = decoder.finish is None and decoder.taken_back == taken_back
        return record.token if self._goes_on and record is not None else self._model.end
