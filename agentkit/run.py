"""One run: turn after turn, from messages to a step, its execution and an observation."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Final, final

import anyio

from agentkit.approval import Approve, Approver, Decision
from agentkit.checkpoint import Checkpoint, Pending
from agentkit.decoding import Decoder, Listeners, Proposal, TurnBudget
from agentkit.errors import (
    ConfigurationError,
    ContextWindowExceeded,
    IncompleteStep,
    ModelFailed,
    RepeatedStep,
)
from agentkit.events import (
    ContextTruncated,
    EventHandler,
    RunEnded,
    RunStarted,
    TokenGenerated,
    TurnEnded,
    TurnStarted,
)
from agentkit.execution import Executor, exceeded
from agentkit.journal import Journal
from agentkit.ledger import Ledger, Said
from agentkit.limits import UsageLimits
from agentkit.models import ContextOverflowError, FinishReason, ModelError
from agentkit.prompts import Prompt, PromptStyle, Situation, build_prompt
from agentkit.repetition import History
from agentkit.result import RunResult, StopReason
from agentkit.saving import CheckpointError
from agentkit.window import ContextPolicy
from aufbau import Prefix, Verdict
from dialects import LoweredDialect
from episodes import Episode, Turn
from registry import ToolType

_EVER: Final = 1_000_000  # turns; no return takes so many
_REMEDIES: Final = {
    FinishReason.LENGTH: "raise UsageLimits(tokens_per_step=...)",
    FinishReason.DEAD_END: "give the run a tool or a binding of the type that is wanted there",
    FinishReason.STOP: "use StopPolicy.STRICT, which admits a stop only where a step is whole",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """All that a run needs and never changes."""

    episode: Episode
    model: str
    lowered: LoweredDialect
    output: ToolType | None
    limits: UsageLimits
    style: PromptStyle
    instructions: str | None
    observe_tool_errors: bool
    on_event: EventHandler
    deps: object
    approver: Approver
    context_policy: ContextPolicy
    journal: Journal
    resumed: bool = False
    decision: Decision | None = None
    """On the step that the checkpoint holds."""


@final
class Run(AsyncIterator[Turn]):
    """A run in progress: iterate over its turns; `result` is the result so far, and at the end the whole one."""

    def __init__(self, setup: Setup, decoder: Decoder, history: History, ledger: Ledger) -> None:
        self._setup: Final = setup
        self._decoder: Final = decoder
        self._history: Final = history
        self._ledger: Final = ledger
        self._executor: Final = Executor(
            ledger=ledger,
            history=history,
            journal=setup.journal,
            registry=setup.lowered.registry,
            output=setup.output,
            limits=setup.limits,
            deps=setup.deps,
            approver=setup.approver,
            observe_tool_errors=setup.observe_tool_errors,
            on_event=setup.on_event,
        )
        if ledger.transcript.turns:
            *before, last = ledger.transcript.turns
            ledger.messages = self._prompt(before).answered(last.text)

    @property
    def result(self) -> RunResult:
        """The result so far; the whole one once the loop is over."""
        return self._ledger.result

    @property
    def checkpoint(self) -> Checkpoint:
        """Where the run stands; `Agent.resume` goes on from there."""
        return self._ledger.checkpoint

    def __aiter__(self) -> Run:
        return self

    async def __anext__(self) -> Turn:
        """The next turn. Raises a `RunError` when the run cannot go on, with the result so far."""
        if self._ledger.is_over():
            raise StopAsyncIteration
        emit = self._setup.on_event
        if self._ledger.begin():
            emit(self._started())
        try:
            turn = await self._timed_turn()
            await self._setup.journal.keep(self.checkpoint)
        except BaseException as error:
            raised = self._ended_by(error)
            emit(RunEnded(result=self._ledger.end(StopReason.ERROR), error=error))
            # A cancelled step stays on disk as it was announced: what became of it is not known.
            if isinstance(error, Exception) and not isinstance(error, CheckpointError):
                await self._setup.journal.keep(self.checkpoint)
            if raised is error:
                raise
            raise raised from error
        emit(TurnEnded(turn=turn, telemetry=self._ledger.telemetry_of(turn.number)))
        if self._ledger.is_over():
            emit(RunEnded(result=self.result))
        return turn

    def _ended_by(self, error: BaseException) -> BaseException:
        """What the caller sees of an error that ended the run: an error of the model as one of the run."""
        number = self._ledger.next_turn
        if isinstance(error, ContextOverflowError):
            more = self._setup.context_policy is ContextPolicy.RAISE and self._ledger.cut.next() is not None
            remedy = (
                "; or let the run leave something out: Agent(context_policy=ContextPolicy.TRUNCATE)" if more else ""
            )
            return ContextWindowExceeded(f"turn {number}: {error}{remedy}", result=self._ledger.end(StopReason.ERROR))
        if isinstance(error, ModelError):
            return ModelFailed(f"turn {number}: {error}", result=self._ledger.end(StopReason.ERROR))
        return error

    def _started(self) -> RunStarted:
        setup, decoder = self._setup, self._decoder
        return RunStarted(
            episode=setup.episode,
            model=setup.model,
            mode=decoder.mode,
            sampling=decoder.sampling,
            run_id=self._ledger.run_id,
            resumed=setup.resumed,
        )

    async def _timed_turn(self) -> Turn:
        """One turn within the time limits. The scopes are left before the turn is handed out."""
        limits = self._setup.limits
        rest = None if limits.run_timeout is None else max(limits.run_timeout - self._ledger.elapsed, 0.0)
        turn: Turn | None = None
        with anyio.move_on_after(rest) as run_scope, anyio.move_on_after(limits.turn_timeout):
            turn = await self._turn()
        if turn is not None:
            return turn
        if run_scope.cancelled_caught:
            exceeded(self._ledger, self._setup.limits, "run_timeout", "the run took longer than {value:g} s")
        exceeded(self._ledger, self._setup.limits, "turn_timeout", "turn {turn} took longer than {value:g} s")

    async def _turn(self) -> Turn:
        pending = self._ledger.pending
        if pending is not None:
            return await self._go_on(pending)
        budget = self._token_budget()
        begun = perf_counter()
        start = self._start()
        starting_s = perf_counter() - begun
        prompt, proposal = await self._proposal(start, budget)
        self._ledger.count(proposal, starting_s)
        self._ledger.messages = prompt.answered(proposal.text)
        said = Said.of(proposal)
        if proposal.step is None:
            return self._no_step(proposal, said, budget.step)
        self._check_repeated(self._history.propose(proposal.step), proposal.text)
        if not self._decoder.mode.well_typed and self._history.has_called(proposal.step):
            name = self._history.bound_to(proposal.step)
            told = f"{name} holds the result" if name else "it failed"
            return self._ledger.commit(said, observation=f"Called already: {told}")
        pending = Pending(text=said.text, thought=said.thought, step=proposal.step)
        self._ledger.pending = pending
        return await self._executor.execute(pending)

    async def _go_on(self, pending: Pending) -> Turn:
        """The turn of a step that a checkpoint holds; its text was asked for before."""
        self._check_turns()
        prompt = self._prompt()
        self._ledger.messages = prompt.answered(pending.text)
        self._setup.on_event(TurnStarted(turn=self._ledger.next_turn, messages=prompt.messages, start=self._start()))
        # A step that was begun had been agreed to.
        decision = self._setup.decision or (Approve() if pending.begun else None)
        return await self._executor.execute(pending, decision)

    async def _proposal(self, start: Prefix, budget: TurnBudget) -> tuple[Prompt, Proposal]:
        """What the model proposes, asked again with less where its context is too small and the policy allows."""
        number, emit, ledger = self._ledger.next_turn, self._setup.on_event, self._ledger
        listeners = Listeners(
            step=lambda token: emit(TokenGenerated(turn=number, token=token)),
            reasoning=lambda token: emit(TokenGenerated(turn=number, token=token, reasoning=True)),
        )
        prompt = self._prompt()
        while True:
            ledger.messages = prompt.answered("")
            emit(TurnStarted(turn=number, messages=prompt.messages, start=start))
            try:
                return prompt, await self._decoder.propose(prompt, start, budget, listeners)
            except ContextOverflowError as error:
                shorter = self._shorter(prompt)
                if shorter is None:
                    raise
                prompt, cut = shorter, ledger.cut.words
                told = ContextTruncated(turn=number, cut=cut, prompt_tokens=error.prompt_tokens, context=error.context)
                emit(told)

    def _shorter(self, prompt: Prompt) -> Prompt | None:
        """The next shorter prompt, which later turns keep to; None where there is none or none is allowed."""
        if self._setup.context_policy is ContextPolicy.RAISE:
            return None
        while (cut := self._ledger.cut.next()) is not None:
            self._ledger.cut = cut
            shorter = self._prompt()
            if _length(shorter) < _length(prompt):
                return shorter
        return None

    # Before the model

    def _check_turns(self) -> None:
        if len(self._ledger.transcript) >= self._setup.limits.turn_limit:
            exceeded(self._ledger, self._setup.limits, "turn_limit", "no answer was returned within {value:g} turns")

    def _token_budget(self) -> TurnBudget:
        """Tokens that the next turn may have; raises when a limit leaves no further one."""
        limits = self._setup.limits
        self._check_turns()
        reasoning = limits.reasoning_tokens if self._decoder.mode.reasons else 0
        if limits.token_limit is None:
            return TurnBudget(step=limits.tokens_per_step, reasoning=reasoning)
        rest = limits.token_limit - self._ledger.generated_tokens
        if rest <= 0:
            exceeded(
                self._ledger,
                self._setup.limits,
                "token_limit",
                "no answer was returned within {value:g} generated tokens",
            )
        reasoning = min(reasoning, max(rest // 2, rest - limits.tokens_per_step))
        return TurnBudget(step=min(limits.tokens_per_step, rest - reasoning), reasoning=reasoning)

    def _prompt(self, turns: Sequence[Turn] | None = None) -> Prompt:
        """The prompt after these turns, or after all so far."""
        situation = Situation(
            task=self._setup.episode.prompt,
            lowered=self._setup.lowered,
            output=self._setup.output,
            initial=self._setup.episode.bindings,
            turns=self._ledger.transcript.turns if turns is None else turns,
            instructions=self._setup.instructions,
            thinks_aloud=self._decoder.thinks_aloud,
            message_history=self._ledger.message_history,
            cut=self._ledger.cut,
        )
        return build_prompt(self._setup.style, situation)

    def _start(self) -> Prefix:
        """The prefix that the next step goes on from: empty, or in the first turn what the episode begins with.

        Where every token is held to the types, it is held to the turns that are left as well: a binding after which no
        turn would be left to return is no step, and a run that can't return in time ends at once.
        """
        turns = self._setup.limits.turn_limit - len(self._ledger.transcript) if self._decoder.mode.well_typed else None
        lowered, types, output = self._setup.lowered, self._ledger.bindings.types(), self._setup.output
        start = lowered.start(types, output, turns=turns)
        if turns is not None and start.verdict is Verdict.LOST:
            if output is not None and lowered.start(types, output, turns=_EVER).verdict is Verdict.LOST:
                raise ConfigurationError(
                    f"episode {self._setup.episode.name!r}: no steps return a {output.name}; give the run a tool or a"
                    " binding that has one"
                )
            what = "no answer can be returned within {value:g} turns"
            exceeded(self._ledger, self._setup.limits, "turn_limit", what)
        episode = self._setup.episode
        if self._ledger.next_turn > 1 or not episode.prefix:
            return start
        begun = start.feed(episode.prefix)
        if begun.verdict is Verdict.LOST:
            raise ConfigurationError(
                f"episode {episode.name!r}: no step can begin with its prefix {episode.prefix!r}: {begun.explain()}"
            )
        return begun

    # After the model

    def _no_step(self, proposal: Proposal, said: Said, budget: int) -> Turn:
        """What the model can mend is told to it; a constrained step that is cut short ends the run."""
        problem = proposal.problem or ""
        if not self._decoder.mode.well_typed or proposal.repeats:
            self._check_repeated(self._history.propose(proposal.text), proposal.text)
            told = f"Called already: {problem}" if proposal.repeats else f"Not a step: {problem}"
            return self._ledger.commit(said, observation=told, error=problem)
        number = self._ledger.next_turn
        self._ledger.commit(said, observation="", error=problem)
        if proposal.finish is FinishReason.LENGTH and budget < self._setup.limits.tokens_per_step:
            exceeded(
                self._ledger,
                self._setup.limits,
                "token_limit",
                "the {value:g} generated tokens of the run ended inside a step",
            )
        raise IncompleteStep(
            f"step {number} is incomplete and was not executed: {problem}; "
            f"{_REMEDIES.get(proposal.finish, 'report this')}: {proposal.text!r}",
            result=self._ledger.end(StopReason.INCOMPLETE_STEP),
        )

    def _check_repeated(self, times: int, text: str) -> None:
        limit = self._setup.limits.repeat_limit
        if times > limit:
            raise RepeatedStep(
                f"step {self._ledger.next_turn} was proposed {times} times, with repeat_limit={limit}: {text!r}; "
                "say in the task what to do with its result, or try another prompt, model or temperature",
                limit="repeat_limit",
                value=limit,
                result=self._ledger.end(StopReason.REPEATED),
            )


def _length(prompt: Prompt) -> int:
    """Characters of a prompt."""
    return sum(len(message.content) for message in prompt.messages) + len(prompt.prefill)
