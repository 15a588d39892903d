"""Scripted, function and random models: they answer like real ones and are held to the oracle."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest

from agentkit.models import (
    FinishReason,
    FunctionModel,
    Generation,
    Message,
    Model,
    PrefixLike,
    RandomModel,
    Sampling,
    ScriptedModel,
    ScriptError,
    SessionError,
    StopPolicy,
    TokenRecord,
)
from aufbau.verdict import Verdict
from tests.agentkit.models_toys import HELLO, Brackets, Digits, Nothing

GREEDY = Sampling()


def ask(
    model: Model,
    prefix: PrefixLike | None,
    *,
    policy: StopPolicy = StopPolicy.STRICT,
    max_tokens: int = 1000,
    stop: Sequence[str] = (),
) -> Generation:
    async def main() -> Generation:
        return await model.session().generate(
            HELLO, prefix=prefix, sampling=GREEDY, max_tokens=max_tokens, stop_policy=policy, stop=stop
        )

    return anyio.run(main)


STRICT, PAPER = StopPolicy.STRICT, StopPolicy.PAPER


@pytest.mark.parametrize(
    ("prefix", "reply", "policy", "text", "finish"),
    [
        (Brackets(), "(a[b])", STRICT, "(a[b])", FinishReason.SATISFIED),
        (Brackets(), "(é) \n", STRICT, "(é)", FinishReason.SATISFIED),
        (Brackets(b"(", b")"), "a)", STRICT, "a)", FinishReason.SATISFIED),
        (Brackets(), "(a] tail", STRICT, "(a", FinishReason.DEAD_END),
        (Brackets(), "(a) tail", STRICT, "(a)", FinishReason.DEAD_END),
        (Brackets(), "(a)tail", STRICT, "(a)", FinishReason.DEAD_END),
        (Brackets(), "(a", STRICT, "(a", FinishReason.LENGTH),
        (Brackets(), "(a", PAPER, "(a", FinishReason.STOP),
        (Brackets(), "", STRICT, "", FinishReason.LENGTH),
        (Digits(), "12", STRICT, "12", FinishReason.STOP),
        (Digits(), "1234", STRICT, "1234", FinishReason.SATISFIED),
        (Nothing(), "x", STRICT, "", FinishReason.DEAD_END),
        (None, "any text  at all", STRICT, "any text  at all", FinishReason.STOP),
    ],
)
def test_a_reply_is_held_to_the_oracle(
    prefix: PrefixLike | None, reply: str, policy: StopPolicy, text: str, finish: FinishReason
) -> None:
    result = ask(ScriptedModel([reply]), prefix, policy=policy)
    assert (result.text, result.finish) == (text, finish)
    assert b"".join(record.text for record in result.tokens).decode() == text
    assert result.usage.generated_tokens == len(result.tokens)
    if prefix is not None and result.prefix is not None:
        assert result.prefix.text == prefix.text + text.encode()
        assert result.prefix.verdict is not Verdict.LOST


def test_stop_strings_and_budget_of_free_text() -> None:
    assert ask(ScriptedModel(["one two\n\nthree"]), None, stop=["three", "\n\n"]).text == "one two"
    cut = ask(ScriptedModel(["one two three"]), None, max_tokens=2)
    assert (cut.text, cut.finish) == ("one two", FinishReason.LENGTH)


def test_replies_come_in_order_over_all_sessions_and_run_out_clearly() -> None:
    model = ScriptedModel(["1", "2"])
    assert [ask(model, None).text, ask(model, None).text] == ["1", "2"]
    assert model.remaining == 0
    with pytest.raises(ScriptError, match="all its 2 replies"):
        ask(model, None)


def test_a_function_sees_messages_and_prefix() -> None:
    def answer(messages: Sequence[Message], prefix: PrefixLike | None) -> str:
        return f"({messages[-1].content})" if prefix is not None else "free"

    async def later(messages: Sequence[Message], prefix: PrefixLike | None) -> str:
        await anyio.sleep(0)
        return answer(messages, prefix)

    for function in (answer, later):
        model = FunctionModel(function)
        assert ask(model, Brackets()).text == "(hello)"
        assert ask(model, None).text == "free"
        assert model.name == function.__name__


def test_a_function_must_return_text() -> None:
    with pytest.raises(ScriptError, match="not int: 3"):
        ask(FunctionModel(lambda _messages, _prefix: 3), None)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("model", [ScriptedModel(["x"]), RandomModel(1)])
def test_a_closed_session_says_so(model: Model) -> None:
    async def main() -> None:
        session = model.session()
        await session.aclose()
        await session.generate(HELLO, prefix=None, sampling=GREEDY, max_tokens=5, stop_policy=STRICT)

    with pytest.raises(SessionError, match="closed"):
        anyio.run(main)


@pytest.mark.parametrize("seed", range(20))
def test_random_answers_are_admissible_and_repeatable(seed: int) -> None:
    first, second = ask(RandomModel(seed), Brackets()), ask(RandomModel(seed), Brackets())
    assert first.text == second.text
    assert first.prefix is not None
    # A random walk may need more than the budget to come down from its brackets, but never leaves the language.
    assert (
        first.prefix.verdict
        is {
            FinishReason.SATISFIED: Verdict.SATISFIED,
            FinishReason.LENGTH: Verdict.LIVE,
        }[first.finish]
    )


def test_random_answers_mostly_end() -> None:
    ends = [ask(RandomModel(seed), Brackets()).finish for seed in range(20)]
    assert ends.count(FinishReason.SATISFIED) > 10


def test_random_answers_stop_where_they_may() -> None:
    lengths = {len(ask(RandomModel(seed), Digits()).text) for seed in range(60)}
    assert lengths == {1, 2, 3, 4}


def test_a_random_session_goes_on_drawing() -> None:
    async def main() -> list[str]:
        session = RandomModel(5).session()
        seen: list[TokenRecord] = []
        answers = [
            await session.generate(
                HELLO, prefix=None, sampling=GREEDY, max_tokens=9, stop_policy=PAPER, on_token=seen.append
            )
            for _ in range(3)
        ]
        assert len(seen) == sum(len(answer.tokens) for answer in answers)
        return [answer.text for answer in answers]

    assert len(set(anyio.run(main))) == 3
