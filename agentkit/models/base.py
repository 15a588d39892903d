"""What a model is to an agent: messages in, one generation out, constrained by a prefix where asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, Protocol, Self, runtime_checkable

from agentkit.models.reasoning import ReasoningFormat
from aufbau.verdict import Verdict
from aufbau.witness import Witness


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


@runtime_checkable
class Completable(PrefixLike, Protocol):
    """A prefix that can say how it may end; `aufbau.Prefix` can."""

    def witness(self, max_bytes: int, max_steps: int, *, prove: bool = True) -> Witness:
        """A short continuation that makes the text SATISFIED, or why none is known; `prove` seeks a proof of that."""
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


class Steering(Enum):
    """What became of a constrained generation's promise to end SATISFIED within its budget."""

    # Nothing was promised: it was not asked, the text is free, or the stop policy is the paper's.
    OFF = "off"
    # The text came to its end with no token refused on the budget's account.
    NOT_NEEDED = "not_needed"
    # Tokens were refused or taken back, and so the text ends SATISFIED.
    KEPT = "kept"
    # The nearest end that was found is further away than the whole budget, so nothing was generated.
    TOO_SMALL = "too_small"
    # No end was found within the bounds of the search, so nothing is promised; `steering_reason` says why.
    UNKNOWN = "unknown"


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
    # The budget chose it: better tokens were refused, as far as they were tried, after which it is not enough to end.
    steered: bool = False
    # What the model would have written instead; None where that is this token, or isn't known.
    preferred: bytes | None = None
    # How much less probable this token is than the likeliest one, in nats; None where the model has no scores.
    given_up: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Tokens of one or several generations."""

    prompt_tokens: int = 0
    # Part of the prompt that was found in the session's key-value cache.
    cached_tokens: int = 0
    # Part of the prompt that the model had to read.
    prefilled_tokens: int = 0
    # Tokens chosen, a stop token and tokens that were taken back included.
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
    steering: Steering = Steering.OFF
    # Of TOO_SMALL and UNKNOWN.
    steering_reason: str = ""


class Session(Protocol):
    """One conversation with a model; keeps what it read, so that a next turn only reads what is new."""

    @property
    def reasoning(self) -> ReasoningFormat | None:
        """How the model sets its reasoning apart; None for a model without a form of its own."""
        ...

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
        """Answer `messages`, continuing `assistant_prefill`.

        With a `prefix` every token is admissible in it, and decoding ends once it is SATISFIED and not
        extensible; text that it already contains belongs in `assistant_prefill`. Without one the text is
        free and ends at the first of the `stop` strings, which is left out. `on_token` is called in the
        caller's event loop.

        The prefill begins where the model's own form puts the answer, its reasoning skipped; with `thinks`, where
        that form puts the reasoning, behind its opening tag. What this session generated last in the same answer
        stays cut into tokens as it was generated, so that an answer after reasoning reads nothing again.

        With `steer` a constrained text ends SATISFIED within `max_tokens`, where an end is known and the policy is
        STRICT (`agentkit.models.budget` has the rule). Tokens may be taken back for it: `on_token` has heard of
        them, the generation does not hold them.
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
