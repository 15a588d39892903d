"""What runs tell by themselves: their beginning, the verdict of every token, what was refused and what that gave up."""

from __future__ import annotations

import anyio
import numpy as np
import pytest

from agentkit import Agent
from agentkit.errors import RunError
from agentkit.models import Decoder, Sampling, ScriptedModel, StopPolicy, byte_vocabulary
from agentkit.modes import Mode
from agentkit.trace import TraceRecorder, trace_page
from aufbau import Verdict
from aufbau.vocabulary import Vocabulary
from dialects import CLikeDialect
from episodes import Episode
from registry import INT, Registry, tool


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


TASK = Episode(name="sum", prompt="Add 1 and 2.", output_type=INT, expected=3)


@pytest.mark.parametrize("mode", [Mode.DIRECT, Mode.SYNTACTIC, Mode.UNCONSTRAINED])
def test_runs_tell_their_beginning_and_every_token_is_judged(mode: Mode) -> None:
    with TraceRecorder() as recorder:
        agent = Agent(ScriptedModel(["let s = add(1, 2);", "return s;"]), tools=[add], mode=mode)
        agent.run_sync(TASK, on_event=recorder)
    trace = recorder.trace
    assert (trace.model, trace.mode, trace.prompt) == ("scripted", mode, "Add 1 and 2.")
    for turn in trace.turns:
        assert [token.verdict for token in turn.tokens[:-1]] == [Verdict.LIVE] * (len(turn.tokens) - 1)
        assert turn.tokens[-1].verdict is Verdict.SATISFIED
        assert turn.messages and turn.prompt_tokens and turn.prefilled_tokens
    assert "What the model was asked" in trace_page(trace)


def test_what_ends_a_run_is_told() -> None:
    recorder = TraceRecorder()
    with pytest.raises(RunError):
        Agent(ScriptedModel([]), tools=[add]).run_sync(TASK, on_event=recorder)
    assert recorder.trace.error is not None and recorder.trace.error.startswith("ScriptError")


def test_a_record_holds_what_was_refused_and_what_that_gave_up() -> None:
    vocabulary = byte_vocabulary()
    scores = np.zeros(len(vocabulary))
    wanted, next_best = (token_of(vocabulary, byte) for byte in (b"x", b"r"))
    scores[wanted], scores[next_best] = 5.0, 3.5
    decoder = Decoder(
        vocabulary,
        prefix=CLikeDialect().lower(Registry([add])).start({}, INT),
        sampling=Sampling(),
        stop_policy=StopPolicy.STRICT,
        max_tokens=9,
    )
    record = decoder.step(scores)
    assert record is not None
    assert (record.text, record.preferred) == (b"r", b"x")
    assert record.given_up == pytest.approx(1.5)


def token_of(vocabulary: Vocabulary, spelling: bytes) -> int:
    return next(token for token in range(len(vocabulary)) if vocabulary.spelling(token) == spelling)


def test_the_first_event_of_a_run_is_its_beginning() -> None:
    async def main() -> list[str]:
        heard: list[str] = []
        agent = Agent(ScriptedModel(["return 3;"]), tools=[add])
        await agent.run(TASK, on_event=lambda event: heard.append(type(event).__name__))
        return heard

    heard = anyio.run(main)
    assert heard[:2] == ["RunStarted", "TurnStarted"]
    assert heard[-3:] == ["StepProposed", "TurnEnded", "RunEnded"]
