"""OpenTelemetry spans of runs, by the conventions for generative AI, from events alone.

    invoke_agent NAME                       one run
    ├── chat MODEL                          the text of one step, and the reasoning before it
    └── execute_tool TOOL                   a tool call of the step; nested ones come one by one

Names follow `opentelemetry.semconv`'s `gen_ai` attributes
(1.41, in development); what those have no name for is under `agentkit.`. Texts of prompts, steps, arguments and results
are left out unless asked for. Needs `pip install "aufbau[otel]"`.
"""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, final

from agentkit.events import (
    Event,
    RunEnded,
    RunStarted,
    StepProposed,
    TokenGenerated,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from agentkit.models import FinishReason, MissingExtraError, TokenRecord
from agentkit.result import RunResult, StopReason, TurnTelemetry
from episodes import Turn, plain

if TYPE_CHECKING:
    from opentelemetry.trace import Span, TracerProvider

# A run that waits for an approval has not failed.
_GOOD_ENDS: Final = frozenset({StopReason.RETURNED, StopReason.DEFERRED})
_FINISH: Final = {FinishReason.SATISFIED: "stop", FinishReason.STOP: "stop", FinishReason.LENGTH: "length"}


@final
class OpenTelemetryHandler:
    """Pass it as `on_event`. It serves runs one after the other; runs at the same time need a handler each.

    `tracer_provider` is the global one by default, and the span that is current where a run begins is the parent.
    `capture_content` adds the texts: messages, steps, arguments and results. `agent` and `provider` are the names under
    which dashboards group spans.
    Leaving a `with` block ends the spans of a run that was left unfinished.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        capture_content: bool = False,
        agent: str = "agentkit",
        provider: str = "agentkit",
    ) -> None:
        try:
            self._api: Final[Any] = importlib.import_module("opentelemetry.trace")
        except ModuleNotFoundError as error:
            raise MissingExtraError("opentelemetry-api", extra="otel", purpose="making spans of runs") from error
        self._tracer: Final = self._api.get_tracer("agentkit", tracer_provider=tracer_provider)
        self._content: Final = capture_content
        self._agent: Final = agent
        self._provider: Final = provider
        self._run: Span | None = None
        self._forget()

    def _forget(self) -> None:
        self._model: str | None = None
        self._sampling: dict[str, object] = {}
        self._free()

    def _free(self) -> None:
        """No turn is going on."""
        self._turn = 0
        self._chat: Span | None = None
        self._tool: Span | None = None
        self._chat_end: int | None = None
        self._tokens: list[TokenRecord] = []
        self._reasoning = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End what is still open."""
        self._abandon(error)

    def __call__(self, event: Event) -> None:
        """Hear an event."""
        now = time.time_ns()
        match event:
            case RunStarted():
                self._abandon(None)
                self._begin(event, now)
            case TurnStarted():
                self._ask(event.turn, now, event)
            case TokenGenerated():
                self._ask(event.turn, now)
                self._tokens.append(event.token)
                self._reasoning += event.reasoning
            case StepProposed():
                self._ask(event.turn, now)
                self._chat_end = now
            case ToolStarted():
                self._call(event, now)
            case ToolEnded():
                self._called(event, now)
            case TurnEnded():
                self._ask(event.turn.number, now)
                self._answered(event.turn, event.telemetry, now)
            case RunEnded():
                self._end(event, now)

    # The run

    def _begin(self, event: RunStarted | None, now: int) -> Span:
        attributes: dict[str, object] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": self._provider,
            "gen_ai.agent.name": self._agent,
        }
        if event is not None:
            self._model = event.model
            self._sampling = {"gen_ai.request.temperature": event.sampling.temperature}
            if event.sampling.seed is not None:
                self._sampling["gen_ai.request.seed"] = event.sampling.seed
            attributes |= {
                "agentkit.episode": event.episode.name,
                "gen_ai.request.model": event.model,
                "agentkit.mode": event.mode.value,
                **self._sampling,
            }
            if self._content:
                attributes["gen_ai.input.messages"] = _messages([("user", event.episode.prompt, None)])
        name, kind = f"invoke_agent {self._agent}", self._api.SpanKind.INTERNAL
        run: Span = self._tracer.start_span(name, kind=kind, attributes=attributes, start_time=now)
        self._run = run
        return run

    def _end(self, event: RunEnded, now: int) -> None:
        run, result = self._run or self._begin(None, now), event.result
        self._close_turn(result, event.error, now)
        run.set_attributes(_usage(result))
        run.set_attribute("agentkit.stop_reason", result.stop_reason.value)
        run.set_attribute("agentkit.episode", result.episode)
        if result.grade is not None:
            run.set_attribute("agentkit.passed", result.grade.passed)
        if self._content and result.stop_reason is StopReason.RETURNED:
            text = json.dumps(plain(result.output), ensure_ascii=False)
            run.set_attribute("gen_ai.output.messages", _messages([("assistant", text, "stop")]))
        if result.stop_reason not in _GOOD_ENDS:
            self._fail(run, _kind(event.error) or result.stop_reason.value, event.error)
        run.end(end_time=now)
        self._run = None
        self._forget()

    def _abandon(self, error: BaseException | None) -> None:
        """End the spans of a run that will tell nothing more."""
        if self._run is None:
            return
        now = time.time_ns()
        self._close_turn(None, error, now)
        self._run.set_attribute("agentkit.stop_reason", StopReason.RUNNING.value)
        if error is not None:
            self._fail(self._run, _kind(error), error)
        self._run.end(end_time=now)
        self._run = None
        self._forget()

    # A turn

    def _ask(self, turn: int, now: int, event: TurnStarted | None = None) -> None:
        """Begin the chat span of a turn, unless it is there."""
        if self._chat is not None:
            return
        self._turn = turn
        attributes: dict[str, object] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": self._provider,
            "gen_ai.output.type": "text",
            "agentkit.turn": turn,
            **self._sampling,
        }
        if self._model is not None:
            attributes["gen_ai.request.model"] = self._model
        if self._content and event is not None:
            asked = [(message.role, message.content, None) for message in event.messages]
            attributes["gen_ai.input.messages"] = _messages(asked)
        name = f"chat {self._model}" if self._model else "chat"
        self._chat = self._child(name, self._api.SpanKind.CLIENT, attributes, now)

    def _call(self, event: ToolStarted, now: int) -> None:
        attributes: dict[str, object] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": event.tool,
            "gen_ai.tool.type": "function",
            "agentkit.turn": event.turn,
        }
        if self._content:
            arguments = {name: plain(value) for name, value in event.arguments.items()}
            attributes["gen_ai.tool.call.arguments"] = json.dumps(arguments, ensure_ascii=False)
        self._tool = self._child(f"execute_tool {event.tool}", self._api.SpanKind.INTERNAL, attributes, now)

    def _called(self, event: ToolEnded, now: int) -> None:
        tool = self._tool
        if tool is None:
            return
        if event.error is not None:
            # What the tool itself raised says more than that it raised.
            self._fail(tool, _kind(event.error.__cause__ or event.error), event.error)
        elif self._content:
            result = json.dumps(plain(event.result), ensure_ascii=False)
            tool.set_attribute("gen_ai.tool.call.result", result)
        tool.end(end_time=now)
        self._tool = None

    def _answered(self, turn: Turn, told: TurnTelemetry | None, now: int) -> None:
        """End the chat span of a committed turn."""
        chat = self._chat
        if chat is None:
            return
        chat.set_attributes(self._generated(told))
        if self._content:
            finish = _finish(told) if told is not None else "stop"
            chat.set_attribute("gen_ai.output.messages", _messages([("assistant", turn.text, finish)]))
        if turn.error is not None and turn.step is None:
            self._fail(chat, "not_a_step", None, turn.error if self._content else None)
        chat.end(end_time=self._chat_end or now)
        self._free()

    def _generated(self, told: TurnTelemetry | None) -> dict[str, Any]:
        tokens = self._tokens
        attributes: dict[str, Any] = {
            "gen_ai.usage.output_tokens": len(tokens),
            "gen_ai.usage.reasoning.output_tokens": self._reasoning,
            "agentkit.tokens.overruled": sum(not token.first_choice for token in tokens),
            "agentkit.tokens.rejected": sum(token.rejected for token in tokens),
            "agentkit.tokens.steered": sum(token.steered for token in tokens),
        }
        if tokens:
            attributes["agentkit.entropy.mean"] = sum(token.entropy for token in tokens) / len(tokens)
        if told is not None:
            attributes |= {
                "gen_ai.response.finish_reasons": [_finish(told)],
                "gen_ai.usage.input_tokens": told.usage.prompt_tokens,
                "gen_ai.usage.cache_read.input_tokens": told.usage.cached_tokens,
                "agentkit.model_s": told.model_s,
                "agentkit.oracle_s": told.oracle_s,
            }
        return attributes

    def _close_turn(self, result: RunResult | None, error: BaseException | None, now: int) -> None:
        """End the spans of a turn that was broken off, or that ended the run without an event of its own."""
        if self._chat is None:
            return
        number = result.turns[-1].number if result is not None and result.turns else 0
        told = {one.number: one for one in result.telemetry} if result is not None else {}
        if result is not None and self._turn == number:
            self._answered(result.turns[-1], told.get(number), now)
            return
        self._chat.set_attributes(self._generated(told.get(self._turn)))
        if self._tool is not None:
            self._fail(self._tool, _kind(error), error)
            self._tool.end(end_time=now)
        if error is not None and self._chat_end is None:
            self._fail(self._chat, _kind(error), error)
        self._chat.end(end_time=self._chat_end or now)
        self._free()

    # Spans

    def _child(self, name: str, kind: Any, attributes: dict[str, object], now: int) -> Span:
        parent = self._api.set_span_in_context(self._run or self._begin(None, now))
        span: Span = self._tracer.start_span(name, context=parent, kind=kind, attributes=attributes, start_time=now)
        return span

    def _fail(self, span: Span, kind: str | None, error: BaseException | None, told: str | None = None) -> None:
        """Mark a span as failed. The message may hold texts of the run, so it is content too."""
        span.set_attribute("error.type", kind or "error")
        message = told or (str(error) if error is not None and self._content else None)
        span.set_status(self._api.Status(self._api.StatusCode.ERROR, message))


def _kind(error: BaseException | None) -> str | None:
    """The class of an error, by its full name."""
    if error is None:
        return None
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _finish(told: TurnTelemetry) -> str:
    return _FINISH.get(told.finish, told.finish.value)


def _usage(result: RunResult) -> dict[str, Any]:
    usage, timing = result.usage, result.timing
    return {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.output_tokens": usage.generated_tokens,
        "agentkit.turns": usage.turns,
        "agentkit.tool_calls": usage.tool_calls,
        "agentkit.model_s": timing.model_s,
        "agentkit.oracle_s": timing.oracle_s,
        "agentkit.tools_s": timing.tools_s,
    }


def _messages(messages: Sequence[tuple[str, str, str | None]]) -> str:
    """Messages as the conventions write them; those of the model have a finish reason."""
    data: list[dict[str, Any]] = []
    for role, content, finish in messages:
        data.append({"role": role, "parts": [{"type": "text", "content": content}]})
        if finish is not None:
            data[-1]["finish_reason"] = finish
    return json.dumps(data, ensure_ascii=False)
