"""Models whose answers are given texts, for tests, examples and recorded runs: no network, no weights."""

from __future__ import annotations

import inspect
import re
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from time import perf_counter

import anyio.lowlevel

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
from agentkit.models.errors import ScriptError, SessionError
from agentkit.models.reasoning import ReasoningFormat
from aufbau.verdict import Verdict

# What counts as one token of a given text: a word with the white space before it.
_PIECE = re.compile(r"\s*\S+|\s+")

Answer = Callable[[Sequence[Message], PrefixLike | None], str | Awaitable[str]]


class ScriptedModel:
    """Answers with the given replies, one for each `generate`, in order and over all sessions.

    A constrained reply is held to the oracle like any model's: it ends with DEAD_END before the first
    byte that is refused. A reply that stops while its prefix is LIVE counts as cut off: LENGTH under the
    strict stop policy, under which no model could have stopped there, and STOP under the paper's.
    """

    def __init__(
        self, replies: Iterable[str], *, name: str = "scripted", reasoning: ReasoningFormat | None = None
    ) -> None:
        """`reasoning` makes it a model that sets its reasoning apart in this form."""
        self.name = name
        self._reasoning = reasoning
        self._replies = deque(replies)
        self._given = 0

    def session(self) -> TextSession:
        """A conversation; all conversations of one model share its replies."""
        return TextSession(self._next, self._reasoning)

    @property
    def remaining(self) -> int:
        """Replies that were not asked for yet; a test may want none left."""
        return len(self._replies)

    def _next(self, _messages: Sequence[Message], _prefix: PrefixLike | None) -> str:
        if not self._replies:
            raise ScriptError(
                f"the scripted model has given all its {self._given} replies and was asked for another;"
                " script one more, or lower the run's turn limit"
            )
        self._given += 1
        return self._replies.popleft()


class FunctionModel:
    """Answers with what a function (plain or async) of messages and prefix returns, held to the oracle."""

    def __init__(self, function: Answer, *, name: str | None = None, reasoning: ReasoningFormat | None = None) -> None:
        self.name: str = name or str(getattr(function, "__name__", "function"))
        self._function = function
        self._reasoning = reasoning

    def session(self) -> TextSession:
        """A conversation; the function sees all of its messages at each turn."""
        return TextSession(self._function, self._reasoning)


class TextSession:
    """One conversation with a model whose answers are whole texts."""

    def __init__(self, answer: Answer, reasoning: ReasoningFormat | None = None) -> None:
        self._answer = answer
        self._reasoning = reasoning
        self._closed = False

    @property
    def reasoning(self) -> ReasoningFormat | None:
        """As the model was given it."""
        return self._reasoning

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
        """See `agentkit.models.Session`; nothing is sampled or steered, and a token is a word with its white space."""
        if self._closed:
            raise SessionError("this session is closed; open another with model.session()")
        await anyio.lowlevel.checkpoint()
        prompt = sum(len(_PIECE.findall(message.content)) for message in messages)
        start = perf_counter()
        # What the answer begins with is part of what the model is told.
        begun = (Message(role="assistant", content=assistant_prefill),) if assistant_prefill else ()
        reply = self._answer((*messages, *begun), prefix)
        if inspect.isawaitable(reply):
            reply = await reply
        if not isinstance(reply, str):
            raise ScriptError(f"a function model must return a str, not {type(reply).__name__}: {reply!r}")
        model_s = perf_counter() - start
        follower = _Follower(prefix, stop_policy, stop if prefix is None else ())
        for record in follower.follow(reply, max_tokens):
            if on_token is not None:
                on_token(record)
        return Generation(
            text=follower.text.decode(errors="replace"),
            prefix=follower.prefix,
            tokens=tuple(follower.records),
            finish=follower.finish,
            usage=Usage(prompt_tokens=prompt, prefilled_tokens=prompt, generated_tokens=len(follower.records)),
            timing=Timing(model_s=model_s, oracle_s=follower.oracle_s),
        )

    async def aclose(self) -> None:
        """Close the conversation."""
        self._closed = True


class _Follower:
    """Takes a given text as if a model had generated it."""

    def __init__(self, prefix: PrefixLike | None, stop_policy: StopPolicy, stop: Sequence[str]) -> None:
        self.prefix = prefix
        self.text = b""
        self.records: list[TokenRecord] = []
        self.finish = FinishReason.STOP
        self.oracle_s = 0.0
        self._stop_policy = stop_policy
        self._stop = stop

    def follow(self, reply: str, max_tokens: int) -> Iterator[TokenRecord]:
        """Take the reply word by word; sets `finish`."""
        free, stopped = self._cut(reply)
        for piece in _PIECE.findall(free):
            if len(self.records) >= max_tokens:
                self.finish = FinishReason.LENGTH
                return
            taken = self._take(piece.encode())
            self.text += taken
            if taken:
                self.records.append(
                    TokenRecord(token=None, text=taken, entropy=0.0, first_choice=True, rejected=0, logprob=0.0)
                )
                yield self.records[-1]
            if self.finish is FinishReason.DEAD_END:
                return
        self.finish = FinishReason.STOP if stopped or self.prefix is None else self._end()

    def _cut(self, reply: str) -> tuple[str, bool]:
        places = [place for text in self._stop if text and (place := reply.find(text)) >= 0]
        return (reply[: min(places)], True) if places else (reply, False)

    def _take(self, data: bytes) -> bytes:
        """Feed `data` byte by byte; returns what was admitted, without white space after a complete text."""
        if self.prefix is None:
            return data
        start = perf_counter()
        before = len(self.prefix.text)
        for place, byte in enumerate(data):
            if self._complete():
                if data[place:].strip():
                    self.finish = FinishReason.DEAD_END
                break
            after = self.prefix.feed(bytes((byte,)))
            if after.verdict is Verdict.LOST:
                self.finish = FinishReason.DEAD_END
                break
            self.prefix = after
        self.oracle_s += perf_counter() - start
        return self.prefix.text[before:]

    def _complete(self) -> bool:
        prefix = self.prefix
        return prefix is not None and prefix.verdict is Verdict.SATISFIED and not prefix.extensible

    def _end(self) -> FinishReason:
        if self._complete():
            return FinishReason.SATISFIED
        satisfied = self.prefix is not None and self.prefix.verdict is Verdict.SATISFIED
        if satisfied or self._stop_policy is StopPolicy.PAPER:
            return FinishReason.STOP
        return FinishReason.LENGTH
