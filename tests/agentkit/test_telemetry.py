"""OpenTelemetry spans: nesting, names from the conventions, errors, and no content unless asked for."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence

import anyio
import pytest

from agentkit import Agent
from agentkit.errors import RunError
from agentkit.events import EventHandler, RunStarted, TurnStarted
from agentkit.models import MissingExtraError, Sampling, ScriptedModel
from agentkit.modes import Mode
from agentkit.telemetry import OpenTelemetryHandler
from episodes import Episode
from registry import INT, Registry, tool

pytest.importorskip("opentelemetry.sdk", reason="spans need the extra otel")
from opentelemetry import trace as api
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv.attributes import error_attributes
from opentelemetry.trace import SpanKind, StatusCode

SECRET = "zebra"
TASK = Episode(name="sum", prompt=f"Add 1 and 2, {SECRET}.", output_type=INT, expected=3)


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def fail(why: str) -> int:
    """Fail with a reason."""
    raise RuntimeError(why)


@tool
async def wait(a: int) -> int:
    """Wait for ever."""
    await anyio.sleep_forever()
    return a


class Spans:
    """A tracer provider that keeps its spans."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def all(self) -> Sequence[ReadableSpan]:
        """The ended spans by their beginning."""
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    def of(self, operation: str) -> list[ReadableSpan]:
        """The spans of one operation."""
        return [span for span in self.all() if attributes(span).get("gen_ai.operation.name") == operation]


def attributes(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


def run(spans: Spans, replies: Iterable[str], handler: EventHandler | None = None, **options: object) -> None:
    handler = handler or OpenTelemetryHandler(tracer_provider=spans.provider)
    agent = Agent(ScriptedModel(replies), tools=Registry([add, fail, wait]), **options)  # type: ignore[arg-type]
    agent.run_sync(TASK, on_event=handler)


def test_spans_nest_and_carry_what_the_run_used() -> None:
    spans = Spans()
    with spans.provider.get_tracer("outside").start_as_current_span("outside") as outside:
        run(spans, ["let s = add(1, 2);", "return s;"])
    (agent,), chats, (called,) = spans.of("invoke_agent"), spans.of("chat"), spans.of("execute_tool")
    assert agent.parent == outside.get_span_context()
    assert [span.parent for span in (*chats, called)] == [agent.context] * 3
    assert (agent.name, called.name) == ("invoke_agent agentkit", "execute_tool add")
    assert (agent.kind, called.kind, {span.kind for span in chats}) == (
        SpanKind.INTERNAL,
        SpanKind.INTERNAL,
        {SpanKind.CLIENT},
    )
    assert attributes(called)["gen_ai.tool.name"] == "add"
    told = attributes(agent)
    assert told["gen_ai.usage.output_tokens"] == sum(
        attributes(span)["gen_ai.usage.output_tokens"]  # type: ignore[misc]
        for span in chats
    )
    assert (told["agentkit.turns"], told["agentkit.tool_calls"], told["agentkit.passed"]) == (2, 1, True)
    assert {span.status.status_code for span in spans.all() if span.name != "outside"} == {StatusCode.UNSET}
    # One after the other: the model writes, then the tool runs, within the run.
    ends = [(span.start_time or 0, span.end_time or 0) for span in (chats[0], called, chats[1])]
    assert ends == sorted(ends) and all(one[1] <= other[0] for one, other in itertools.pairwise(ends))
    assert (agent.start_time or 0) <= ends[0][0] and ends[-1][1] <= (agent.end_time or 0)


def test_nested_calls_have_spans_one_by_one() -> None:
    spans = Spans()
    run(spans, ["return add(1, add(1, 1));"], nested=True)
    inner, outer = spans.of("execute_tool")
    assert (inner.end_time or 0) <= (outer.start_time or 0)
    assert inner.parent == outer.parent == spans.of("invoke_agent")[0].context


def test_names_are_those_of_the_conventions() -> None:
    spans = Spans()
    with pytest.raises(RunError):
        run(spans, ['let s = fail("no");'])
    full = OpenTelemetryHandler(tracer_provider=spans.provider, capture_content=True)
    run(spans, ["let s = add(1, 2);", "return s;"], full)
    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}
    used = {name for span in spans.all() for name in attributes(span) if not name.startswith("agentkit.")}
    assert used <= known | {error_attributes.ERROR_TYPE}
    operations = {attributes(span)["gen_ai.operation.name"] for span in spans.all()}
    assert operations <= {member.value for member in gen_ai_attributes.GenAiOperationNameValues}


# replies, the operation whose span failed, its error type, options of the agent
FAILURES: list[tuple[list[str], str, str, dict[str, object]]] = [
    (['let s = fail("zebra");'], "execute_tool", "RuntimeError", {}),
    (['return "zebra";', "return 3;"], "chat", "not_a_step", {"mode": "unconstrained"}),
    (["let s = add(1, 2);"], "invoke_agent", "agentkit.models.errors.ScriptError", {}),
    (["let s ="], "invoke_agent", "agentkit.errors.IncompleteStep", {}),
]


@pytest.mark.parametrize(("replies", "operation", "kind", "options"), FAILURES)
@pytest.mark.parametrize("content", [False, True])
def test_errors_mark_their_span(
    replies: list[str], operation: str, kind: str, options: dict[str, object], content: bool
) -> None:
    spans = Spans()
    handler = OpenTelemetryHandler(tracer_provider=spans.provider, capture_content=content)
    try:
        run(spans, replies, handler, **options)
        ended = True
    except RunError:
        ended = False
    failed = [span for span in spans.of(operation) if span.status.status_code is StatusCode.ERROR]
    assert [attributes(span)["error.type"] for span in failed] == [kind]
    (agent,) = spans.of("invoke_agent")
    assert (agent.status.status_code is StatusCode.UNSET) == ended
    assert len(spans.of("chat")) >= 1
    text = " ".join(span.to_json() for span in spans.all())
    if not content:
        assert SECRET not in text


def test_content_is_captured_only_when_asked_for() -> None:
    spans = Spans()
    run(spans, ["let s = add(1, 2);", "return s;"])
    assert "add(1, 2)" not in " ".join(span.to_json() for span in spans.all())
    spans = Spans()
    handler = OpenTelemetryHandler(tracer_provider=spans.provider, capture_content=True)
    run(spans, ["let s = add(1, 2);", "return s;"], handler)
    (called,) = spans.of("execute_tool")
    assert attributes(called)["gen_ai.tool.call.result"] == "3"
    assert json.loads(str(attributes(called)["gen_ai.tool.call.arguments"])) == {"a": 1, "b": 2}
    (message,) = json.loads(str(attributes(spans.of("chat")[0])["gen_ai.output.messages"]))
    assert message["parts"] == [{"type": "text", "content": "let s = add(1, 2);"}]
    assert (message["role"], message["finish_reason"]) == ("assistant", "stop")


def test_what_a_run_tells_at_its_start_is_on_its_spans() -> None:
    from dialects import CLikeDialect

    spans = Spans()
    start = CLikeDialect().lower(Registry([add])).start({}, INT)
    with OpenTelemetryHandler(tracer_provider=spans.provider, agent="adder", provider="local") as handler:
        sampling = Sampling(temperature=0.5, seed=3)
        handler(RunStarted(episode=TASK, model="tiny", mode=Mode.MIXED, sampling=sampling))
        handler(TurnStarted(turn=1, messages=(), start=start))
    # The block was left before the run ended: its spans are ended all the same.
    (agent,), (chat,) = spans.of("invoke_agent"), spans.of("chat")
    assert (agent.name, chat.name) == ("invoke_agent adder", "chat tiny")
    told = attributes(chat)
    assert (told["gen_ai.request.model"], told["gen_ai.request.temperature"], told["gen_ai.request.seed"]) == (
        "tiny",
        0.5,
        3,
    )
    assert (told["gen_ai.provider.name"], attributes(agent)["agentkit.mode"]) == ("local", "mixed")
    assert attributes(agent)["agentkit.stop_reason"] == "running"


def test_a_cancelled_run_leaves_no_open_span() -> None:
    spans = Spans()

    async def main() -> None:
        agent = Agent(ScriptedModel(["let s = wait(1);"]), tools=[wait])
        with anyio.move_on_after(0.2):
            await agent.run(TASK, on_event=OpenTelemetryHandler(tracer_provider=spans.provider))

    anyio.run(main)
    (agent,), (chat,), (called,) = spans.of("invoke_agent"), spans.of("chat"), spans.of("execute_tool")
    assert agent.status.status_code is called.status.status_code is StatusCode.ERROR
    assert chat.status.status_code is StatusCode.UNSET
    assert (chat.end_time or 0) <= (agent.end_time or 0)


def test_one_handler_serves_runs_one_after_the_other() -> None:
    spans = Spans()
    handler = OpenTelemetryHandler(tracer_provider=spans.provider)
    for _ in range(2):
        run(spans, ["return 3;"], handler)
    assert len({span.context.trace_id for span in spans.of("invoke_agent") if span.context}) == 2
    assert len(spans.all()) == 4


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r"aufbau\[otel\]"):
        OpenTelemetryHandler()


def test_the_global_provider_is_used_by_default() -> None:
    assert isinstance(api.get_tracer_provider(), api.ProxyTracerProvider)
    run(Spans(), ["return 3;"], OpenTelemetryHandler())
