"""Executes a proposed step: asks where somebody must agree, journals, calls the tools, and enters what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter
from typing import Final, NoReturn, final

from agentkit.approval import ApprovalRequest, ApprovalRequired, Approver, Decision, Defer, Deny, decide
from agentkit.checkpoint import Pending
from agentkit.context import RunContext
from agentkit.errors import ToolFailed, UsageLimitExceeded
from agentkit.events import EventHandler, StepProposed, ToolEnded, ToolStarted
from agentkit.journal import Journal
from agentkit.ledger import Ledger, Said
from agentkit.limits import UsageLimits
from agentkit.repetition import History, calls_of
from agentkit.result import StopReason
from episodes import EpisodeError, StepOutcome, Turn, execute_step, known_arguments
from registry import ModelRetry, Registry, RegistryError, Tool, ToolTimeoutError, ToolType


@final
class Executor:
    """What a run needs to execute steps. The step is the ledger's pending one."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        history: History,
        journal: Journal,
        registry: Registry,
        output: ToolType | None,
        limits: UsageLimits,
        deps: object,
        approver: Approver,
        observe_tool_errors: bool,
        on_event: EventHandler,
    ) -> None:
        self._ledger: Final = ledger
        self._history: Final = history
        self._journal: Final = journal
        self._registry: Final = registry
        self._output: Final = output
        self._limits: Final = limits
        self._deps: Final = deps
        self._approver: Final = approver
        self._observe: Final = observe_tool_errors
        self._emit: Final = on_event

    async def execute(self, pending: Pending, decision: Decision | None = None) -> Turn:
        """The turn of a step. With a `decision` nobody is asked for one."""
        ledger, step = self._ledger, pending.step
        said = Said(text=pending.text, thought=pending.thought, step=step)
        calls = len(list(calls_of(step)))
        limit = self._limits.tool_call_limit
        if limit is not None and ledger.tool_calls + calls > limit:
            exceeded(ledger, self._limits, "tool_call_limit", "step {turn} needs more than {value:g} tool calls in all")
        self._emit(StepProposed(turn=ledger.next_turn, text=pending.text, step=step))
        context = self._context()
        try:
            decision = await self._decision(pending, context) if decision is None else decision
            if isinstance(decision, Deny):
                told = f"Denied: {decision.reason}"
                return ledger.commit(said, observation=told, error=told)
            # On disk before the first call: what may have had an effect is never executed again unasked.
            begun = replace(pending, begun=True)
            await self._journal.announce(replace(ledger.checkpoint, pending=begun))
            ledger.pending = begun
            ledger.tool_calls += calls
            outcome = await self._outcome(pending, context)
        except ModelRetry as retry:
            self._history.record(step, succeeded=False)
            return ledger.commit(said, observation=f"Try again: {retry}", error=f"ModelRetry: {retry}")
        except (RegistryError, EpisodeError) as error:
            return self._failed(said, pending, error)
        self._history.record(step)
        return ledger.commit(said, observation=outcome.observation(), outcome=outcome)

    async def _outcome(self, pending: Pending, context: RunContext) -> StepOutcome:
        begun = perf_counter()

        async def call(tool: Tool, arguments: Mapping[str, object]) -> object:
            return await self._call(tool, arguments, context)

        try:
            return await execute_step(
                pending.step, self._ledger.bindings, self._registry, output_type=self._output, caller=call
            )
        finally:
            self._ledger.tools_s += perf_counter() - begun

    async def _call(self, tool: Tool, arguments: Mapping[str, object], context: RunContext) -> object:
        turn, begun = context.turn, perf_counter()

        def ended(result: object = None, error: BaseException | None = None) -> None:
            seconds = perf_counter() - begun
            self._emit(
                ToolEnded(turn=turn, tool=tool.name, arguments=arguments, result=result, error=error, seconds=seconds)
            )

        self._emit(ToolStarted(turn=turn, tool=tool.name, arguments=arguments))
        try:
            result = await tool.call(arguments, timeout=self._limits.tool_timeout, context=context)
        except BaseException as error:
            ended(error=error)
            raise
        ended(result)
        return result

    async def _decision(self, pending: Pending, context: RunContext) -> Decision | None:
        """The first refusal of a call of the step, else the last approval; nothing is called meanwhile."""
        decision: Decision | None = None
        for call in calls_of(pending.step):
            request = ApprovalRequest(
                tool=self._registry[call.tool],
                arguments=await known_arguments(call, self._ledger.bindings, self._registry),
                step=pending.step,
                text=pending.text,
                context=context,
            )
            decision = await decide(self._approver, request)
            if isinstance(decision, Deny):
                break
            if isinstance(decision, Defer):
                raise ApprovalRequired(
                    f"{request} waits for approval and was not executed; go on with "
                    "agent.resume(error.checkpoint, episode=..., decision=Approve()) or Deny(reason)",
                    request=request,
                    result=self._ledger.end(StopReason.DEFERRED),
                )
        return decision

    def _context(self) -> RunContext:
        ledger = self._ledger
        return RunContext(
            deps=self._deps,
            run_id=ledger.run_id,
            turn=ledger.next_turn,
            usage=ledger.usage,
            bindings=ledger.bindings,
        )

    def _failed(self, said: Said, pending: Pending, error: RegistryError | EpisodeError) -> Turn:
        number = self._ledger.next_turn
        if not isinstance(error, ToolTimeoutError):
            self._history.record(pending.step, succeeded=False)
        turn = self._ledger.commit(said, observation=f"Failed: {error}", error=str(error))
        if self._observe:
            return turn
        tool = getattr(error, "tool", None) or next((call.tool for call in calls_of(pending.step)), "return")
        raise ToolFailed(
            f"step {number}, {said.text!r}: {error}; mend the tool, let it raise ModelRetry where the "
            'model can do better, or use Agent(tool_errors="observe")',
            tool=str(tool),
            result=self._ledger.end(StopReason.TOOL_FAILED),
        ) from error


def exceeded(ledger: Ledger, limits: UsageLimits, limit: str, what: str) -> NoReturn:
    """End the run at a limit, named as the field of `UsageLimits`."""
    value = getattr(limits, limit)
    said = what.format(value=value, turn=ledger.next_turn)
    raise UsageLimitExceeded(
        f"{said}; raise UsageLimits({limit}=...) to go on",
        limit=limit,
        value=value,
        result=ledger.end(StopReason.LIMIT),
    )
