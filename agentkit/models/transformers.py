"""Local models through `transformers`: exact masked decoding with a key-value cache kept across turns."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentkit.models.base import (
    Generation,
    Message,
    PrefixLike,
    Sampling,
    StopPolicy,
    TokenRecord,
    Usage,
)
from agentkit.models.batching import Batcher
from agentkit.models.decoding import Decoder
from agentkit.models.errors import ContextOverflowError, SessionError
from agentkit.models.extras import require
from agentkit.models.loading import load_pretrained
from agentkit.models.packed import PackedReader, Packing, UnpackableError, pack, portion
from agentkit.models.prompt import Answer, reasoning_of
from agentkit.models.reasoning import ReasoningFormat
from aufbau.vocabulary import Vocabulary


class TransformersModel:
    """A causal language model and its fast tokenizer, both as `transformers` loads them.

    Any number of sessions may share it, also from several event loops: one forward pass runs at a time,
    in a worker thread, so an event loop never waits for it. Sessions that generate at once share passes
    (`agentkit.models.batching` has the policy), up to `max_batch` of them, where the model can be read so
    (`reads_alone` says). `reproducible` results are equal bit for bit, whoever else is in the pass, at the cost of
    passes over few tokens (`agentkit.models.packed`). With `share_prefixes` a session copies what another one has
    read of the same text, such as instructions and tools, instead of reading it again.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str | None = None,
        max_batch: int = 16,
        reproducible: bool = False,
        share_prefixes: bool = False,
    ) -> None:
        if max_batch < 1:
            raise ValueError(f"max_batch must be a whole number from 1 on, not {max_batch}")
        if reproducible and share_prefixes:
            raise ValueError("reproducible=True and share_prefixes=True: what is shared depends on the company")
        self.name: str = name or str(getattr(model.config, "_name_or_path", "") or type(model).__name__)
        self.tokenizer = tokenizer
        self.vocabulary = Vocabulary.from_tokenizer(tokenizer, stop=_end_tokens(model))
        limit = getattr(model.config, "max_position_embeddings", None)
        self.context_length: int | None = int(limit) if limit else None
        self._model = model.eval()
        self.share_prefixes = share_prefixes
        self._passes = partial(pack, max_batch=max_batch, reproducible=reproducible, share_prefixes=share_prefixes)
        self._packing: Packing | _Alone | None = None
        self._trying = threading.Lock()
        self.batcher = Batcher(self._engine, name=self.name)

    @cached_property
    def reasoning(self) -> ReasoningFormat | None:
        """How the chat template sets reasoning apart; None where it does not."""
        return reasoning_of(self.tokenizer)

    @cached_property
    def added(self) -> Mapping[str, int]:
        """The tokens beside the vocabulary's own, special or not, by their text."""
        return {str(entry.content): int(token) for token, entry in self.tokenizer.added_tokens_decoder.items()}

    def spelling(self, token: int) -> bytes:
        """What a token stands for in a prompt, where special tokens are written out."""
        return self.vocabulary.spelling(token) or self._added_texts.get(token, b"")

    @cached_property
    def _added_texts(self) -> Mapping[int, bytes]:
        return {token: text.encode() for text, token in self.added.items()}

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

    def reader(self) -> Reader:
        """The model under a key-value cache of its own; what a session decodes with."""
        return self._engine().reader()

    def room(self, prompt: Sequence[int]) -> int:
        """Tokens that can follow a prompt in the model's context. Raises `ContextOverflowError` for none."""
        limit = self.context_length
        if limit is not None and len(prompt) >= limit:
            raise ContextOverflowError(self.name, len(prompt), limit)
        return 1 << 62 if limit is None else limit - len(prompt)

    def retire(self, reader: Reader | None) -> None:
        """A session does not need what it has read any more."""
        if isinstance(reader, PackedReader) and isinstance(self._packing, Packing):
            self._packing.retire(reader)

    @property
    def reads_alone(self) -> str | None:
        """Why each pass holds one session's tokens only; None where sessions share passes. May take a second."""
        engine = self._engine()
        return engine.reason if isinstance(engine, _Alone) else None

    def _engine(self) -> Packing | _Alone:
        """How passes are run; found out when it is first needed. Blocks."""
        with self._trying:
            if self._packing is None:
                try:
                    self._packing = self._passes(self._model)
                except UnpackableError as error:
                    self._packing = _Alone(self._model, str(error))
            return self._packing


class TransformersSession:
    """One conversation: what the model has read of it stays cached, so a turn only reads what is new."""

    def __init__(self, model: TransformersModel) -> None:
        self._model = model
        # Made in a worker thread, by the first generation.
        self._reader: Reader | None = None
        self._busy = False
        self._closed = False
        self._answer = Answer(model.tokenizer, model.spelling)

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

        def begin() -> _Begun:
            prompt = self._answer.cut(messages, assistant_prefill, thinks=thinks)
            room = self._model.room(prompt)
            if self._reader is None:
                self._reader = self._model.reader()
            decoder = Decoder(
                self._model.vocabulary,
                prefix=prefix,
                sampling=sampling,
                stop_policy=stop_policy,
                max_tokens=min(max_tokens, room),
                stop=stop,
                stop_tokens=[token for text in stop if (token := self._model.added.get(text)) is not None],
                salt=len(prompt),
                steer=steer,
            )
            return _Begun(prompt, self._reader, decoder)

        self._busy = True
        try:
            turn = _Turn(begin)
            await self._model.batcher.run(turn, on_token)
            generation = turn.decoder.generation(turn.usage(), model_s=turn.model_s)
            self._answer.grow(generation)
            return generation
        finally:
            self._busy = False
            self._let_go()

    async def aclose(self) -> None:
        """Drop the cache, or have it dropped when the generation at work ends; the model itself stays loaded."""
        self._closed = True
        self._let_go()

    def _let_go(self) -> None:
        if self._closed and not self._busy:
            self._model.retire(self._reader)
            self._reader = None


class _Begun(NamedTuple):
    """What a turn starts with."""

    prompt: list[int]
    reader: Reader
    decoder: Decoder


class _Turn:
    """One generation at work: a job of the batcher; all but its creation happens in a worker thread."""

    prompt: list[int]
    reader: Reader
    decoder: Decoder

    def __init__(self, begin: Callable[[], _Begun]) -> None:
        self._begin = begin
        # Of the prompt; the rest of it was in the cache.
        self._prefilled = 0
        self._pending: list[int] = []
        self.model_s = 0.0

    def start(self) -> None:
        """Keep of the cache what the prompt begins with."""
        self.prompt, self.reader, self.decoder = self._begin()
        self._keep()

    def _keep(self) -> None:
        self._pending = self.prompt[self.reader.rewind(self.prompt) :]

    def next(self) -> Sequence[int]:
        """What is to be read next. Of a prompt, other sessions may have read more meanwhile."""
        if not self.decoder.generated and len(self._pending) > 1:
            self._keep()
        return self._pending

    @property
    def finished(self) -> bool:
        """Has the text ended?"""
        return self.decoder.finish is not None

    def take(self, read: int, scores: npt.NDArray[np.float32], model_s: float) -> TokenRecord | None:
        """Once all that was pending is read, choose a token. None where none was chosen."""
        start = perf_counter()
        self._pending = self._pending[read:]
        if not self.decoder.generated:
            self._prefilled += read
        record = None
        oracle_before, taken_back = self.decoder.oracle_s, self.decoder.taken_back
        if not self._pending:
            record = self.decoder.step(scores)
            if self.decoder.taken_back > taken_back:
                self._pending = self._go_back()
            elif record is not None and record.token is not None:
                self._pending = [record.token]
        self.model_s += model_s + perf_counter() - start - (self.decoder.oracle_s - oracle_before)
        return record

    def _go_back(self) -> list[int]:
        """Take from the cache what the decoder took back; what is to be read again."""
        series = [*self.prompt, *(record.token for record in self.decoder.records if record.token is not None)]
        return series[self.reader.rewind(series) :]

    def usage(self) -> Usage:
        """The tokens of this turn. A generation that ended before its first token has read no prompt."""
        unread = 0 if self.decoder.generated else len(self._pending)
        return Usage(
            prompt_tokens=len(self.prompt),
            cached_tokens=len(self.prompt) - self._prefilled - unread,
            prefilled_tokens=self._prefilled,
            generated_tokens=self.decoder.generated,
        )


class _Alone:
    """Passes of a model that is read one sequence at a time."""

    max_batch = 1

    def __init__(self, model: Any, reason: str) -> None:
        self._model = model
        self.reason = reason
        self.portion = portion(model)

    def reader(self) -> CachedReader:
        """An empty sequence."""
        return CachedReader(self._model)

    def read(self, parts: Sequence[tuple[CachedReader, Sequence[int]]]) -> list[npt.NDArray[np.float32]]:
        """Read tokens after those of the readers, one after the other."""
        return [reader.extend(tokens) for reader, tokens in parts]


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


Reader = PackedReader | CachedReader


def _end_tokens(model: Any) -> list[int]:
    """End tokens that the model's generation settings name beside the tokenizer's own."""
    ends = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    if ends is None:
        return []
    return [int(ends)] if isinstance(ends, int) else [int(end) for end in ends]
