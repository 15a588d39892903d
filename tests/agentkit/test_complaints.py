"""What users of other tools complain of, each as a test here; docs/complaints.md is the table of them."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from time import process_time

import anyio
import pytest

from agentkit import (
    Agent,
    ContextWindowExceeded,
    IncompleteStep,
    RepeatedStep,
    ResumeConflict,
    RunError,
    ToolFailed,
    UsageLimitExceeded,
    UsageLimits,
)
from agentkit.models import (
    ContextOverflowError,
    FunctionModel,
    Message,
    PrefixLike,
    RandomModel,
    ScriptedModel,
    TransformersModel,
)
from aufbau import Grammar, Oracle, Verdict
from aufbau.vocabulary import Vocabulary
from episodes import Binding, Bindings, Episode, Suite, Transcript
from registry import INT, STRING, ArgumentError, MismatchError, ResultError, tool
from tests.agentkit.leaning_model import LeaningModel
from tests.agentkit.shop import OrderId, Papers, Shop

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "complaints.md"


@pytest.fixture
def shop() -> Shop:
    return Shop()


def function_agent(shop: Shop, answer: object, **options: object) -> Agent:
    return Agent(FunctionModel(answer), tools=shop.registry, **options)  # type: ignore[arg-type]


# Arguments


def test_malformed_arguments_break_nothing(shop: Shop) -> None:
    """Malformed argument JSON that breaks the retry and then the history."""
    malformed = '{"name": "roll", "arguments": {"sides": 6'
    seen: list[Sequence[Message]] = []

    def answer(messages: Sequence[Message], prefix: PrefixLike | None) -> str:
        seen.append(messages)
        return [malformed, "let r = roll(6);", "return r;"][len(seen) - 1]

    result = function_agent(shop, answer, mode="unconstrained").run_sync("Roll.")
    assert result.output == 6 and shop.calls == [6]
    assert [turn.text for turn in result.turns] == [malformed, "let r = roll(6);", "return r;"]
    # The history that the retry is asked with is a conversation as ever, and survives JSON.
    roles = [message.role for message in seen[1] if message.role != "system"]
    assert roles == [("user", "assistant")[place % 2] for place in range(len(roles))]
    assert any(malformed in message.content for message in seen[1] if message.role == "assistant")
    assert Transcript.from_json(result.transcript.to_json()) == result.transcript
    json.loads(result.to_json())
    # Where the oracle masks, the text cannot begin that way at all.
    assert shop.verdict("{") is Verdict.LOST


def test_no_tool_can_be_invented(shop: Shop) -> None:
    """Invented tool names."""
    assert shop.verdict("let r = roll(") is Verdict.LIVE
    for invented in ("let r = rol(", "let r = rolls(", "let r = functions.roll(", "let r = search("):
        assert shop.verdict(invented) is Verdict.LOST
    result = shop.scripted("let r = rolls(6);", "return 1;", mode="unconstrained").run_sync("Roll.")
    assert shop.calls == [] and "roll" in result.turns[0].observation
    for seed in range(3):
        limits = UsageLimits(turn_limit=4, tokens_per_step=80)
        try:
            ran = Agent(RandomModel(seed), tools=shop.registry, usage_limits=limits).run_sync("Roll.")
        except UsageLimitExceeded as error:
            ran = error.result
        assert len(ran.steps) == len(ran.turns) > 0


def test_a_string_is_no_list_of_strings(shop: Shop) -> None:
    """`str` where `list[str]` was asked, iterated as characters without an error."""
    assert shop.verdict('let j = join("abc");') is Verdict.LOST
    assert shop.verdict("let j = join(s);", s=STRING) is Verdict.LOST
    assert shop.verdict('let j = join(["abc"]);') is Verdict.SATISFIED
    with pytest.raises(ArgumentError, match=r"list"):
        anyio.run(shop.registry["join"].call, {"words": "abc"})
    assert shop.calls == []


def test_a_text_is_no_number(shop: Shop) -> None:
    """ "5" taken for 5."""
    assert shop.verdict('let r = roll("5");') is Verdict.LOST
    assert shop.verdict("let r = roll(s);", s=STRING) is Verdict.LOST
    with pytest.raises(ArgumentError):
        anyio.run(shop.registry["roll"].call, {"sides": "5"})
    with pytest.raises(ResultError):
        shop.registry["roll"].validate_result("5")
    with pytest.raises(MismatchError):
        INT.validate(True)
    assert shop.calls == []


def test_no_identifier_is_fabricated(shop: Shop) -> None:
    """A fabricated identifier where an earlier result was meant."""
    assert shop.verdict('let c = cancel("o-17") ;') is Verdict.LOST
    assert shop.verdict("let c = cancel(o);", o=STRING) is Verdict.LOST
    assert shop.verdict("let n = pages(") is Verdict.LOST  # no papers were found yet
    result = shop.scripted('let o = order("tea");', "let c = cancel(o);", "return c;").run_sync("Cancel it.")
    assert result.output is True and shop.calls == ["o-tea"]
    with pytest.raises(ArgumentError):
        anyio.run(shop.registry["cancel"].call, {"order": "o-tea"})


@pytest.mark.parametrize("mode", ["direct", "unconstrained"])
def test_a_string_never_turns_into_a_variable(shop: Shop, mode: str) -> None:
    """The string "total" replaced by the variable total."""
    bound = Bindings([Binding(name="total", type=STRING, value="forty-two")])
    episode = Episode(name="e", prompt="Say total.", bindings=bound)
    replies = ('let a = say("total");', "let b = say(total);", 'let c = say("total, total");', "return a;")
    assert shop.scripted(*replies, mode=mode).run_sync(episode).output == "total"
    assert shop.calls == ["total", "forty-two", "total, total"]


# Models


def test_a_model_that_only_chats_calls_tools(shop: Shop) -> None:
    """Small local models that will not call tools at all."""
    chat = LeaningModel(b"Sure! I can help you with that. ")
    limits = UsageLimits(turn_limit=3, tokens_per_step=60)

    def turns(mode: str) -> tuple[int, int]:
        agent = Agent(chat, tools=shop.registry, output_type=Papers, mode=mode, usage_limits=limits)
        try:
            result = agent.run_sync("Find papers about rain.")
        except UsageLimitExceeded as error:
            result = error.result
        return result.usage.tool_calls, len(result.turns)

    calls, made = turns("unconstrained")
    assert calls == 0 and made == 3
    calls, made = turns("direct")
    assert calls >= 1 and len(shop.calls) >= 1


@pytest.mark.model
def test_the_default_model_calls_tools() -> None:
    """Small local models that will not call tools at all."""
    suite = Suite.load(ROOT / "examples" / "episodes" / "04_count_coffee.toml")
    result = Agent("default", usage_limits=UsageLimits(turn_limit=5)).run_sync(suite.episodes[0])
    assert result.usage.tool_calls >= 1


def test_white_space_is_bounded(shop: Shop) -> None:
    """White space generated until the token limit."""
    limits = UsageLimits(turn_limit=2, tokens_per_step=200)
    for blank in (b" ", b"\n", b"\t", b"\r\n"):
        agent = Agent(LeaningModel(blank), tools=shop.registry, usage_limits=limits, output_type=OrderId)
        turns = agent.run_sync("Order.").turns
        assert len(turns) == limits.turn_limit
        for turn in turns:
            assert turn.step is not None
            # In a string blanks are text, and the budget ends them; between lexemes there are eight at most.
            assert re.search(r"\s{9}", re.sub(r'"[^"]*"', '""', turn.text)) is None


def test_a_context_that_overflows_says_so(shop: Shop) -> None:
    """Context overflow as `NoneType`."""
    from tests.agentkit.models_toys import byte_level_tokenizer, tiny_llama

    tokenizer = byte_level_tokenizer()
    model = TransformersModel(tiny_llama(len(tokenizer), context=64), tokenizer, name="tiny")
    with pytest.raises(ContextWindowExceeded, match=r"tiny reads at most 64 tokens.*shorten the prompt") as caught:
        Agent(model, tools=shop.registry).run_sync("Roll a die.")
    cause = caught.value.__cause__
    assert isinstance(cause, ContextOverflowError) and cause.context == 64 < cause.prompt_tokens
    assert caught.value.result.turns == ()


def test_reasoning_comes_before_the_first_constrained_token(shop: Shop) -> None:
    """Constrained decoding that makes reasoning models worse because it starts at the first token."""
    thought = "A die has six sides, so I roll one of them."
    free: list[bool] = []
    replies = [thought, "let r = roll(6);", "Now I return it.", "return r;"]

    def answer(messages: Sequence[Message], prefix: PrefixLike | None) -> str:
        free.append(prefix is None)
        return replies[len(free) - 1]

    result = function_agent(shop, answer, mode="mixed").run_sync("Roll.")
    assert result.output == 6 and free == [True, False, True, False]
    assert result.turns[0].thought == thought and result.turns[0].text == "let r = roll(6);"


# Limits


def test_the_same_tool_is_not_called_for_ever(shop: Shop) -> None:
    """The same tool called for ever because limits do not bind."""
    made = 0

    def same(messages: Sequence[Message], prefix: PrefixLike | None) -> str:
        nonlocal made
        made += 1
        return f"let r{made} = roll(6);"

    def other(messages: Sequence[Message], prefix: PrefixLike | None) -> str:
        nonlocal made
        made += 1
        return f"let r{made} = roll({made});"

    with pytest.raises(RepeatedStep):
        function_agent(shop, same).run_sync("Roll.")
    assert shop.calls == [6, 6, 6]
    for limit in ("turn_limit", "tool_call_limit"):
        for value in (1, 5):
            shop.calls.clear()
            with pytest.raises(UsageLimitExceeded) as caught:
                limits = UsageLimits(**{limit: value})
                function_agent(shop, other, usage_limits=limits, mode="unconstrained").run_sync("Roll.")
            assert (caught.value.limit, len(shop.calls)) == (limit, value)


@pytest.mark.parametrize("mode", ["direct", "unconstrained"])
def test_a_truncated_call_is_never_executed(shop: Shop, mode: str) -> None:
    """A truncated call executed."""
    whole = "let r = roll(200);"
    shop.registry = shop.registry.select("roll")
    for cut in range(1, len(whole)):
        with pytest.raises(RunError):
            shop.scripted(whole[:cut], mode=mode, usage_limits=UsageLimits(turn_limit=1)).run_sync("Roll.")
    for tokens in range(1, 4):
        limits = UsageLimits(tokens_per_step=tokens, turn_limit=1)
        with pytest.raises((IncompleteStep, UsageLimitExceeded)):
            shop.scripted(whole, mode=mode, usage_limits=limits).run_sync("Roll.")
    assert shop.calls == []


# Concurrency


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_cancelled_run_stops_its_tool(backend: str) -> None:
    """A cancelled run whose tool goes on."""
    ticks: list[int] = []
    cleaned: list[bool] = []

    @tool
    async def tick() -> int:
        """Tick until stopped."""
        try:
            while True:
                ticks.append(1)
                await anyio.sleep(0.005)
        finally:
            cleaned.append(True)

    async def main() -> None:
        agent = Agent(ScriptedModel(["let t = tick();"]), tools=[tick])
        async with anyio.create_task_group() as group:
            group.start_soon(agent.run, "Tick.")
            while len(ticks) < 3:
                await anyio.sleep(0.005)
            group.cancel_scope.cancel()
        before = len(ticks)
        await anyio.sleep(0.05)
        assert len(ticks) == before and cleaned == [True]

    anyio.run(main, backend=backend)


def test_one_exception_orphans_no_sibling() -> None:
    """One exception that orphans sibling tasks."""
    finished: list[int] = []

    @tool
    async def wait(who: int) -> int:
        """Wait, or fail."""
        await anyio.sleep(0.01 * who)
        if who == 2:
            raise ZeroDivisionError("no fuse")
        finished.append(who)
        return who

    def answer(messages: Sequence[Message], prefix: PrefixLike | None) -> str:
        assert prefix is not None
        if prefix.try_feed(b"return w;") is Verdict.SATISFIED:
            return "return w;"
        (who,) = re.findall(r"number (\d)", messages[-1].content)[-1:]
        return f"let w = wait({who});"

    suite = Suite(name="s", episodes=tuple(Episode(name=f"e{n}", prompt=f"You are number {n}.") for n in range(6)))

    async def main() -> None:
        others = asyncio.all_tasks()
        agent = Agent(FunctionModel(answer), tools=[wait], output_type=int)
        evaluation = await suite.evaluate(agent, max_concurrency=6)
        assert [one.passed for one in evaluation.attempts] == [number != 2 for number in range(6)]
        assert isinstance(evaluation.attempts[2].error, ToolFailed)
        assert asyncio.all_tasks() == others

    asyncio.run(main())
    assert sorted(finished) == [0, 1, 3, 4, 5]


@pytest.mark.parametrize("way", ["iter", "stream"])
def test_no_cancel_scope_crosses_a_yield(shop: Shop, way: str) -> None:
    """A cancel scope that crosses a fixture's yield."""
    # A fixture is entered, used and left in three tasks; a scope held over its yield would raise in the third.
    stack = AsyncExitStack()
    limits = UsageLimits(turn_timeout=30, run_timeout=30, tool_timeout=30)
    agent = shop.scripted("let r = roll(6);", "return r;", usage_limits=limits)

    async def use(run: AsyncIterator[object]) -> list[object]:
        return [turn async for turn in run]

    async def main() -> None:
        opened = agent.iter("Roll.") if way == "iter" else agent.stream("Roll.")
        run = await asyncio.create_task(stack.enter_async_context(opened))
        assert len(await asyncio.create_task(use(run))) >= 2
        await asyncio.create_task(stack.aclose())

    asyncio.run(main())
    assert shop.calls == [6]


def test_resuming_runs_no_tool_twice(shop: Shop, tmp_path: Path) -> None:
    """Resuming that runs a tool twice."""
    tools = shop.registry.select("roll", "say")
    asked = 0

    @tool
    async def pay(amount: int) -> int:
        """Pay, and lose the process before anybody hears of it."""
        shop.calls.append(amount)
        raise KeyboardInterrupt

    def killed(messages: Sequence[Message], prefix: PrefixLike | None) -> str:
        nonlocal asked
        asked += 1
        if asked == 3:
            raise KeyboardInterrupt
        return ("let r = roll(6);", 'let s = say("six");')[asked - 1]

    path = tmp_path / "run.json"
    with pytest.raises(KeyboardInterrupt):
        Agent(FunctionModel(killed), tools=tools).run_sync("Roll.", checkpoint_path=path)
    again = Agent(ScriptedModel(["let q = roll(r);", "return q;"]), tools=tools)
    result = anyio.run(lambda: again.resume(path, episode="Roll."))
    assert result.output == 6 and shop.calls == [6, "six", 6] and len(result.turns) == 4
    # A process that died inside a call: nobody knows what it did, so it is asked, and not tried again.
    shop.calls.clear()
    agent = Agent(ScriptedModel(["let p = pay(7);"]), tools=[pay])
    with pytest.raises(KeyboardInterrupt):
        agent.run_sync("Pay.", checkpoint_path=path)
    with pytest.raises(ResumeConflict, match="pay"):
        anyio.run(lambda: agent.resume(path, episode="Pay."))
    assert shop.calls == [7]


# The engine

AMBIGUOUS = """
Identifier ::= /[a-z]+/
Type* ::= Identifier
Variable(var) ::= Identifier[x]
Sum(sum) ::= Expression[l] '+' Expression[r]
Expression ::= Variable | Sum

x ∈ Γ
----- (var)
Γ(x)

Γ ⊢ l : int, Γ ⊢ r : int
------------------------ (sum)
int
"""
MEAN_S, WORST_S = 0.024, 0.135
PROGRAM = """let rec power (b : int) (e : int) : int =
  if e = 0 then 1 else b * power b (e - 1)
let rec make : int -> int list = fun n -> if n = 0 then [] else n :: make (n - 1)
let total : int = power 2 10 + 3"""


def test_ambiguity_costs_little() -> None:
    """A grammar engine that blows up on an ambiguous grammar."""
    # 80 terms have 10^45 trees.
    oracle = Oracle(Grammar.parse(AMBIGUOUS))
    prefix = oracle.start(context={"x": "int", "s": "text"}, goal="int").feed("+".join("x" * 80))
    assert prefix.verdict is Verdict.SATISFIED and prefix.try_feed("+") is Verdict.LIVE
    assert prefix.try_feed("+s+") is Verdict.LOST
    # The figures of the complaint, on a small ML grammar and a vocabulary of pieces of programs.
    draw = random.Random(0)
    places = [(draw.randrange(len(PROGRAM)), draw.randrange(2, 9)) for _ in range(4000)]
    pieces = {PROGRAM[start : start + size].encode() for start, size in places}
    vocabulary = Vocabulary([*(bytes((byte,)) for byte in range(256)), *sorted(pieces)])
    ml = Oracle(Grammar.load("core_ml"))
    # The better of two passes, since a collection of all the garbage of other tests is no work of the engine.
    seconds = [min(times) for times in zip(mask_times(ml, vocabulary), mask_times(ml, vocabulary), strict=True)]
    assert sum(seconds) / len(seconds) < MEAN_S and max(seconds) < WORST_S, seconds


def mask_times(oracle: Oracle, vocabulary: Vocabulary) -> list[float]:
    """CPU seconds of a mask after each lexeme of the program."""
    seconds = []
    prefix = oracle.start()
    for lexeme in re.findall(r"\s*\S+", PROGRAM):
        prefix = prefix.feed(lexeme)
        begun = process_time()
        oracle.mask(prefix, vocabulary)
        seconds.append(process_time() - begun)
    assert prefix.verdict is Verdict.SATISFIED, str(prefix.explain())
    return seconds


# The table


def complaints() -> dict[str, set[str]]:
    """The complaints of the docstrings above, with the names of their tests."""
    found: dict[str, set[str]] = {}
    for name, value in globals().items():
        if name.startswith("test_") and value.__doc__:
            found.setdefault(value.__doc__.strip().splitlines()[0], set()).add(name)
    return found


def test_the_table_of_complaints_is_true() -> None:
    rows = re.findall(r"^\| (.+?) \| .+ \| (.+) \|$", DOCUMENT.read_text(encoding="utf-8"), re.M)
    listed = {complaint: set(re.findall(r"`(test_\w+)`", tests)) for complaint, tests in rows if "`test_" in tests}
    assert listed == complaints()
    assert len(listed) == 17
