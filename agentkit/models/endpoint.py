"""A black-box model behind a server with OpenAI's interface of chat completions: sampled first, judged afterwards.

There are no scores to mask, so a constrained answer comes about by sampling: of each sample the longest part is kept
that is not LOST, and the model is asked to go on from there, until nothing can follow, or the text is SATISFIED and the
model ends it or would go on with what no text admits. A refused sample is never asked for as it was: the next one is
warmer, with another seed. Where several samples add nothing, a word of the kept text is given up; where that does not
help either, `EndpointStuck` says what was refused.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from time import perf_counter
from typing import Final, final

from agentkit.models.base import (
    FinishReason,
    Generation,
    Message,
    PrefixLike,
    Sampling,
    StopPolicy,
    Timing,
    TokenRecord,
    Usage,
)
from agentkit.models.completions import Completion, CompletionClient, Patience
from agentkit.models.draft import Draft, record_of
from agentkit.models.errors import EndpointRefused, EndpointStuck, ModelNotFoundError, SessionError
from agentkit.models.reasoning import ReasoningFormat
from agentkit.models.samples import Kept, Sample
from aufbau.verdict import Verdict

# The environment variable with the key for models named on the command line.
KEY_VARIABLE: Final = "AGENTKIT_API_KEY"
# By how much a sample is warmer than one that added nothing, and how warm at most.
_WARMER: Final = 0.3
_WARMEST: Final = 1.0
# Samples in a row that add nothing, before a word of the kept text is given up.
_PATIENT: Final = 2
# The interface admits no more stop strings.
_STOPS: Final = 4


class Continuation(Enum):
    """How a model is asked to go on with a text that it has begun."""

    # As MESSAGE, and after a sample that added nothing as QUOTED; always as QUOTED once the server refuses a MESSAGE.
    AUTO = "auto"
    # The text is the last message, the assistant's own: for servers that continue one.
    MESSAGE = "message"
    # The user quotes the text and asks for what comes next.
    QUOTED = "quoted"


@dataclass(frozen=True, kw_only=True, slots=True)
class EndpointOptions:
    """How an endpoint is asked."""

    continuation: Continuation = Continuation.AUTO
    # Samples in a row that add nothing, before the session gives up.
    attempts: int = 8
    # Samples for one answer in all.
    requests: int = 64
    patience: Patience = field(default_factory=Patience)
    # Fields of every request beside the usual ones.
    extra: Mapping[str, object] | None = None
    # Further fields where the last message is the assistant's, for servers that want to be told; vLLM takes
    # {"continue_final_message": True, "add_generation_prompt": False}.
    extra_continued: Mapping[str, object] | None = None

    def __post_init__(self) -> None:
        for name in ("attempts", "requests"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 at least, not {getattr(self, name)}")


@final
class EndpointModel:
    """A model of a server, such as `EndpointModel("http://localhost:8080/v1", "qwen3")`.

    The key is sent to this address alone and kept out of every message. `on_sample` hears of every sample, with what
    was kept and what was rejected. Any number of sessions may share the model.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        options: EndpointOptions | None = None,
        on_sample: Callable[[Sample], None] | None = None,
    ) -> None:
        if not re.match(r"https?://[^/]", base_url):
            raise ModelNotFoundError(f"{base_url!r} is no address; write it like http://localhost:8080/v1")
        self.name: Final = model
        self.url: Final = base_url.rstrip("/") + "/chat/completions"
        self.options: Final = options or EndpointOptions()
        self.on_sample: Final = on_sample
        # Learned from the server under AUTO.
        self.quotes = self.options.continuation is Continuation.QUOTED
        self._api_key: Final = api_key
        self._headers: Final = headers

    @classmethod
    def parse(cls, spec: str) -> EndpointModel:
        """The model of `URL#NAME`; its key is that of the environment variable AGENTKIT_API_KEY, if there is one."""
        url, _, name = spec.partition("#")
        if not name:
            raise ModelNotFoundError(f"{spec!r} names no model; write http://HOST:PORT/v1#MODEL")
        return cls(url, name, api_key=os.environ.get(KEY_VARIABLE))

    def session(self) -> EndpointSession:
        """A new conversation, with connections of its own."""
        client = CompletionClient(
            self.url, api_key=self._api_key, headers=self._headers, patience=self.options.patience
        )
        return EndpointSession(self, client)


@final
class EndpointSession:
    """One conversation with an endpoint; `samples` is what its last answer was made of."""

    def __init__(self, model: EndpointModel, client: CompletionClient) -> None:
        self._model: Final = model
        self._client: Final = client
        self._closed = False
        self.samples: tuple[Sample, ...] = ()

    @property
    def reasoning(self) -> ReasoningFormat | None:
        """None: what a server hides of a model's reasoning is no part of the text."""
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
        """See `agentkit.models.Session`. A record is the kept part of one sample; nothing is known of its probability.

        The budget counts the tokens that were kept; no budget is steered into. Raises `EndpointError`.
        """
        if self._closed:
            raise SessionError("this session is closed; open another with model.session()")
        answer = _Answer(
            model=self._model,
            client=self._client,
            messages=messages,
            sampling=sampling,
            max_tokens=max_tokens,
            prefill=assistant_prefill,
            on_token=on_token,
        )
        try:
            if prefix is None:
                return await answer.free(tuple(text for text in stop if text))
            return await answer.constrained(prefix, stop_policy)
        finally:
            self.samples = tuple(answer.samples)

    async def aclose(self) -> None:
        """Close the connections."""
        self._closed = True
        await self._client.aclose()


class _Answer:
    """One answer in the making."""

    def __init__(
        self,
        *,
        model: EndpointModel,
        client: CompletionClient,
        messages: Sequence[Message],
        sampling: Sampling,
        max_tokens: int,
        prefill: str,
        on_token: Callable[[TokenRecord], None] | None,
    ) -> None:
        self.samples: list[Sample] = []
        self._model = model
        self._client = client
        self._messages = messages
        self._sampling = sampling
        self._max_tokens = max_tokens
        self._prefill = prefill
        self._on_token = on_token
        self._random = random.Random(sampling.seed)
        self._usage = Usage()
        self._timing = Timing()

    # Free text

    async def free(self, stop: tuple[str, ...]) -> Generation:
        """One sample, cut at the first stop string."""
        completion, sample = await self._ask(None, stop)
        text = completion.text
        if self._prefill and text.startswith(self._prefill):
            text = text[len(self._prefill) :]
        places = [place for one in stop if (place := text.find(one)) >= 0]
        text = text[: min(places)] if places else text
        self._report(replace(sample, accepted=text))
        record = record_of(text)
        if self._on_token is not None:
            self._on_token(record)
        cut = completion.finish == "length" and not places
        return self._generation(text, None, FinishReason.LENGTH if cut else FinishReason.STOP, [record])

    # Constrained text

    async def constrained(self, start: PrefixLike, policy: StopPolicy) -> Generation:
        """Samples until the text is at an end that the policy allows."""
        draft, options = Draft(start, self._prefill), self._model.options
        end = _end(draft)
        while end is None:
            if draft.fruitless >= options.attempts:
                raise self._stuck(draft)
            began = perf_counter()
            if draft.fruitless and draft.fruitless % _PATIENT == 0:
                draft.retreat()
            oracle_s = perf_counter() - began
            completion, sample = await self._ask(draft)
            began = perf_counter()
            kept = draft.take(completion.text, _tokens(completion))
            end = self._ended(draft, completion, kept, policy)
            self._timing += Timing(oracle_s=oracle_s + perf_counter() - began)
            gone, draft.retreated = draft.retreated, 0
            self._report(replace(sample, accepted=kept.accepted, rejected=kept.rejected, retreated=gone))
            if kept.accepted.strip() and self._on_token is not None:
                self._on_token(record_of(kept.accepted))
        return self._generation(draft.text, draft.prefix, end, draft.records)

    def _ended(self, draft: Draft, completion: Completion, kept: Kept, policy: StopPolicy) -> FinishReason | None:
        """Why the text is at its end, if it is."""
        if (end := _end(draft)) is not None:
            return end
        if completion.finish != "length":
            refused = bool(kept.rejected.strip())
            if draft.prefix.verdict is Verdict.SATISFIED and (draft.text or not refused):
                # The model ended the text here, or would have gone on with what no text admits.
                return FinishReason.STOP
            if policy is StopPolicy.PAPER and not refused:
                return FinishReason.STOP
        if draft.tokens >= self._max_tokens or len(self.samples) + 1 >= self._model.options.requests:
            return FinishReason.LENGTH
        return None

    def _stuck(self, draft: Draft) -> EndpointStuck:
        shown = ", ".join(repr(one[:60]) for one in list(dict.fromkeys(draft.rejected))[-3:]) or "nothing"
        return EndpointStuck(
            f"{self._model.url}: {draft.fruitless} samples of {self._model.name} in a row added nothing to "
            f"{draft.text[-60:]!r}; the last ones would have gone on with {shown}; say in the task what is wanted, "
            "show an example, take a larger model, or allow more by EndpointOptions(attempts=...)",
            url=self._model.url,
            text=draft.text,
            rejected=tuple(draft.rejected),
        )

    # Requests

    async def _ask(self, draft: Draft | None, stop: tuple[str, ...] = ()) -> tuple[Completion, Sample]:
        """One sample that goes on with the prefill and the draft."""
        text, fruitless, tokens = (draft.text, draft.fruitless, draft.tokens) if draft is not None else ("", 0, 0)
        asked = self._sampling.temperature
        temperature = max(asked, min(_WARMEST, asked + _WARMER * fruitless))
        seed = self._random.getrandbits(31)
        body = {
            "model": self._model.name,
            "temperature": temperature,
            "seed": seed,
            "max_tokens": max(1, self._max_tokens - tokens),
            **({"stop": list(stop[:_STOPS])} if stop else {}),
            **(self._model.options.extra or {}),
        }
        continued = self._continues(text, fruitless)
        began = perf_counter()
        try:
            completion = await self._client.complete(self._asked(draft, continued), self._body(body, continued))
        except EndpointRefused as error:
            if (
                not continued
                or self._model.options.continuation is not Continuation.AUTO
                or error.status not in (400, 422)
            ):
                raise
            continued = False
            completion = await self._client.complete(self._asked(draft, continued), body)
            # Refused as a message and answered as a quotation: this server does not continue.
            self._model.quotes = True
        self._timing += Timing(model_s=perf_counter() - began)
        prompt = completion.prompt_tokens or 0
        self._usage += Usage(
            prompt_tokens=prompt,
            cached_tokens=min(prompt, completion.cached_tokens),
            prefilled_tokens=max(0, prompt - completion.cached_tokens),
            generated_tokens=_tokens(completion),
        )
        sample = Sample(
            accepted="",
            rejected="",
            temperature=temperature,
            seed=seed,
            finish=completion.finish,
            continued=continued,
        )
        return completion, sample

    def _continues(self, text: str, fruitless: int) -> bool:
        """Whether the next request has the text as the assistant's own message."""
        if not self._prefill + text or self._model.quotes:
            return False
        # Under AUTO, a sample that added nothing is followed by one that is asked the other way.
        return self._model.options.continuation is Continuation.MESSAGE or fruitless % 2 == 0

    def _body(self, body: Mapping[str, object], continued: bool) -> Mapping[str, object]:
        return {**body, **(self._model.options.extra_continued or {})} if continued else body

    def _asked(self, draft: Draft | None, continued: bool) -> list[Message]:
        begun = self._prefill + (draft.text if draft is not None else "")
        hint = draft.hint() if draft is not None else ""
        if begun and continued:
            return [*self._messages, Message(role="assistant", content=begun)]
        if begun:
            asked = f"Your answer begins so:\n\n{begun}\n\nGo on where it ends.{hint} Write only what comes next."
            return [*self._messages, Message(role="assistant", content=begun), Message(role="user", content=asked)]
        if (
            draft is not None
            and hint
            and not continued
            and self._model.options.continuation is not Continuation.MESSAGE
        ):
            refused = Message(role="assistant", content=draft.rejected[-1])
            return [*self._messages, refused, Message(role="user", content=f"Not so.{hint} Answer again.")]
        return list(self._messages)

    # Books

    def _report(self, sample: Sample) -> None:
        self.samples.append(sample)
        if self._model.on_sample is not None:
            self._model.on_sample(sample)

    def _generation(
        self, text: str, prefix: PrefixLike | None, finish: FinishReason, records: Sequence[TokenRecord]
    ) -> Generation:
        return Generation(
            text=text,
            prefix=prefix,
            tokens=tuple(records),
            finish=finish,
            usage=self._usage,
            timing=self._timing,
        )


def _end(draft: Draft) -> FinishReason | None:
    """Why nothing more can be asked for."""
    if draft.prefix.verdict is Verdict.LOST:
        return FinishReason.DEAD_END
    if draft.prefix.verdict is Verdict.SATISFIED and not draft.prefix.extensible:
        return FinishReason.SATISFIED
    return None


def _tokens(completion: Completion) -> int:
    """Tokens of a completion; where the server does not count them, a token for every four characters."""
    return completion.completion_tokens if completion.completion_tokens is not None else -(-len(completion.text) // 4)
