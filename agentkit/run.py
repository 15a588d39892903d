"""One run: turn after turn, from messages to a step, its execution and an observation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from time import perf_counter
from typing import Final, NoReturn, final

import anyio

from agentkit.decoding import Decoder, Listeners, Proposal, TurnBudget
from agentkit.errors import (
    ConfigurationError,
    IncompleteStep,
    ModelFailed,
    RepeatedStep,
    ToolFailed,
    UsageLimitExceeded,
)
from agentkit.events import EventHandler, RunEnded, RunStarted, StepProposed, TokenGenerated, TurnEnded, TurnStarted
from agentkit.ledger import Ledger
from agentkit.limits import UsageLimits
from agentkit.models import FinishReason, ModelError
from agentkit.prompts import Prompt, PromptStyle, Situation, build_prompt
from agentkit.repetition import History, calls_of
from agentkit.result import RunResult, StopReason
from aufbau import Prefix, Verdict
from dialects import LoweredDialect, Step
from episodes import Episode, EpisodeError, Turn, execute_step
from registry import ModelRetry, RegistryError, ToolTimeoutError, ToolType

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


@final
class Run(AsyncIterator[Turn]):
    """A run in progress: iterate over its turns; `result` is the result so far, and at the end the whole one."""

    def __init__(self, setup: Setup, decoder: Decoder, history: History) -> None:
        self._setup: Final = setup
        self._decoder: Final = decoder
        self._history: Final = history
        self._ledger: Final = Ledger(setup.episode)

    @property
    def result(self) -> RunResult:
        """The result so far; the whole one once the loop is over."""
        return self._ledger.result

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
        except ModelError as error:
            result = self._ledger.end(StopReason.ERROR)
            emit(RunEnded(result=result, error=error))
            raise ModelFailed(f"turn {self._ledger.next_turn}: {error}", result=result) from error
        except BaseException as error:
            emit(RunEnded(result=self._ledger.end(StopReason.ERROR), error=error))
            raise
        emit(TurnEnded(turn=turn, telemetry=self.result.telemetry[-1]))
        if self._ledger.is_over():
            emit(RunEnded(result=self.result))
        return turn

    def _started(self) -> RunStarted:
        setup, decoder = self._setup, self._decoder
        return RunStarted(episode=setup.episode, model=setup.model, mode=decoder.mode, sampling=decoder.sampling)

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
            self._exceeded("run_timeout", "the run took longer than {value:g} s")
        self._exceeded("turn_timeout", "turn {turn} took longer than {value:g} s")

    async def _turn(self) -> Turn:
        number, budget = self._ledger.next_turn, self._token_budget()
        prompt, begun = self._prompt(), perf_counter()
        start = self._start()
        starting_s = perf_counter() - begun
        emit = self._setup.on_event
        listeners = Listeners(
            step=lambda token: emit(TokenGenerated(turn=number, token=token)),
            reasoning=lambda token: emit(TokenGenerated(turn=number, token=token, reasoning=True)),
        )
        emit(TurnStarted(turn=number, messages=tuple(prompt.messages), start=start))
        proposal = await self._decoder.propose(prompt, start, budget, listeners)
        self._ledger.count(proposal, starting_s)
        if proposal.step is None:
            return self._no_step(proposal, budget.step)
        self._check_repeated(self._history.propose(proposal.step), proposal.text)
        if not self._decoder.mode.well_typed and self._history.has_called(proposal.step):
            name = self._history.bound_to(proposal.step)
            told = f"{name} holds the result" if name else "it failed"
            return self._ledger.commit(proposal, observation=f"Called already: {told}")
        return await self._execute(proposal, proposal.step)

    # Before the model

    def _token_budget(self) -> TurnBudget:
        """Tokens that the next turn may have; raises when a limit leaves no further one."""
        limits = self._setup.limits
        if len(self._ledger.transcript) >= limits.turn_limit:
            self._exceeded("turn_limit", "no answer was returned within {value:g} turns")
        reasoning = limits.reasoning_tokens if self._decoder.mode.reasons else 0
        if limits.token_limit is None:
            return TurnBudget(step=limits.tokens_per_step, reasoning=reasoning)
        rest = limits.token_limit - self._ledger.generated_tokens
        if rest <= 0:
            self._exceeded("token_limit", "no answer was returned within {value:g} generated tokens")
        reasoning = min(reasoning, max(rest // 2, rest - limits.tokens_per_step))
        return TurnBudget(step=min(limits.tokens_per_step, rest - reasoning), reasoning=reasoning)

    def _prompt(self) -> Prompt:
        situation = Situation(
            task=self._setup.episode.prompt,
            lowered=self._setup.lowered,
            output=self._setup.output,
            initial=self._setup.episode.bindings,
            turns=self._ledger.transcript.turns,
            instructions=self._setup.instructions,
            thinks_aloud=self._decoder.thinks_aloud,
        )
        return build_prompt(self._setup.style, situation)

    def _start(self) -> Prefix:
        """The prefix that the next step goes on from: empty, or in the first turn what the episode begins with."""
        start = self._setup.lowered.start(self._ledger.bindings.types(), self._setup.output)
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

    def _no_step(self, proposal: Proposal, budget: int) -> Turn:
        """What the model can mend is told to it; a constrained step that is cut short ends the run."""
        problem = proposal.problem or ""
        if not self._decoder.mode.well_typed or proposal.repeats:
            self._check_repeated(self._history.propose(proposal.text), proposal.text)
            told = f"Called already: {problem}" if proposal.repeats else f"Not a step: {problem}"
            return self._ledger.commit(proposal, observation=told, error=problem)
        number = self._ledger.next_turn
        self._ledger.commit(proposal, observation="", error=problem)
        if proposal.finish is FinishReason.LENGTH and budget < self._setup.limits.tokens_per_step:
            self._exceeded("token_limit", "the {value:g} generated tokens of the run ended inside a step")
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

    async def _execute(self, proposal: Proposal, step: Step) -> Turn:
        ledger, limits = self._ledger, self._setup.limits
        calls = len(list(calls_of(step)))
        if limits.tool_call_limit is not None and ledger.tool_calls + calls > limits.tool_call_limit:
            self._exceeded("tool_call_limit", "step {turn} needs more than {value:g} tool calls in all")
        self._setup.on_event(StepProposed(turn=ledger.next_turn, text=proposal.text, step=step))
        ledger.tool_calls += calls
        begun = perf_counter()
        try:
            outcome = await execute_step(
                step,
                ledger.bindings,
                self._setup.lowered.registry,
                output_type=self._setup.output,
                timeout=limits.tool_timeout,
            )
        except ModelRetry as retry:
            self._history.record(step, succeeded=False)
            return ledger.commit(proposal, observation=f"Try again: {retry}", error=f"ModelRetry: {retry}")
        except (RegistryError, EpisodeError) as error:
            return self._failed(proposal, step, error)
        finally:
            ledger.tools_s += perf_counter() - begun
        self._history.record(step)
        return ledger.commit(proposal, observation=outcome.observation(), outcome=outcome)

    def _failed(self, proposal: Proposal, step: Step, error: RegistryError | EpisodeError) -> Turn:
        number = self._ledger.next_turn
        if not isinstance(error, ToolTimeoutError):
            self._history.record(step, succeeded=False)
        turn = self._ledger.commit(proposal, observation=f"Failed: {error}", error=str(error))
        if self._setup.observe_tool_errors:
            return turn
        tool = getattr(error, "tool", None) or next((call.tool for call in calls_of(step)), "return")
        raise ToolFailed(
            f"step {number}, {proposal.text!r}: {error}; mend the tool, let it raise ModelRetry where the "
            'model can do better, or use Agent(tool_errors="observe")',
            tool=str(tool),
            result=self._ledger.end(StopReason.TOOL_FAILED),
        ) from error

    def _exceeded(self, limit: str, what: str) -> NoReturn:
        value = getattr(self._setup.limits, limit)
        said = what.format(value=value, turn=self._ledger.next_turn)
        raise UsageLimitExceeded(
            f"{said}; raise UsageLimits({limit}=...) to go on",
            limit=limit,
            value=value,
            result=self._ledger.end(StopReason.LIMIT),
        )
