"""Models of Outlines as models of agents: the tokens, records and ends are those of our own decoder."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import anyio
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("outlines")

import outlines
import torch

from agentkit import Agent, UsageLimits
from agentkit.models import (
    ContextOverflowError,
    FinishReason,
    Generation,
    Message,
    ModelLoadError,
    PrefixLike,
    Sampling,
    SessionError,
    StopPolicy,
    TransformersModel,
)
from agentkit.models.outlines import OutlinesModel
from aufbau import Grammar, Oracle, Outcome, Verdict, Witness
from registry import tool
from tests.agentkit.models_toys import HELLO, Brackets, Digits, Nothing, byte_level_tokenizer, tiny_llama

TOKENIZER = byte_level_tokenizer()
torch.set_num_threads(1)


@cache
def pair(seed: int = 0, context: int = 4096) -> tuple[TransformersModel, OutlinesModel]:
    """The same weights, under our decoder and under Outlines."""
    weights = tiny_llama(len(TOKENIZER) + 13, seed=seed, context=context)
    return TransformersModel(weights, TOKENIZER), OutlinesModel(outlines.from_transformers(weights, TOKENIZER))


async def ask(
    session: Any,
    prefix: PrefixLike | None,
    messages: Sequence[Message] = HELLO,
    *,
    sampling: Sampling | None = None,
    max_tokens: int = 16,
    policy: StopPolicy = StopPolicy.STRICT,
    **more: Any,
) -> Generation:
    result: Generation = await session.generate(
        messages,
        prefix=prefix,
        sampling=sampling or Sampling(),
        max_tokens=max_tokens,
        stop_policy=policy,
        **more,
    )
    return result


def both(prefix: PrefixLike | None, *, seed: int = 0, **more: Any) -> tuple[Generation, Generation]:
    async def main() -> tuple[Generation, Generation]:
        ours, theirs = pair(seed)
        return await ask(ours.session(), prefix, **more), await ask(theirs.session(), prefix, **more)

    return anyio.run(main)


def same(ours: Generation, theirs: Generation) -> None:
    assert theirs.text == ours.text
    assert theirs.finish is ours.finish
    assert [t.token for t in theirs.tokens] == [t.token for t in ours.tokens]
    for one, other in zip(ours.tokens, theirs.tokens, strict=True):
        assert (other.text, other.first_choice, other.rejected) == (one.text, one.first_choice, one.rejected)
        # The whole prompt in one pass, or with a cache: rounding differs.
        assert (other.entropy, other.logprob) == pytest.approx((one.entropy, one.logprob), abs=1e-3)
    assert theirs.usage.prompt_tokens == ours.usage.prompt_tokens
    assert theirs.usage.generated_tokens == ours.usage.generated_tokens


STARTS: dict[str, PrefixLike | None] = {
    "free": None,
    "brackets": Brackets(),
    "brackets begun": Brackets(b"(", b")"),
    "digits": Digits(),
    "fun": Oracle(Grammar.load("fun")).start(context={"n": "Int"}, goal="Int -> Int"),
}


@pytest.mark.parametrize("temperature", [0.0, 1.3])
@pytest.mark.parametrize("policy", list(StopPolicy))
@pytest.mark.parametrize("name", STARTS)
def test_it_generates_what_our_decoder_does(name: str, policy: StopPolicy, temperature: float) -> None:
    start = STARTS[name]
    sampling = Sampling(temperature=temperature, seed=3)
    prefill = start.text.decode() if start is not None else ""
    same(*both(start, policy=policy, sampling=sampling, assistant_prefill=prefill))


def test_free_text_stops_at_strings() -> None:
    free, _ = both(None, max_tokens=12)
    middle = next(character for character in free.text[1:] if character.isascii())
    ours, theirs = both(None, max_tokens=12, stop=[middle])
    same(ours, theirs)
    assert theirs.finish is FinishReason.STOP


@pytest.mark.parametrize("budget", [10, 14, 30])
def test_budgets_end_well(budget: int) -> None:
    for seed in range(2):
        ours, theirs = both(STARTS["fun"], seed=seed, max_tokens=budget, steer=True)
        same(ours, theirs)
        assert theirs.prefix is not None
        assert theirs.prefix.verdict is Verdict.SATISFIED


@dataclass(frozen=True, slots=True)
class Pit:
    """A 1 and no more, or a b that nothing completes."""

    text: bytes = b""

    @property
    def verdict(self) -> Verdict:
        known = {b"": Verdict.LIVE, b"b": Verdict.LIVE, b"1": Verdict.SATISFIED}
        return known.get(self.text, Verdict.LOST)

    @property
    def extensible(self) -> bool:
        return not self.text

    def feed(self, data: bytes, /) -> Pit:
        return Pit(self.text + data)

    def try_feed(self, data: bytes, /) -> Verdict:
        return self.feed(data).verdict

    def witness(self, max_bytes: int, max_steps: int, *, prove: bool = True) -> Witness:
        end = {b"": b"1", b"1": b""}.get(self.text)
        return Witness(outcome=Outcome.NONE if end is None else Outcome.FOUND, text=end, reason="by its rule")


def test_tokens_taken_back_are_generated_anew() -> None:
    """No back end can go back; the generation begins again from the text that was kept."""
    taken_back = 0
    for seed in range(4):
        ours, theirs = both(Pit(), seed=seed, max_tokens=20, steer=True)
        assert (theirs.text, theirs.finish) == (ours.text, ours.finish) == ("1", FinishReason.SATISFIED)
        assert theirs.usage.generated_tokens == ours.usage.generated_tokens
        taken_back += theirs.usage.generated_tokens - len(theirs.tokens)
    assert taken_back


@pytest.mark.parametrize("prefix", [Nothing(), Digits(b"x"), Digits(b"1234")])
def test_ends_without_a_token(prefix: PrefixLike) -> None:
    same(*both(prefix, assistant_prefill=prefix.text.decode()))


def test_tokens_are_told_of_in_the_callers_loop() -> None:
    seen: list[tuple[int | None, int]] = []

    async def main() -> Generation:
        session = pair()[1].session()
        return await ask(
            session, Brackets(), on_token=lambda record: seen.append((record.token, threading.get_ident()))
        )

    result = anyio.run(main)
    assert [token for token, _ in seen] == [record.token for record in result.tokens]
    assert {thread for _, thread in seen} == {threading.get_ident()}


def test_errors_of_a_listener_end_the_generation() -> None:
    def object_to(_record: Any) -> None:
        raise ZeroDivisionError("no more")

    async def main() -> None:
        session = pair()[1].session()
        with pytest.raises(ZeroDivisionError, match="no more"):
            await ask(session, Brackets(), on_token=object_to)
        assert (await ask(session, Brackets())).tokens

    anyio.run(main)


@pytest.mark.parametrize("native", [False, True], ids=["anyio scope", "asyncio task"])
def test_cancelling_ends_after_the_token_at_work(native: bool) -> None:
    model = pair()[1]

    async def main() -> None:
        session = model.session()
        seen: list[Any] = []
        expected = await ask(model.session(), None, max_tokens=6)
        if native:
            task = asyncio.ensure_future(ask(session, None, max_tokens=4000, on_token=seen.append))
            while len(seen) < 3:
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            with anyio.CancelScope() as scope:

                def third(record: Any) -> None:
                    seen.append(record)
                    if len(seen) == 3:
                        scope.cancel()

                await ask(session, None, max_tokens=4000, on_token=third)
            assert scope.cancelled_caught
        again = await ask(session, None, max_tokens=6)
        assert len(seen) <= 5
        assert [t.token for t in again.tokens] == [t.token for t in expected.tokens]

    asyncio.run(main())


def test_sessions_side_by_side_do_not_disturb_each_other() -> None:
    model = pair()[1]

    async def main() -> None:
        said = [[Message(role="user", content=f"cat {i}")] for i in range(3)]
        alone = [await ask(model.session(), Brackets(), messages) for messages in said]
        together: dict[int, Generation] = {}

        async def one(i: int) -> None:
            together[i] = await ask(model.session(), Brackets(), said[i])

        async with anyio.create_task_group() as group:
            for i in range(3):
                group.start_soon(one, i)
        assert [together[i].text for i in range(3)] == [answer.text for answer in alone]

    anyio.run(main)
    anyio.run(main, backend="trio")


def test_a_session_has_one_caller_and_an_end() -> None:
    async def main() -> None:
        session = pair()[1].session()
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: ask(session, None, max_tokens=5))
            await anyio.sleep(0)
            with pytest.raises(SessionError, match="generating already"):
                await ask(session, None)
        await session.aclose()
        with pytest.raises(SessionError, match="closed"):
            await ask(session, None)

    anyio.run(main)


def test_the_context_is_a_limit_and_says_so() -> None:
    async def main() -> None:
        session = pair(context=40)[1].session()
        short = await ask(session, None, max_tokens=1000)
        assert short.finish is FinishReason.LENGTH
        assert short.usage.prompt_tokens + short.usage.generated_tokens == 40
        with pytest.raises(ContextOverflowError, match="reads at most 40 tokens"):
            await ask(session, None, [Message(role="user", content="hello " * 40)])

    anyio.run(main)


def test_models_that_cannot_be_steered_are_refused() -> None:
    with pytest.raises(ModelLoadError, match="does not steer a object"):
        OutlinesModel(object())


def test_an_agent_runs_on_it() -> None:
    @tool(pure=True)
    def double(number: int) -> int:
        """Twice a number."""
        return 2 * number

    results = [
        Agent(model, tools=[double], output_type=int, usage_limits=UsageLimits(turn_limit=3)).run_sync("Twice 4?")
        for model in pair()
    ]
    steps = [[turn.text for turn in result.turns] for result in results]
    assert steps[0] == steps[1]
    assert steps[0]
