"""mlx-lm through Outlines: the tokens of the same weights under our own decoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("outlines")
pytest.importorskip("transformers")

import outlines

from agentkit.models import Generation, PrefixLike, Sampling, StopPolicy, TransformersModel
from agentkit.models.outlines import OutlinesModel
from agentkit.models.processor import AufbauLogitsProcessor
from aufbau import Grammar, Oracle
from tests.agentkit.models_toys import HELLO, Brackets, Digits, byte_level_tokenizer, tiny_llama

mlx_lm = pytest.importorskip("mlx_lm")
BUDGET = 12
STARTS: dict[str, PrefixLike] = {
    "brackets": Brackets(),
    "digits": Digits(),
    "fun": Oracle(Grammar.load("fun")).start(context={"n": "Int"}, goal="Int -> Int"),
}


async def ask(model: Any, prefix: PrefixLike | None) -> Generation:
    result: Generation = await model.session().generate(
        HELLO, prefix=prefix, sampling=Sampling(), max_tokens=BUDGET, stop_policy=StopPolicy.STRICT
    )
    return result


@pytest.mark.parametrize("name", STARTS)
def test_mlx_generates_what_our_decoder_does(name: str, tmp_path: Path) -> None:
    tokenizer = byte_level_tokenizer()
    weights = tiny_llama(len(tokenizer))
    weights.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    steered = outlines.from_mlxlm(*mlx_lm.load(str(tmp_path)))
    start = STARTS[name]
    ours = anyio.run(ask, TransformersModel(weights, tokenizer), start)
    model = OutlinesModel(steered)
    theirs = anyio.run(ask, model, start)
    assert [t.token for t in theirs.tokens] == [t.token for t in ours.tokens]
    assert theirs.finish is ours.finish
    for greedy in (False, True):
        processor = AufbauLogitsProcessor(start, model.vocabulary, greedy=greedy)
        chat = outlines.inputs.Chat([{"role": "user", "content": HELLO[0].content}])
        generator: Any = outlines.Generator(steered, processor=processor)
        # mlx-lm ends at one token, cuts off the first blank, and shows half characters.
        text = generator(chat, max_tokens=BUDGET).removesuffix("<|endoftext|>")
        assert text.strip().removesuffix("\ufffd") == ours.text.strip().removesuffix("\ufffd")
