"""How one turn gets the text of its step from the model, in each mode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Final

from agentkit.block import Block, BlockRequest, decode_block
from agentkit.models import FinishReason, Generation, Sampling, Session, Steering, StopPolicy, Timing, TokenRecord
from agentkit.modes import Mode
from agentkit.novelty import NovelPrefix
from agentkit.prompts import Prompt
from agentkit.repetition import History
from aufbau import Node, Prefix, Verdict
from dialects import LoweredDialect, Root, Step

LINE_END: Final = ("\n",)


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnBudget:
    """Generated tokens that one turn may have."""

    step: int
    reasoning: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposal:
    """The text of a step, and the step where the text is a whole, well-typed one."""

    text: str
    step: Step | None
    problem: str | None
    """Why there is no step."""

    generation: Generation
    thought: Generation | None = None
    """The reasoning before it."""

    oracle_s: float
    """Seconds of the oracle outside the generations."""

    repetition_allowed: bool = False
    """Every step was a repetition, so the rule against them was set aside."""

    @property
    def repeats(self) -> bool:
        """Whether the rule against repetitions alone forbade what the model wanted to go on with."""
        reached = self.generation.prefix
        if self.generation.finish is not FinishReason.DEAD_END or not isinstance(reached, NovelPrefix):
            return False
        return reached.next_bytes() != reached.inner.next_bytes()

    @property
    def finish(self) -> FinishReason:
        return self.generation.finish

    @property
    def generations(self) -> tuple[Generation, ...]:
        """The step's, after the reasoning's where there is one."""
        return (self.generation,) if self.thought is None else (self.thought, self.generation)

    @property
    def timing(self) -> Timing:
        """Seconds of the generations, with the judging after them."""
        return sum((one.timing for one in self.generations), Timing(oracle_s=self.oracle_s))


@dataclass(frozen=True, kw_only=True, slots=True)
class Listeners:
    """Who hears of tokens as they are chosen."""

    step: Callable[[TokenRecord], None]
    reasoning: Callable[[TokenRecord], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Decoder:
    """Asks the model for one step."""

    session: Session
    lowered: LoweredDialect
    mode: Mode
    sampling: Sampling
    stop_policy: StopPolicy
    history: History

    @property
    def thinks_aloud(self) -> bool:
        """Whether reasoning stands in the text of the answer, since the model has no form of its own for it."""
        return self.mode.reasons and self.session.reasoning is None

    async def propose(self, prompt: Prompt, start: Prefix, budget: TurnBudget, listeners: Listeners) -> Proposal:
        """One step from `start`, which may hold the beginning of its text."""
        begun = perf_counter()
        novel = NovelPrefix(start, self._repeats) if self.mode.well_typed and self.history.has_pure_calls else None
        # Where every step there is repeats a call, a repetition is better than no step at all.
        allowed = novel is not None and novel.verdict is Verdict.LOST
        request = BlockRequest(
            messages=prompt.messages,
            start=start,
            syntactic_start=self._twin(start) if self.mode is Mode.SYNTACTIC else None,
            constraint=None if allowed else novel,
            mode=self.mode,
            sampling=self.sampling,
            stop_policy=self.stop_policy,
            max_tokens=budget.step,
            reasoning_tokens=budget.reasoning,
            prefill=prompt.prefill,
            reasoning_opening=prompt.reasoning_opening,
            reasoning_stop=prompt.reasoning_stop,
            free_stop=LINE_END,
        )
        spent = perf_counter() - begun
        block = await decode_block(self.session, request, listeners.step, listeners.reasoning)
        return self._read(block, spent, allowed)

    def _twin(self, start: Prefix) -> Prefix:
        """The same text under the grammar without its typing rules."""
        return self.lowered.oracle.syntactic().start(symbol=str(Root.STEP)).feed(start.text)

    def _repeats(self, tree: Node) -> bool:
        return self.history.has_called(self.lowered.read_step(tree))

    def _read(self, block: Block, spent: float, repetition_allowed: bool) -> Proposal:
        begun = perf_counter()
        generation = block.generation
        # What a masked text could not go on with is a part of what the model wanted, so there is no step.
        whole = generation.finish is not FinishReason.DEAD_END or not self.mode.masked
        tree = block.reached.tree() if whole else None
        step = self.lowered.read_step(tree) if tree is not None else None
        return Proposal(
            text=block.text,
            step=step,
            problem=None if step is not None else self._problem(block),
            generation=generation,
            thought=block.thought,
            oracle_s=spent + block.oracle_s + perf_counter() - begun,
            repetition_allowed=repetition_allowed,
        )

    def _problem(self, block: Block) -> str:
        """Why the text is no step."""
        if self.mode.well_typed or (self.mode.masked and block.verdict is not Verdict.LOST):
            return _cut_short(block.generation)
        return str(block.reached.explain()) if block.text else "the answer is empty"


def _cut_short(generation: Generation) -> str:
    """Why a masked generation is no step."""
    match generation.finish:
        case FinishReason.LENGTH if generation.steering is Steering.TOO_SMALL:
            return generation.steering_reason
        case FinishReason.LENGTH:
            return f"it was cut off after {len(generation.tokens)} tokens"
        case FinishReason.DEAD_END:
            return "nothing that the model can write may follow"
        case _:
            return "the model stopped before the end of the step"
