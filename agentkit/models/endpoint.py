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
from agentkit.models.errors import EndpointRefused, EndpointStuck, ModelNotFoundError, SessionError
from agentkit.models.reasoning import ReasoningFormat
from agentkit.models.samples import Sample, keep
from aufbau.verdict import Verdict

# The environment variable with the key for models named on the command line.
KEY_VARIABLE: Final = "AGENTKIT_API_KEY"
# By how much a sample is warmer than one that added nothing, and how warm at most.
_WARMER: Final = 0.3
_WARMEST: Final = 1.2
# Samples in a row that add nothing, before a word of the kept text is given up.
_PATIENT: Final = 2
# The interface admits no more stop strings.
_STOPS: Final = 4
_LAST_WORD: Final = re.compile(r"(\w+|\W)\s*\Z")


class Continuation(Enum):
    """How a model is asked to go on with a text that it has begun."""

    # As MESSAGE first; as QUOTED from when the server refuses that, or a quoted text goes on where a message did not.
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
        self._records: list[TokenRecord] = []
        self._usage = Usage()
        self._timing = Timing()
        self._spent = 0
        self._fruitless = 0

    # Free text

    async def free(self, stop: tuple[str, ...]) -> Generation:
        """One sample, cut at the first stop string."""
        completion, sample = await self._ask("", {"stop": list(stop[:_STOPS])} if stop else {})
        text = completion.text
        if self._prefill and text.startswith(self._prefill):
            text = text[len(self._prefill) :]
        places = [place for one in stop if (place := text.find(one)) >= 0]
        text = text[: min(places)] if places else text
        self._report(replace(sample, accepted=text))
        self._record(text)
        cut = completion.finish == "length" and not places
        return self._generation(text, None, FinishReason.LENGTH if cut else FinishReason.STOP)

    # Constrained text

    async def constrained(self, start: PrefixLike, policy: StopPolicy) -> Generation:
        """Samples until the text is at an end that the policy allows."""
        text, prefix, furthest, retreated, rejected = "", start, 0, 0, list[str]()
        options = self._model.options
        while True:
            end = _end(prefix)
            if end is not None or self._spent >= self._max_tokens or len(self.samples) >= options.requests:
                return self._generation(text, prefix, end or FinishReason.LENGTH)
            completion, sample = await self._ask(text, {})
            began = perf_counter()
            kept = keep(completion.text, self._prefill + text, prefix)
            again = keep(completion.text, self._prefill, start) if text and not kept.whole else kept
            if again.whole and again.prefix.verdict is Verdict.SATISFIED and again is not kept:
                # The model has begun anew, and now all of it may stay.
                retreated, text, kept, self._records = retreated + len(text), "", again, []
            self._timing += Timing(oracle_s=perf_counter() - began)
            self._report(replace(sample, accepted=kept.accepted, rejected=kept.rejected, retreated=retreated))
            retreated = 0
            if kept.accepted.strip():
                text, prefix = text + kept.accepted, kept.prefix
                self._count(completion, kept.accepted)
                self._record(kept.accepted)
            # What was given up and came again is no gain.
            self._fruitless = 0 if len(text) > furthest else self._fruitless + 1
            furthest = max(furthest, len(text))
            rejected = [*(rejected if self._fruitless else ()), *([kept.rejected] if kept.rejected.strip() else ())]
            stopped = completion.finish != "length"
            if stopped and prefix.verdict is Verdict.SATISFIED and (text or not kept.rejected.strip()):
                # The model ended the text here, or would have gone on with what no text admits.
                return self._generation(text, prefix, _end(prefix) or FinishReason.STOP)
            if stopped and policy is StopPolicy.PAPER and not kept.rejected.strip():
                return self._generation(text, prefix, FinishReason.STOP)
            if self._fruitless >= options.attempts:
                raise self._stuck(text, rejected)
            if self._fruitless and self._fruitless % _PATIENT == 0 and text:
                shorter = _LAST_WORD.sub("", text)
                retreated, text = len(text) - len(shorter), shorter
                prefix = start.feed(text.encode())
                self._records = [] if not text else [_record(text, first=False, rejected=len(self.samples))]

    def _stuck(self, text: str, rejected: Sequence[str]) -> EndpointStuck:
        shown = ", ".join(repr(one[:60]) for one in list(dict.fromkeys(rejected))[-3:]) or "nothing"
        return EndpointStuck(
            f"{self._model.url}: {self._fruitless} samples of {self._model.name} in a row added nothing to "
            f"{text[-60:]!r}; the last ones would have gone on with {shown}; say in the task what is wanted, show an "
            "example, take a larger model, or allow more by EndpointOptions(attempts=...)",
            url=self._model.url,
            text=text,
            rejected=tuple(rejected),
        )

    # Requests

    async def _ask(self, text: str, more: Mapping[str, object]) -> tuple[Completion, Sample]:
        """One sample that goes on with the prefill and `text`."""
        asked = self._sampling.temperature
        temperature = max(asked, min(_WARMEST, asked + _WARMER * self._fruitless))
        seed = self._random.getrandbits(31)
        body = {
            "model": self._model.name,
            "temperature": temperature,
            "seed": seed,
            "max_tokens": max(1, self._max_tokens - self._spent),
            **more,
            **(self._model.options.extra or {}),
        }
        continued = self._continues(text)
        began = perf_counter()
        try:
            completion = await self._client.complete(self._asked(text, continued), self._body(body, continued))
        except EndpointRefused as error:
            if (
                not continued
                or self._model.options.continuation is not Continuation.AUTO
                or error.status not in (400, 422)
            ):
                raise
            continued = False
            completion = await self._client.complete(self._asked(text, continued), body)
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

    def _continues(self, text: str) -> bool:
        """Whether the next request has the text as the assistant's own message."""
        if not self._prefill + text or self._model.quotes:
            return False
        # Under AUTO, a sample that added nothing is followed by one that is asked the other way.
        return self._model.options.continuation is Continuation.MESSAGE or self._fruitless % 2 == 0

    def _body(self, body: Mapping[str, object], continued: bool) -> Mapping[str, object]:
        return {**body, **(self._model.options.extra_continued or {})} if continued else body

    def _asked(self, text: str, continued: bool) -> list[Message]:
        begun = self._prefill + text
        if not begun:
            return list(self._messages)
        said = Message(role="assistant", content=begun)
        if continued:
            return [*self._messages, said]
        quoted = f"Your answer begins so:\n\n{begun}\n\nGo on where it ends. Write only what comes next."
        return [*self._messages, said, Message(role="user", content=quoted)]

    # Books

    def _report(self, sample: Sample) -> None:
        self.samples.append(sample)
        if self._model.on_sample is not None:
            self._model.on_sample(sample)

    def _count(self, completion: Completion, kept: str) -> None:
        """Count the tokens of the kept part, by its share of the sample."""
        share = len(kept) / max(1, len(completion.text))
        self._spent += max(1, round(share * _tokens(completion)))

    def _record(self, text: str) -> None:
        record = _record(text, first=self._fruitless == 0, rejected=self._fruitless)
        self._records.append(record)
        if self._on_token is not None:
            self._on_token(record)

    def _generation(self, text: str, prefix: PrefixLike | None, finish: FinishReason) -> Generation:
        return Generation(
            text=text,
            prefix=prefix,
            tokens=tuple(self._records),
            finish=finish,
            usage=self._usage,
            timing=self._timing,
        )


def _record(text: str, *, first: bool, rejected: int) -> TokenRecord:
    return TokenRecord(
        token=None, text=text.encode(errors="replace"), entropy=0.0, first_choice=first, rejected=rejected, logprob=0.0
    )


def _end(prefix: PrefixLike) -> FinishReason | None:
    if prefix.verdict is Verdict.LOST:
        return FinishReason.DEAD_END
    if prefix.verdict is Verdict.SATISFIED and not prefix.extensible:
        return FinishReason.SATISFIED
    return None


def _tokens(completion: Completion) -> int:
    """Tokens of a completion; where the server does not count them, a token for every four characters."""
    return completion.completion_tokens if completion.completion_tokens is not None else -(-len(completion.text) // 4)
