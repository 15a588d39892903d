"""What a recorder writes down of runs: verdicts token by token, Γ, tool calls, and runs that end before their time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import anyio
import pytest

from agentkit import Agent, cli
from agentkit.errors import ToolFailed, UsageLimitExceeded
from agentkit.events import RunStarted, TokenGenerated, TurnStarted
from agentkit.limits import UsageLimits
from agentkit.models import Message, Model, Sampling, ScriptedModel, TokenRecord
from agentkit.modes import Mode
from agentkit.result import StopReason
from agentkit.trace import BindingTrace, Trace, TraceError, TraceRecorder, trace_page
from aufbau import Verdict
from dialects import CLikeDialect
from episodes import Episode
from registry import INT, Registry, builtin, tool

LIVE, SATISFIED, LOST = Verdict.LIVE, Verdict.SATISFIED, Verdict.LOST


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def fail(a: int) -> int:
    """Fail for every number."""
    raise RuntimeError(f"no {a}")


TOOLS = Registry([add, fail])
TASK = Episode(name="sum", prompt="Add 1 and 2.", output_type=INT, expected=3)


def record(text: str) -> TokenRecord:
    return TokenRecord(token=None, text=text.encode(), entropy=0.5, first_choice=True, rejected=0, logprob=-0.1)


# mode, what the step began with, the tokens, their verdicts
VERDICTS = [
    (Mode.DIRECT, "", ["let n", " = count(", "d", ");"], [LIVE, LIVE, LIVE, SATISFIED]),
    (Mode.DIRECT, "let n =", [" count(d)", ";"], [LIVE, SATISFIED]),
    (Mode.UNCONSTRAINED, "", ["\n\n", "return ", '"five', '"', ";"], [LIVE, LIVE, LOST, LOST, LOST]),
    (Mode.UNCONSTRAINED, "", ["return ", "5", ";", ""], [LIVE, LIVE, SATISFIED, SATISFIED]),
]


@pytest.mark.parametrize(("mode", "begun", "tokens", "verdicts"), VERDICTS)
def test_every_token_is_judged(mode: Mode, begun: str, tokens: list[str], verdicts: list[Verdict]) -> None:
    registry = builtin()
    start = CLikeDialect().lower(registry).start({"d": registry.find_type("docs")}, INT).feed(begun)
    recorder = TraceRecorder()
    recorder(RunStarted(episode=TASK, model="m", mode=mode, sampling=Sampling(temperature=0.5, seed=3)))
    recorder(TurnStarted(turn=1, messages=(Message(role="user", content="go"),), start=start))
    for text in tokens:
        recorder(TokenGenerated(turn=1, token=record(text)))
    trace = recorder.trace
    (turn,) = trace.turns
    assert [token.verdict for token in turn.tokens] == verdicts
    assert (turn.begun, turn.messages[0].content) == (begun, "go")
    assert (trace.model, trace.mode, trace.temperature, trace.seed) == ("m", mode, 0.5, 3)
    # The run goes on, and this is what is known of it.
    assert (trace.stop_reason, turn.finish) == (StopReason.RUNNING, None)
    times = [token.at_s for token in turn.tokens]
    assert None not in times and times == sorted(times, key=float)  # type: ignore[arg-type]


def run(replies: Iterable[str], **options: object) -> tuple[Trace, BaseException | None]:
    """The trace of a scripted run, and what ended it."""
    error: BaseException | None = None
    with TraceRecorder() as recorder:
        try:
            Agent(ScriptedModel(replies), tools=TOOLS, **options).run_sync(TASK, on_event=recorder)  # type: ignore[arg-type]
        except Exception as raised:
            error = raised
    assert Trace.from_json(recorder.trace.to_json()) == recorder.trace
    trace_page(recorder.trace)
    return recorder.trace, error


def test_a_run_is_written_down_turn_by_turn() -> None:
    trace, error = run(["let s = add(1, 2);", "return s;"])
    assert error is None
    first, last = trace.turns
    assert (first.text, first.bound) == ("let s = add(1, 2);", BindingTrace(name="s", type="int", value="3"))
    (call,) = first.calls
    assert (call.tool, call.arguments, call.result, call.error) == ("add", "a = 1, b = 2", "3", None)
    assert 0 < call.seconds <= (first.tool_s or 0)
    assert first.tool_s is not None and first.tool_s > 0
    assert first.model_s is not None and first.oracle_s is not None
    assert "".join(token.text for token in first.tokens) == first.text
    assert (last.returned, last.calls, trace.output) == ("3", (), "3")
    assert (trace.stop_reason, trace.passed, trace.usage.tool_calls) == (StopReason.RETURNED, True, 1)
    assert trace.bindings == ()


def test_a_run_that_a_tool_ends() -> None:
    trace, error = run(["let s = fail(1);"])
    assert isinstance(error, ToolFailed)
    assert trace.stop_reason is StopReason.TOOL_FAILED
    (turn,) = trace.turns
    (call,) = turn.calls
    assert (call.tool, call.result, turn.bound) == ("fail", None, None)
    assert call.error is not None and call.error.startswith("ToolExecutionError")
    assert turn.error is not None and "no 1" in turn.error
    assert "no 1" in trace_page(trace)


def test_a_run_that_a_limit_ends() -> None:
    trace, error = run(["let s = add(1, 2);"], usage_limits=UsageLimits(turn_limit=1), mode="unconstrained")
    assert isinstance(error, UsageLimitExceeded)
    assert (trace.stop_reason, len(trace.turns), trace.output) == (StopReason.LIMIT, 1, None)


def test_refused_text_is_written_down() -> None:
    trace, error = run(['return "three";', "return 3;"], mode="unconstrained")
    assert error is None
    first, last = trace.turns
    assert first.error is not None and first.observation.startswith("Not a step")
    assert (first.calls, first.returned, last.returned) == ((), None, "3")


def test_a_cancelled_run_keeps_what_was_heard() -> None:
    @tool
    async def wait(a: int) -> int:
        """Wait for ever."""
        await anyio.sleep_forever()
        return a

    recorder = TraceRecorder()

    async def main() -> None:
        agent = Agent(ScriptedModel(["let s = wait(1);"]), tools=[wait])
        with anyio.move_on_after(0.3):
            await agent.run(TASK, on_event=recorder)

    anyio.run(main)
    (turn,) = recorder.trace.turns
    assert (turn.text, turn.bound, recorder.trace.stop_reason) == ("let s = wait(1);", None, StopReason.ERROR)
    assert turn.tool_s is not None and turn.tool_s > 0.1
    (call,) = turn.calls
    assert (call.tool, call.result) == ("wait", None) and call.error is not None


def test_nested_calls_are_written_down_one_by_one() -> None:
    trace, error = run(["return add(add(1, 1), 1);"], nested=True)
    assert error is None
    assert [(call.arguments, call.result) for call in trace.turns[0].calls] == [
        ("a = 1, b = 1", "2"),
        ("a = 2, b = 1", "3"),
    ]
    assert "<code>add(a = 1, b = 1)</code> = <code>2</code>" in trace_page(trace)


def test_a_recorder_belongs_to_one_run() -> None:
    agent, recorder = Agent(ScriptedModel(["return 3;", "return 3;"]), tools=TOOLS), TraceRecorder()
    agent.run_sync(TASK, on_event=recorder)
    with pytest.raises(TraceError, match="for each run"):
        agent.run_sync(TASK, on_event=recorder)


@pytest.mark.parametrize("ending", [".html", ".json"])
def test_the_command_line_writes_a_run_down(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(spec: str) -> Model:
        return ScriptedModel(["return 3;"])

    monkeypatch.setattr(cli, "resident_model", resolve)
    (tmp_path / "e.toml").write_text('name = "e"\nprompt = "p"\noutput_type = "int"\n', encoding="utf-8")
    target = tmp_path / f"t{ending}"
    assert cli.main(["run", str(tmp_path / "e.toml"), "--trace", str(target)]) == 0
    text = target.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") if ending == ".html" else Trace.from_json(text).output == "3"
