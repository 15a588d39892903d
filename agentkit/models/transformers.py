"""Local models through `transformers`: exact masked decoding with a key-value cache kept across turns."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, TypeVar

import anyio.to_thread
import numpy as np
import numpy.typing as npt
from anyio.lowlevel import RunVar

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
from agentkit.models.errors import ContextOverflowError, SessionError
from agentkit.models.extras import require
from agentkit.models.loading import load_pretrained
from agentkit.models.prompt import prompt_tokens
from aufbau.vocabulary import Vocabulary

# Tokens of a prompt that are read in one forward pass; between passes a generation can be cancelled.
PREFILL_PORTION = 512

Result = TypeVar("Result")


class TransformersModel:
    """A causal language model and its fast tokenizer, both as `transformers` loads them.

    Any number of sessions may share it, also from several event loops: one forward pass runs at a time,
    in a worker thread, so an event loop never waits for it.
    """

    def __init__(self, model: Any, tokenizer: Any, *, name: str | None = None) -> None:
        self.name: str = name or str(getattr(model.config, "_name_or_path", "") or type(model).__name__)
        self.tokenizer = tokenizer
        self.vocabulary = Vocabulary.from_tokenizer(tokenizer, stop=_end_tokens(model))
        limit = getattr(model.config, "max_position_embeddings", None)
        self.context_length: int | None = int(limit) if limit else None
        self._model = model.eval()
        # One thread of each event loop waits for the lock, the others queue in the loop, first come first
        # served.
        self._queue: RunVar[anyio.CapacityLimiter] = RunVar(f"forward passes of {self.name}")
        self._lock = threading.Lock()

    @classmethod
    def load(cls, name_or_path: str, *, device: str | None = None, dtype: str | None = None) -> TransformersModel:
        """Load a folder, a GGUF file, or a Hugging Face id (from its cache, else within a bounded attempt).

        `device` defaults to a GPU where there is one; `dtype` to float32 on a CPU, where it is the
        fastest, and elsewhere to what the weights were published in. Raises `ModelNotFoundError` or
        `ModelLoadError`.
        """
        model, tokenizer = load_pretrained(name_or_path, device=device, dtype=dtype)
        return cls(model, tokenizer, name=name_or_path)

    def session(self) -> TransformersSession:
        """A new conversation with an empty cache."""
        return TransformersSession(self)

    def reader(self) -> CachedReader:
        """The model under a key-value cache of its own; what a session decodes with."""
        return CachedReader(self._model)

    async def exclusively(self, work: Callable[[], Result]) -> Result:
        """Run `work` in a worker thread while no other forward pass of this model runs."""

        def alone() -> Result:
            with self._lock:
                return work()

        try:
            queue = self._queue.get()
        except LookupError:
            queue = anyio.CapacityLimiter(1)
            self._queue.set(queue)
        return await anyio.to_thread.run_sync(alone, limiter=queue)


class TransformersSession:
    """One conversation: what the model has read of it stays cached, so a turn only reads what is new."""

    def __init__(self, model: TransformersModel) -> None:
        self._model = model
        self._reader: CachedReader | None = model.reader()
        self._busy = False

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
    ) -> Generation:
        """See `Session`. Cancelled, it ends after the current token; the session stays usable."""
        if self._reader is None:
            raise SessionError("this session is closed; open another with model.session()")
        if self._busy:
            raise SessionError("this session is generating already; open a session for each conversation")
        self._busy = True
        try:
            turn = _Turn(self._model, self._reader)
            await self._model.exclusively(lambda: turn.open(messages, assistant_prefill))
            turn.decoder = Decoder(
                self._model.vocabulary,
                prefix=prefix,
                sampling=sampling,
                stop_policy=stop_policy,
                max_tokens=min(max_tokens, turn.room),
                stop=stop,
                salt=len(turn.prompt),
            )
            while turn.decoder.finish is None:
                record = await self._model.exclusively(turn.advance)
                if record is not None and on_token is not None:
                    on_token(record)
            return turn.decoder.generation(turn.usage(), model_s=turn.model_s)
        finally:
            self._busy = False

    async def aclose(self) -> None:
        """Drop the cache; the model itself stays loaded."""
        self._reader = None


class _Turn:
    """One generation at work; all but its creation happens in a worker thread."""

    decoder: Decoder

    def __init__(self, model: TransformersModel, reader: CachedReader) -> None:
        self._model = model
        self._reader = reader
        self._pending: list[int] = []
        self._cached = 0
        self.prompt: list[int] = []
        self.room = 0
        self.model_s = 0.0

    def open(self, messages: Sequence[Message], prefill: str) -> None:
        """Cut the prompt into tokens, and keep of the cache what the prompt begins with."""
        self.prompt = prompt_tokens(self._model.tokenizer, messages, prefill)
        limit = self._model.context_length
        if limit is not None and len(self.prompt) >= limit:
            raise ContextOverflowError(self._model.name, len(self.prompt), limit)
        self.room = 1 << 62 if limit is None else limit - len(self.prompt)
        self._cached = self._reader.rewind(self.prompt)
        self._pending = self.prompt[self._cached :]

    def advance(self) -> TokenRecord | None:
        """Read a portion of what is pending; after the last choose a token. None where none was chosen."""
        start = perf_counter()
        portion, self._pending = self._pending[:PREFILL_PORTION], self._pending[PREFILL_PORTION:]
        logits = self._reader.extend(portion)
        record = None
        oracle_before = self.decoder.oracle_s
        if not self._pending:
            record = self.decoder.step(logits)
            if record is not None and record.token is not None:
                self._pending = [record.token]
        self.model_s += perf_counter() - start - (self.decoder.oracle_s - oracle_before)
        return record

    def usage(self) -> Usage:
        """The tokens of this turn. A generation that ended before its first token has read no prompt."""
        unread = 0 if self.decoder.records else len(self._pending)
        return Usage(
            prompt_tokens=len(self.prompt),
            cached_tokens=self._cached,
            prefilled_tokens=len(self.prompt) - self._cached - unread,
            generated_tokens=len(self.decoder.records),
        )


class CachedReader:
    """A model's forward pass over a growing series of tokens, whose beginning may be kept for another."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._torch = require("torch")
        parameters = inspect.signature(model.forward).parameters
        # The argument's name was changed in transformers 5.
        self._cache_argument = "cache" if "cache" in parameters else "past_key_values"
        self._last_only = {"logits_to_keep": 1} if "logits_to_keep" in parameters else {}
        self._tokens: list[int] = []
        self._cache: Any = None

    @property
    def tokens(self) -> Sequence[int]:
        """What the cache holds."""
        return tuple(self._tokens)

    def rewind(self, series: Sequence[int]) -> int:
        """Keep the longest part that `series` begins with, short of its last token; returns how much that is.

        The last token is always read anew, since only reading it gives the scores that follow it.
        """
        limit = min(len(self._tokens), len(series) - 1)
        keep = next((i for i in range(limit) if self._tokens[i] != series[i]), max(limit, 0))
        surplus = len(self._tokens) - keep
        if surplus and keep and self._cropped(surplus):
            del self._tokens[keep:]
        elif surplus:
            self._forget()
        return len(self._tokens)

    def extend(self, tokens: Sequence[int]) -> npt.NDArray[np.float32]:
        """Read `tokens` after the ones held; returns the scores of what follows the last of them."""
        before, cache = self._tokens, self._cache
        # A pass that fails may have filled some layers only; then nothing is held.
        self._forget()
        with self._torch.inference_mode():
            ids = self._torch.tensor([list(tokens)], device=self._model.device)
            if cache is None:
                cache = require("transformers").DynamicCache(config=self._model.config)
            output = self._model(input_ids=ids, use_cache=True, **{self._cache_argument: cache}, **self._last_only)
            logits: npt.NDArray[np.float32] = output.logits[0, -1].float().cpu().numpy()
        self._tokens, self._cache = [*before, *tokens], cache
        return logits

    def _cropped(self, surplus: int) -> bool:
        """Take `surplus` tokens off the cache's end; False where its layers cannot go back and are read again."""
        if not getattr(self._cache, "is_croppable", True):
            return False
        try:
            self._cache.crop(-surplus)
        except (NotImplementedError, RuntimeError, ValueError):
            # A sliding window that has moved on raises one of these, by version of transformers.
            return False
        return True

    def _forget(self) -> None:
        self._tokens, self._cache = [], None


def _end_tokens(model: Any) -> list[int]:
    """End tokens that the model's generation settings name beside the tokenizer's own."""
    ends = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    if ends is None:
        return []
    return [int(ends)] if isinstance(ends, int) else [int(end) for end in ends]
