"""How one turn gets the text of its step from the model, in each mode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Final

from agentkit.models import FinishReason, Generation, Sampling, Session, StopPolicy, Timing, TokenRecord
from agentkit.modes import Mode
from agentkit.novelty import NovelPrefix
from agentkit.prompts import Prompt
from agentkit.repetition import History
from aufbau import Node, Prefix, Verdict
from dialects import LoweredDialect, Step

LINE_END: Final = ("\n",)


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposal:
    """The text of a step, and the step where the text is a whole, well-typed one."""

    text: str
    step: Step | None
    problem: str | None
    """Why there is no step."""

    generation: Generation
    oracle_s: float
    """Seconds of the oracle outside the generation."""

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
    def timing(self) -> Timing:
        """Seconds of the generation, with the judging after it."""
        return self.generation.timing + Timing(oracle_s=self.oracle_s)


@dataclass(frozen=True, kw_only=True, slots=True)
class Decoder:
    """Asks the model for one step."""

    session: Session
    lowered: LoweredDialect
    mode: Mode
    sampling: Sampling
    stop_policy: StopPolicy
    history: History

    async def propose(
        self, prompt: Prompt, start: Prefix, max_tokens: int, on_token: Callable[[TokenRecord], None]
    ) -> Proposal:
        """One step from `start`, which may hold the beginning of its text."""
        if self.mode is Mode.DIRECT:
            return await self._direct(prompt, start, max_tokens, on_token)
        return await self._unconstrained(prompt, start, max_tokens, on_token)

    async def _direct(
        self, prompt: Prompt, start: Prefix, max_tokens: int, on_token: Callable[[TokenRecord], None]
    ) -> Proposal:
        begun = perf_counter()
        novel = NovelPrefix(start, self._repeats) if self.history.has_pure_calls else None
        # Where every step there is repeats a call, a repetition is better than no step at all.
        allowed = novel is not None and novel.verdict is Verdict.LOST
        spent = perf_counter() - begun
        prefix = start if novel is None or allowed else novel
        generation = await self._generate(prompt, start, prefix, max_tokens, on_token)
        return self._read(start, generation, spent, repetition_allowed=allowed)

    async def _generate(
        self,
        prompt: Prompt,
        start: Prefix,
        prefix: Prefix | NovelPrefix | None,
        max_tokens: int,
        on_token: Callable[[TokenRecord], None],
    ) -> Generation:
        return await self.session.generate(
            prompt.messages,
            prefix=prefix,
            sampling=self.sampling,
            max_tokens=max_tokens,
            stop_policy=self.stop_policy,
            stop=() if prefix is not None else LINE_END,
            assistant_prefill=prompt.prefill + start.text.decode(),
            on_token=on_token,
        )

    def _repeats(self, tree: Node) -> bool:
        return self.history.has_called(self.lowered.read_step(tree))

    def _read(
        self,
        start: Prefix,
        generation: Generation,
        spent: float,
        *,
        repetition_allowed: bool,
    ) -> Proposal:
        text = (start.text.decode() + generation.text).strip()
        begun = perf_counter()
        reached = generation.prefix
        inner = reached.inner if isinstance(reached, NovelPrefix) else reached
        stopped = generation.finish in (FinishReason.SATISFIED, FinishReason.STOP)
        tree = inner.tree() if stopped and isinstance(inner, Prefix) else None
        step = self.lowered.read_step(tree) if tree is not None else None
        return Proposal(
            text=text,
            step=step,
            problem=None if step is not None else _cut_short(generation),
            generation=generation,
            oracle_s=spent + perf_counter() - begun,
            repetition_allowed=repetition_allowed,
        )

    async def _unconstrained(
        self, prompt: Prompt, start: Prefix, max_tokens: int, on_token: Callable[[TokenRecord], None]
    ) -> Proposal:
        generation = await self._generate(prompt, start, None, max_tokens, on_token)
        text = (start.text.decode() + generation.text).strip()
        begun = perf_counter()
        judged = start.feed(generation.text.rstrip() if start.text else text)
        tree = judged.tree()
        step = self.lowered.read_step(tree) if tree is not None else None
        return Proposal(
            text=text,
            step=step,
            problem=None if step is not None else str(judged.explain()) if text else "the answer is empty",
            generation=generation,
            oracle_s=perf_counter() - begun,
        )


def _cut_short(generation: Generation) -> str:
    """Why a constrained generation is no step."""
    match generation.finish:
        case FinishReason.LENGTH:
            return f"it was cut off after {len(generation.tokens)} tokens"
        case FinishReason.DEAD_END:
            return "nothing that the model can write may follow"
        case _:
            return "the model stopped before the end of the step"
