"""Masked programs end at an empty line, and nothing else about them changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit.models import RandomModel, Sampling, StopPolicy
from agentkit.study.closing import ClosingPrefix, ClosingSession
from agentkit.synthesis.languages import oracle_of
from aufbau import Prefix, Verdict
from aufbau.choice import greedy
from aufbau.vocabulary import Vocabulary

TOKENS = [b"1", b"2", b"x", b"(", b")", b" + ", b"=>", b"let", b"\n", b"\n\n", b" ", b"true", b": Int", *[b"?"] * 40]
VOCABULARY = Vocabulary([*TOKENS, *(bytes((byte,)) for byte in range(256)), b""], stop=[len(TOKENS) + 256])
# text of finite lambda, and whether it is over
ENDS = [("1\n\n", True), ("1\n \t\n", True), ("1\n", False), ("1", False), ("(1\n\n", False), ("1 +\n\n", False)]


def begun(text: str) -> Prefix:
    return oracle_of("fun").start(context={"x": "Int"}).feed(text)


@pytest.mark.parametrize(("text", "over"), ENDS)
def test_a_whole_program_ends_at_an_empty_line(text: str, over: bool) -> None:
    prefix = ClosingPrefix(begun(text))
    assert prefix.extensible is not over
    assert begun(text).extensible


@given(st.lists(st.sampled_from(TOKENS), max_size=6).map(b"".join), st.integers(0, 2**32), st.integers(0, 40))
def test_tokens_are_chosen_as_without_it(text: bytes, seed: int, tries: int) -> None:
    """Also after so many refusals that the mask is asked."""
    inner = begun("").feed(text)
    scores = np.random.default_rng(seed).normal(size=len(VOCABULARY))
    chosen = greedy(ClosingPrefix(inner), VOCABULARY, scores, tries=tries)
    assert chosen == greedy(inner, VOCABULARY, scores, tries=tries)
    assert ClosingPrefix(inner).feed(b"1").text == text + b"1"


@pytest.mark.asyncio
@pytest.mark.parametrize("seed", range(4))
async def test_a_session_gives_back_the_prefix_it_was_given(seed: int) -> None:
    model = RandomModel(seed, VOCABULARY)
    session = ClosingSession(model.session())
    generation = await session.generate(
        [], prefix=begun(""), sampling=Sampling(), max_tokens=30, stop_policy=StopPolicy.STRICT, steer=True
    )
    reached = generation.prefix
    assert isinstance(reached, Prefix) and reached.verdict is Verdict.SATISFIED
    assert reached.text.decode() == generation.text
    await session.aclose()
