"""One block in each of the five modes: what obeys which oracle, what stands before it, and how it is judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import anyio
import pytest

from agentkit.block import Block, BlockRequest, decode_block
from agentkit.models import (
    FinishReason,
    FunctionModel,
    Message,
    Model,
    PrefixLike,
    RandomModel,
    ReasoningFormat,
    Sampling,
    ScriptedModel,
    Steering,
    StopPolicy,
    TokenRecord,
)
from agentkit.modes import Mode
from aufbau import Prefix, Verdict
from dialects import CLikeDialect, LoweredDialect
from registry import STRING, Registry

ASKED = (Message(role="user", content="How many?"),)
TAGS = ReasoningFormat(opening="<think>\n", tag="</think>", skipped="<think>\n\n</think>\n\n")


@cache
def lowered() -> LoweredDialect:
    registry = Registry()

    @registry.tool
    def count(text: str) -> int:
        """Count."""
        return len(text)

    return CLikeDialect().lower(registry)


def request(mode: Mode, begun: str = "") -> BlockRequest:
    start = lowered().start({"s": STRING}).feed(begun)
    twin = start.oracle.syntactic().start(symbol="Step").feed(begun)
    return BlockRequest(messages=ASKED, start=start, syntactic_start=twin, mode=mode, sampling=Sampling())


def decode(model: Model, asked: BlockRequest) -> Block:
    async def main() -> Block:
        return await decode_block(model.session(), asked)

    return anyio.run(main)


WELL_TYPED, ILL_TYPED, NO_STEP = "let n = count(s);", "let n = count(3);", "I count three."


@dataclass(frozen=True, kw_only=True)
class Case:
    """What a model says in a mode, after its reasoning where there is some, and what becomes of it."""

    mode: Mode
    said: str
    text: str
    verdict: Verdict
    finish: FinishReason


FREE = [
    Case(mode=mode, said=said, text=said, verdict=verdict, finish=FinishReason.STOP)
    for mode in (Mode.UNCONSTRAINED, Mode.THINKING)
    for said, verdict in [(WELL_TYPED, Verdict.SATISFIED), (ILL_TYPED, Verdict.LOST), (NO_STEP, Verdict.LOST)]
]
TYPED = [
    Case(mode=mode, said=said, text=text, verdict=verdict, finish=finish)
    for mode in (Mode.DIRECT, Mode.MIXED)
    for said, text, verdict, finish in [
        (WELL_TYPED, WELL_TYPED, Verdict.SATISFIED, FinishReason.SATISFIED),
        (ILL_TYPED, "let n = count(", Verdict.LIVE, FinishReason.DEAD_END),
        (NO_STEP, "", Verdict.LIVE, FinishReason.DEAD_END),
    ]
]
UNTYPED = [
    Case(mode=Mode.SYNTACTIC, said=said, text=text, verdict=verdict, finish=finish)
    for said, text, verdict, finish in [
        (WELL_TYPED, WELL_TYPED, Verdict.SATISFIED, FinishReason.SATISFIED),
        (ILL_TYPED, ILL_TYPED, Verdict.LOST, FinishReason.SATISFIED),
        (NO_STEP, "", Verdict.LIVE, FinishReason.DEAD_END),
    ]
]


@pytest.mark.parametrize("case", [*FREE, *TYPED, *UNTYPED], ids=lambda case: f"{case.mode.value}-{case.verdict.value}")
def test_what_becomes_of_an_answer(case: Case) -> None:
    replies = ["First count.", case.said] if case.mode.reasons else [case.said]
    block = decode(ScriptedModel(replies), request(case.mode))
    assert (block.text, block.verdict) == (case.text, case.verdict)
    assert block.generation.finish is case.finish
    assert block.reasoning == ("First count." if case.mode.reasons else "")
    assert (block.thought is not None) == case.mode.reasons
    assert block.reached.oracle is lowered().oracle


@pytest.mark.parametrize("mode", list(Mode))
def test_a_block_goes_on_from_its_beginning(mode: Mode) -> None:
    seen: list[str] = []

    def say(messages: Sequence[Message], prefix: PrefixLike | None) -> str:
        seen.append(messages[-1].content)
        return "Count.\n\n" if mode.reasons and len(seen) == 1 else "count(s);"

    asked = replace(request(mode, "let n = "), prefill="// go\n")
    block = decode(FunctionModel(say), asked)
    assert (block.text, block.verdict) == ("let n = count(s);", Verdict.SATISFIED)
    assert seen == (["// go\n", "// go\nCount.\n\nlet n = "] if mode.reasons else ["// go\nlet n = "])


def test_syntactic_needs_its_twin() -> None:
    with pytest.raises(ValueError, match="syntactic_start"):
        decode(ScriptedModel([WELL_TYPED]), replace(request(Mode.SYNTACTIC), syntactic_start=None))


# Between reasoning and block


@dataclass(frozen=True, kw_only=True)
class Seam:
    """How reasoning is invited and closed, and what the answer holds before the block."""

    said: str
    before: str
    form: ReasoningFormat | None = None
    opening: str = ""
    reasoning_opening: str = ""
    reasoning_stop: tuple[str, ...] = ()
    reasoning_tokens: int = 256


SEAMS = {
    "an empty line": Seam(said="Count.\n\nlet n", before="P Count.\n\n"),
    "the budget": Seam(said="Count the letters.", before="P Count the\n\n", reasoning_tokens=2),
    "the opening": Seam(said="Count.\n```\nlet", before="P Count.\n```\n", opening="```\n"),
    "the opening after a budget": Seam(
        said="Count the letters.", before="P Count the\n```\n", opening="```\n", reasoning_tokens=2
    ),
    "a comment": Seam(said=" count\nlet", before="P // count\n", reasoning_opening="//", reasoning_stop=("\n",)),
    "the first of two": Seam(
        said=" count\nlet",
        before="P <!-- count -->\n",
        reasoning_opening="<!--",
        reasoning_stop=(" -->\n", "\n"),
    ),
    "own tag": Seam(said="Count.\n</think>\n\nlet", before="Count.\n</think>\n\nP ", form=TAGS),
    "own tag after a budget": Seam(
        said="Count the letters.", before="Count the\n</think>\n\nP ", form=TAGS, reasoning_tokens=2
    ),
    "own tag and an opening": Seam(
        said="A fence:\n```\nlet</think>",
        before="A fence:\n```\nlet\n</think>\n\nP ```\n",
        form=TAGS,
        opening="```\n",
        reasoning_opening="//",
    ),
    "a delimiter beside the tag": Seam(
        said="Count. Answer: 3</think>", before="Count. \n</think>\n\nP ", form=TAGS, reasoning_stop=("Answer:",)
    ),
}


@pytest.mark.parametrize("mode", [Mode.MIXED, Mode.THINKING])
@pytest.mark.parametrize("seam", SEAMS.values(), ids=SEAMS)
def test_what_stands_before_the_block(seam: Seam, mode: Mode) -> None:
    seen: list[str] = []

    def say(messages: Sequence[Message], prefix: PrefixLike | None) -> str:
        seen.append(messages[-1].content if messages[-1].role == "assistant" else "")
        return WELL_TYPED if len(seen) == 2 else seam.said

    asked = replace(
        request(mode),
        prefill="P ",
        opening=seam.opening,
        reasoning_opening=seam.reasoning_opening,
        reasoning_stop=seam.reasoning_stop,
        reasoning_tokens=seam.reasoning_tokens,
    )
    block = decode(FunctionModel(say, reasoning=seam.form), asked)
    assert seen[0] == ("" if seam.form is not None else f"P {seam.reasoning_opening}")
    assert seen[1] == seam.before
    assert block.verdict is Verdict.SATISFIED
    assert block.tokens == len(block.generation.tokens) + len(block.thought.tokens if block.thought else ())


def test_listeners_hear_the_block_and_its_reasoning_apart() -> None:
    heard: tuple[list[TokenRecord], list[TokenRecord]] = ([], [])

    async def main() -> Block:
        session = ScriptedModel(["Count.", WELL_TYPED]).session()
        return await decode_block(session, request(Mode.MIXED), heard[0].append, heard[1].append)

    block = anyio.run(main)
    assert block.thought is not None
    assert (tuple(heard[0]), tuple(heard[1])) == (block.generation.tokens, block.thought.tokens)


# How free text is judged


def fenced(text: str) -> str:
    """What stands in a code fence, or all of it."""
    return text.split("```")[1].strip() if "```" in text else text.strip()


ANSWERS = [
    ("", "Sure:\n```\nlet n = count(s);\n```", fenced, WELL_TYPED, Verdict.SATISFIED),
    ("let n =", " count(s);  \n", str.strip, WELL_TYPED, Verdict.SATISFIED),
    (" let n =", " count(s);", str.strip, WELL_TYPED, Verdict.SATISFIED),
    ("let n =", " count(s", str.strip, "let n = count(s", Verdict.LIVE),
    # An answer that begins again; and one that goes on with something else.
    ("let n =", "\n```\nlet n = count(s);\n```", fenced, WELL_TYPED, Verdict.SATISFIED),
    ("let n =", "\n```\ncount(s);\n```", fenced, "count(s);", Verdict.LOST),
    ("", "", str.strip, "", Verdict.LIVE),
]


@pytest.mark.parametrize(("begun", "said", "extract", "text", "verdict"), ANSWERS)
def test_what_is_judged_of_free_text(
    begun: str, said: str, extract: Callable[[str], str], text: str, verdict: Verdict
) -> None:
    asked = replace(request(Mode.UNCONSTRAINED, begun), extract=extract, free_stop=())
    block = decode(ScriptedModel([said]), asked)
    assert (block.text, block.verdict) == (text, verdict)


# Budgets and policies


@pytest.mark.parametrize("mode", list(Mode))
def test_a_masked_block_ends_within_its_budget(mode: Mode) -> None:
    asked = replace(request(mode), max_tokens=24, reasoning_tokens=10)
    blocks = [decode(RandomModel(seed), asked) for seed in range(12)]
    assert all(len(block.generation.tokens) <= 24 for block in blocks)
    assert all(block.thought is None or len(block.thought.tokens) <= 10 for block in blocks)
    if mode.well_typed:
        assert {block.verdict for block in blocks} == {Verdict.SATISFIED}
        assert any(block.steered for block in blocks)
    elif mode.masked:
        assert all(ended(block).verdict is Verdict.SATISFIED for block in blocks)
        assert any(block.verdict is Verdict.LOST for block in blocks)
    else:
        assert {block.steering for block in blocks} == {Steering.OFF}
        assert Verdict.LOST in {block.verdict for block in blocks} <= {Verdict.LOST, Verdict.LIVE}


def ended(block: Block) -> PrefixLike:
    assert block.generation.prefix is not None
    return block.generation.prefix


@pytest.mark.parametrize("mode", [Mode.DIRECT, Mode.MIXED])
def test_the_papers_policy_counts_what_is_abandoned(mode: Mode) -> None:
    asked = replace(request(mode), max_tokens=40, reasoning_tokens=4, stop_policy=StopPolicy.PAPER)
    blocks = [decode(RandomModel(seed), asked) for seed in range(40)]
    assert {block.verdict for block in blocks} <= {Verdict.LIVE, Verdict.SATISFIED}
    assert any(block.verdict is Verdict.LIVE for block in blocks)
    assert {block.steering for block in blocks} == {Steering.OFF}


def test_a_further_rule_is_obeyed_and_judged_without_it() -> None:
    class Short:
        """At most so many bytes."""

        def __init__(self, inner: Prefix) -> None:
            self.inner = inner

        @property
        def text(self) -> bytes:
            return self.inner.text

        @property
        def verdict(self) -> Verdict:
            return self.inner.verdict if len(self.text) <= 9 else Verdict.LOST

        @property
        def extensible(self) -> bool:
            return self.inner.extensible

        def feed(self, data: bytes, /) -> Short:
            return Short(self.inner.feed(data))

        def try_feed(self, data: bytes, /) -> Verdict:
            return self.feed(data).verdict

    for said, text in [("return s;", "return s;"), (WELL_TYPED, "let n = c")]:
        asked = request(Mode.DIRECT)
        block = decode(ScriptedModel([said]), replace(asked, constraint=Short(asked.start)))
        assert block.text == text
        assert block.reached.text == text.encode()
        assert block.reached.oracle is lowered().oracle
