"""The default model under three decoders: ours, transformers' and Outlines' write the same text."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("outlines")

import outlines

from agentkit.models import (
    AufbauLogitsProcessor,
    Generation,
    Message,
    OutlinesModel,
    PrefixLike,
    Sampling,
    StopPolicy,
    TransformersModel,
    default_model,
)
from agentkit.models.prompt import prompt_text
from aufbau import Grammar, Oracle, Verdict
from dialects import CLikeDialect
from registry import Docs, builtin, type_from_hint

pytestmark = [pytest.mark.model, pytest.mark.timeout(600)]

BUDGET = 16
PROMPTS = {
    "tools": 'Count the documents in d. Answer with one line of code, such as\nlet d = search("…");',
    "fun": "Write an expression of type Int that uses n, such as n + 1",
    "ml": "Write OCaml code: a function that doubles a number. Only the code.",
}


@cache
def model() -> TransformersModel:
    found = default_model()
    found.tokenizer.padding_side = "left"
    return found


@cache
def start(name: str) -> PrefixLike:
    if name == "tools":
        return CLikeDialect().lower(builtin()).start({"d": type_from_hint(Docs)})
    oracle = Oracle(Grammar.load(name))
    return oracle.start(context={"n": "Int"}, goal="Int") if name == "fun" else oracle.start()


async def ask(model: Any, name: str) -> Generation:
    result: Generation = await model.session().generate(
        [Message(role="user", content=PROMPTS[name])],
        prefix=start(name),
        sampling=Sampling(),
        max_tokens=BUDGET,
        stop_policy=StopPolicy.STRICT,
    )
    return result


@cache
def ours(name: str) -> Generation:
    return anyio.run(ask, model(), name)


def settings() -> dict[str, Any]:
    return {"max_new_tokens": BUDGET, "do_sample": False, "eos_token_id": list(model().vocabulary.stop)}


def text(tokens: Any) -> str:
    return str(model().tokenizer.decode(tokens, skip_special_tokens=True))


@pytest.mark.parametrize("greedy", [False, True], ids=["masked", "best only"])
@pytest.mark.parametrize("name", PROMPTS)
def test_three_decoders_write_the_same(name: str, greedy: bool) -> None:
    assert ours(name).text
    processor = AufbauLogitsProcessor(start(name), model().vocabulary, greedy=greedy)
    prompt = prompt_text(model().tokenizer, [Message(role="user", content=PROMPTS[name])])
    inputs = model().tokenizer(prompt, return_tensors="pt")
    out = model()._model.generate(**inputs, **settings(), logits_processor=[processor])
    assert text(out[0, inputs.input_ids.shape[1] :]) == ours(name).text
    generator = outlines.Generator(outlines.from_transformers(model()._model, model().tokenizer), processor=processor)
    chat = outlines.inputs.Chat([{"role": "user", "content": PROMPTS[name]}])
    assert generator(chat, **settings()) == ours(name).text


@pytest.mark.parametrize("greedy", [False, True], ids=["masked", "best only"])
def test_a_batch_of_different_grammars_equals_single_runs(greedy: bool) -> None:
    steered = outlines.from_transformers(model()._model, model().tokenizer)
    processor = AufbauLogitsProcessor([start(name) for name in PROMPTS], model().vocabulary, greedy=greedy)
    chats = [outlines.inputs.Chat([{"role": "user", "content": prompt}]) for prompt in PROMPTS.values()]
    texts = outlines.Generator(steered, processor=processor).batch(chats, **settings())
    assert texts == [ours(name).text for name in PROMPTS]


def test_an_outlines_model_answers_as_ours() -> None:
    theirs = OutlinesModel(outlines.from_transformers(model()._model, model().tokenizer))
    for name in PROMPTS:
        answer = anyio.run(ask, theirs, name)
        assert (answer.text, answer.finish) == (ours(name).text, ours(name).finish)


def test_beams_stay_typed() -> None:
    processor = AufbauLogitsProcessor(start("fun"), model().vocabulary, speculative=True)
    inputs = model().tokenizer(PROMPTS["fun"], return_tensors="pt")
    more = {"num_beams": 3, "num_return_sequences": 3}
    out = model()._model.generate(**inputs, **settings(), **more, logits_processor=[processor])
    for row in out[:, inputs.input_ids.shape[1] :]:
        written = b"".join(map(model().vocabulary.spelling, row.tolist()))
        assert start("fun").feed(written).verdict is not Verdict.LOST


def test_the_example_runs() -> None:
    example = Path(__file__).parents[3] / "examples" / "outlines_generator.py"
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "84" in done.stdout
