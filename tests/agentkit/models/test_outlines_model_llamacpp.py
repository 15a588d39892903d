"""llama.cpp through Outlines: the file's own vocabulary and template, exact masks, and errors that C does not lose."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest

pytest.importorskip("llama_cpp")
pytest.importorskip("outlines")
pytest.importorskip("gguf")
pytest.importorskip("transformers")

import llama_cpp
import outlines

from agentkit.models import FinishReason, Generation, Message, PrefixLike, Sampling, StopPolicy
from agentkit.models.errors import DeadEndError
from agentkit.models.llamacpp import LlamaTokenizer
from agentkit.models.outlines import OutlinesModel
from agentkit.models.processor import AufbauLogitsProcessor
from agentkit.models.prompt import prompt_text
from aufbau import Grammar, Oracle
from aufbau.vocabulary import Vocabulary
from tests.agentkit.models.tiny_gguf import write_gguf
from tests.agentkit.models_toys import HELLO, Brackets, Digits, Nothing, byte_level_tokenizer

TOKENIZER = byte_level_tokenizer()
BUDGET = 12
STARTS: dict[str, PrefixLike] = {
    "brackets": Brackets(),
    "digits": Digits(),
    "fun": Oracle(Grammar.load("fun")).start(context={"n": "Int"}, goal="Int -> Int"),
}


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    path: Path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_gguf(path, TOKENIZER)
    model = llama_cpp.Llama(str(path), n_ctx=256, n_threads=1, verbose=False)
    yield model
    model.close()


async def ask(model: OutlinesModel, prefix: PrefixLike | None, **more: Any) -> Generation:
    settings = {"sampling": Sampling(), "max_tokens": BUDGET, "stop_policy": StopPolicy.STRICT}
    return await model.session().generate(HELLO, prefix=prefix, **{**settings, **more})


def by_hand(llama: Any, vocabulary: Vocabulary, start: PrefixLike, prompt: str) -> list[int]:
    """Greedy decoding by the definition: the scores of each step, masked."""
    processor = AufbauLogitsProcessor(start, vocabulary)
    ids = llama.tokenize(prompt.encode(), add_bos=False, special=True)
    llama.reset()
    llama.eval(ids)
    found: list[int] = []
    while len(found) < BUDGET:
        scores = np.ctypeslib.as_array(llama._ctx.get_logits(), shape=(llama.n_vocab(),)).copy()
        token = int(processor(np.array(ids + found), scores).argmax())
        if token in vocabulary.stop:
            break
        found.append(token)
        llama.eval([token])
    llama.reset()
    return found


def test_the_file_says_how_tokens_are_spelled(llama: Any) -> None:
    tokenizer = LlamaTokenizer(llama)
    expected = Vocabulary.from_tokenizer(TOKENIZER)
    assert list(tokenizer.vocabulary) == list(expected)
    assert tokenizer.vocabulary.special == expected.special
    assert tokenizer.vocabulary.stop[0] == TOKENIZER.eos_token_id
    messages = [Message(role="system", content="S"), Message(role="user", content="U é")]
    assert prompt_text(tokenizer, messages) == prompt_text(TOKENIZER, messages)
    assert tokenizer.count("hello (ab)") == len(TOKENIZER("hello (ab)")["input_ids"])


@pytest.mark.parametrize("name", STARTS)
def test_it_generates_the_best_admissible_tokens(name: str, llama: Any) -> None:
    start = STARTS[name]
    steered = outlines.from_llamacpp(llama)
    model = OutlinesModel(steered)
    expected = by_hand(llama, model.vocabulary, start, prompt_text(TOKENIZER, HELLO))
    assert expected
    result = anyio.run(ask, model, start)
    assert [record.token for record in result.tokens if record.text] == expected
    text = b"".join(map(model.vocabulary.spelling, expected)).decode(errors="ignore")
    for greedy in (False, True):
        processor = AufbauLogitsProcessor(start, model.vocabulary, greedy=greedy)
        generator = outlines.Generator(steered, processor=processor)
        chat = outlines.inputs.Chat([{"role": "user", "content": HELLO[0].content}])
        for _ in range(2):
            assert generator(chat, max_tokens=BUDGET, temperature=0.0) == text
        assert processor.error is None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_dead_end_ends_the_text_and_is_kept(llama: Any) -> None:
    """llama.cpp calls processors from C: what they raise is printed, and generation goes on with the scores."""
    steered = outlines.from_llamacpp(llama)
    processor = AufbauLogitsProcessor(Nothing(), LlamaTokenizer(llama).vocabulary)
    assert outlines.Generator(steered, processor=processor)("hello", max_tokens=5) == ""
    assert isinstance(processor.error, DeadEndError)
    assert anyio.run(ask, OutlinesModel(steered), Nothing()).finish is FinishReason.DEAD_END


def test_errors_of_a_listener_come_back(llama: Any) -> None:
    def object_to(_record: Any) -> None:
        raise ZeroDivisionError("no more")

    async def main() -> None:
        model = OutlinesModel(outlines.from_llamacpp(llama))
        expected = await ask(model, None)
        with pytest.raises(ZeroDivisionError, match="no more"):
            await ask(model, None, on_token=object_to)
        assert (await ask(model, None)).text == expected.text

    anyio.run(main)


def test_cancelling_leaves_a_usable_model(llama: Any) -> None:
    async def main() -> None:
        model = OutlinesModel(outlines.from_llamacpp(llama))
        expected = await ask(model, Brackets())
        seen: list[Any] = []
        with anyio.CancelScope() as scope:

            def third(record: Any) -> None:
                seen.append(record)
                if len(seen) == 3:
                    scope.cancel()

            await ask(model, None, max_tokens=200, on_token=third)
        assert scope.cancelled_caught
        assert len(seen) <= 4
        assert (await ask(model, Brackets())).text == expected.text

    anyio.run(main)
