"""What a model is to an agent: messages in, one generation out, constrained by a prefix where asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, Protocol, Self, runtime_checkable

from aufbau.verdict import Verdict


@runtime_checkable
class PrefixLike(Protocol):
    """All that decoding needs of an oracle's prefix; `aufbau.Prefix` has it."""

    @property
    def text(self) -> bytes:
        """The bytes consumed so far."""
        ...

    @property
    def verdict(self) -> Verdict:
        """What the oracle says of `text`."""
        ...

    @property
    def extensible(self) -> bool:
        """Can anything but ignorable text still follow?"""
        ...

    def feed(self, data: bytes, /) -> Self:
        """The prefix after `data`; this one is unchanged."""
        ...

    def try_feed(self, data: bytes, /) -> Verdict:
        """The verdict after `data`, committing nothing."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


class StopPolicy(Enum):
    """When a constrained model may end its answer by itself."""

    # Stop tokens are admissible only where the prefix is SATISFIED.
    STRICT = "strict"
    # Stop tokens are always admissible, as in the paper's experiments; the answer may then be unfinished.
    PAPER = "paper"


class FinishReason(Enum):
    """Why a generation ended."""

    # Constrained, complete, and nothing can follow.
    SATISFIED = "satisfied"
    # The model chose a stop token, or unconstrained text reached a stop string.
    STOP = "stop"
    # The token budget or the model's context is used up.
    LENGTH = "length"
    # No token at all is admissible after the text so far.
    DEAD_END = "dead_end"


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """How the next token is drawn from the admissible ones."""

    # 0 is greedy: the most probable admissible token, the lowest id where several are equally probable.
    temperature: float = 0.0
    # Equal seeds and prompts give equal generations; None draws a fresh seed each time.
    seed: int | None = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.temperature < float("inf"):
            raise ValueError(f"temperature must be a finite number from 0 on, not {self.temperature}")
        if self.seed is not None and self.seed < 0:
            raise ValueError(f"seed must be a whole number from 0 on, not {self.seed}")


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenRecord:
    """What happened when one token was chosen."""

    # None where a model has no tokens (scripted text).
    token: int | None
    # Empty for a stop token or another special one.
    text: bytes
    # Of the model's whole distribution before the mask, in nats.
    entropy: float
    # The model's own choice (or draw) was admissible.
    first_choice: bool
    # Candidates tried and refused before this one.
    rejected: int
    # Natural logarithm of the token's probability before the mask, at temperature 1.
    logprob: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Tokens of one or several generations."""

    prompt_tokens: int = 0
    # Part of the prompt that was found in the session's key-value cache.
    cached_tokens: int = 0
    # Part of the prompt that the model had to read.
    prefilled_tokens: int = 0
    # Tokens chosen, a stop token included.
    generated_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            prefilled_tokens=self.prefilled_tokens + other.prefilled_tokens,
            generated_tokens=self.generated_tokens + other.generated_tokens,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Timing:
    """Seconds of one or several generations, apart by who spent them."""

    # Forward passes, and reading the scores: all that decoding without an oracle costs too.
    model_s: float = 0.0
    # Finding an admissible token, and feeding it.
    oracle_s: float = 0.0

    def __add__(self, other: Timing) -> Timing:
        return Timing(model_s=self.model_s + other.model_s, oracle_s=self.oracle_s + other.oracle_s)


@dataclass(frozen=True, kw_only=True, slots=True)
class Generation:
    """One answer of a model."""

    # Only what was generated; an `assistant_prefill` is not repeated. A character cut by LENGTH reads as
    # U+FFFD.
    text: str
    # The given prefix after `text`; None for an unconstrained generation.
    prefix: PrefixLike | None
    tokens: tuple[TokenRecord, ...]
    finish: FinishReason
    usage: Usage = field(default_factory=Usage)
    timing: Timing = field(default_factory=Timing)


class Session(Protocol):
    """One conversation with a model; keeps what it read, so that a next turn only reads what is new."""

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
        """Answer `messages`, continuing `assistant_prefill`.

        With a `prefix` every token is admissible in it, and decoding ends once it is SATISFIED and not
        extensible; text that it already contains belongs in `assistant_prefill`. Without one the text is
        free and ends at the first of the `stop` strings, which is left out. `on_token` is called in the
        caller's event loop.
        """
        ...

    async def aclose(self) -> None:
        """Give up what the session keeps; it cannot be used any more."""
        ...


class Model(Protocol):
    """A source of sessions; may be shared by any number of them."""

    @property
    def name(self) -> str:
        """What the model is called in reports."""
        ...

    def session(self) -> Session:
        """A new conversation."""
        ...
