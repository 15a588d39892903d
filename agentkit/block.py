"""One block, a tool step or a program, in each of the five modes: reasoning where there is some, text, verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Final

from agentkit.models import Generation, Message, PrefixLike, Sampling, Session, Steering, StopPolicy, TokenRecord
from agentkit.modes import Mode
from aufbau import Prefix, Verdict

# What closes reasoning where neither the model nor the request has a delimiter: an empty line.
DELIMITER: Final = "\n\n"

OnToken = Callable[[TokenRecord], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockRequest:
    """What is to be decoded, and how."""

    messages: Sequence[Message]
    start: Prefix
    """The typed prefix that the block goes on from; it may hold the block's beginning."""

    syntactic_start: Prefix | None = None
    """The same text under the twin without typing rules; SYNTACTIC needs it."""

    constraint: PrefixLike | None = None
    """What DIRECT and MIXED obey instead of `start`: the same text under a further rule."""

    mode: Mode
    sampling: Sampling
    stop_policy: StopPolicy = StopPolicy.STRICT
    max_tokens: int = 256
    """Of the block itself."""

    reasoning_tokens: int = 256
    """Of the free text before it."""

    prefill: str = ""
    """The assistant's text before the block; that of `start` comes after it by itself."""

    opening: str = ""
    """What stands between reasoning and the block, such as the first line of a code fence."""

    reasoning_opening: str = ""
    """What invites reasoning, where the model has no form of its own for it."""

    reasoning_stop: tuple[str, ...] = ()
    """Where reasoning closes, beside the model's own tag; without any: at the `opening`, or else an empty line.

    The first is written where the reasoning has run out of budget, unless there is an opening.
    """

    free_stop: tuple[str, ...] = ("\n",)
    """Where a free answer ends."""

    extract: Callable[[str], str] = str.strip
    """Cuts the block out of a free answer that begins with the text of `start`."""

    steer: bool = True
    """A masked block ends SATISFIED within `max_tokens`; `agentkit.models.budget` says when, and when not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """What came of a request."""

    text: str
    """Of the block, its beginning in `start` included."""

    reached: Prefix
    """The typed prefix after the text, in every mode."""

    reasoning: str
    generation: Generation
    """Of the block."""

    thought: Generation | None
    """Of the reasoning."""

    oracle_s: float
    """Seconds of judging, outside the generations."""

    @property
    def verdict(self) -> Verdict:
        """The paper's outcome: lost, live (abandoned) or satisfied."""
        return self.reached.verdict

    @property
    def steered(self) -> int:
        """Tokens of the block that the budget chose, instead of one that the oracle admits."""
        return sum(record.steered for record in self.generation.tokens)

    @property
    def steering(self) -> Steering:
        """Whether the block was to end SATISFIED within its budget, and what became of that."""
        return self.generation.steering

    @property
    def tokens(self) -> int:
        """Generated in all, reasoning and tokens that were taken back included."""
        return sum(one.usage.generated_tokens for one in (self.generation, self.thought) if one is not None)


async def decode_block(
    session: Session, request: BlockRequest, on_token: OnToken | None = None, on_reasoning: OnToken | None = None
) -> Block:
    """Decode one block in the request's mode; `on_token` hears of its tokens, `on_reasoning` of those before it.

    UNCONSTRAINED, DIRECT and SYNTACTIC write it where the model's own form puts an answer without reasoning. MIXED
    and THINKING let the model reason first, within `reasoning_tokens`: in its own tags where its chat template has
    some, and then the answer begins with `prefill`; else after `prefill`, up to a delimiter. The block goes on with
    the same answer, so a session reads nothing again.

    Raises what the session raises, and ValueError where SYNTACTIC has no `syntactic_start`.
    """
    thought, before = await _reason(session, request, on_reasoning) if request.mode.reasons else (None, request.prefill)
    prefix = _prefix(request)
    generation = await session.generate(
        request.messages,
        prefix=prefix,
        sampling=request.sampling,
        max_tokens=request.max_tokens,
        stop_policy=request.stop_policy,
        stop=request.free_stop if prefix is None else (),
        assistant_prefill=before + request.start.text.decode(),
        on_token=on_token,
        thinks=request.mode.reasons,
        steer=request.steer and prefix is not None,
    )
    begun = perf_counter()
    text, reached = _judged(request, generation)
    _ = reached.verdict  # which may build one more set; the prefix keeps it
    return Block(
        text=text,
        reached=reached,
        reasoning=thought.text if thought is not None else "",
        generation=generation,
        thought=thought,
        oracle_s=perf_counter() - begun,
    )


def _prefix(request: BlockRequest) -> PrefixLike | None:
    """What the tokens of the block obey."""
    if request.mode.well_typed:
        return request.constraint or request.start
    if request.mode is not Mode.SYNTACTIC:
        return None
    if request.syntactic_start is None:
        raise ValueError("mode 'syntactic' needs BlockRequest(syntactic_start=…), from oracle.syntactic().start()")
    return request.syntactic_start


async def _reason(session: Session, request: BlockRequest, on_reasoning: OnToken | None) -> tuple[Generation, str]:
    """The reasoning, and the text that the answer has before the block's own."""
    form = session.reasoning
    delimiters = request.reasoning_stop or ((request.opening,) if request.opening else (DELIMITER,))
    begun = "" if form is not None else request.prefill + request.reasoning_opening
    thought = await session.generate(
        request.messages,
        prefix=None,
        sampling=request.sampling,
        max_tokens=request.reasoning_tokens,
        stop_policy=request.stop_policy,
        stop=(form.tag, *request.reasoning_stop) if form is not None else delimiters,
        assistant_prefill=begun,
        on_token=on_reasoning,
        thinks=True,
    )
    if form is not None:
        return thought, begun + thought.text + form.closing(thought.text) + request.prefill + request.opening
    if request.opening:
        lead = "" if (begun + thought.text).endswith("\n") or not begun + thought.text else "\n"
        return thought, begun + thought.text + lead + request.opening
    return thought, begun + thought.text + delimiters[0]


def _judged(request: BlockRequest, generation: Generation) -> tuple[str, Prefix]:
    """The text of the block, and the typed prefix after it."""
    start = request.start
    begun = start.text.decode()
    if generation.prefix is not None:
        reached = generation.prefix
        if not isinstance(reached, Prefix) or reached.oracle is not start.oracle:
            reached = start.feed(reached.text[len(start.text) :])
        return (begun + generation.text).strip(), reached
    whole = begun + generation.text
    text = request.extract(whole)
    if text.startswith(begun):
        return text, start.feed(text[len(begun) :])
    # The text of `start` has been fed; what was cut from its front stays.
    return text, start.feed(whole.rstrip()[len(begun) :])
