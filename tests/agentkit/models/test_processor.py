"""The logits processor: the same greedy text as our decoder, whoever decodes, and rows that move as decoders like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import anyio
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from transformers import LogitsProcessorList

from agentkit.models import Message, PrefixLike, Sampling, StopPolicy, TransformersModel
from agentkit.models.errors import DeadEndError, HistoryError, ProcessorError
from agentkit.models.masking import masked, masked_by_words, packed
from agentkit.models.processor import AufbauLogitsProcessor
from agentkit.models.prompt import prompt_tokens
from agentkit.models.rows import Row, Rows
from aufbau import Grammar, Oracle, Verdict
from aufbau.vocabulary import Vocabulary, admissible
from dialects import CLikeDialect
from registry import Docs, builtin, type_from_hint
from tests.agentkit.models_toys import Brackets, Digits, Nothing, byte_level_tokenizer, tiny_llama

TOKENIZER = byte_level_tokenizer()
TOKENIZER.pad_token = "<|endoftext|>"
TOKENIZER.padding_side = "left"
VOCABULARY = Vocabulary.from_tokenizer(TOKENIZER)
PROMPTS = ["hello", "the cat (sat [on] the) mat, and so on and on", "12 345"]
BUDGET = 14
torch.set_num_threads(1)


@cache
def tiny(seed: int = 0) -> TransformersModel:
    # More scores than tokens, as in published models whose embeddings are padded.
    return TransformersModel(tiny_llama(len(TOKENIZER) + 13, seed=seed), TOKENIZER, name="tiny")


@cache
def oracle(name: str) -> Oracle:
    return Oracle(Grammar.load(name))


@cache
def tools() -> Any:
    return CLikeDialect().lower(builtin())


def starts() -> dict[str, PrefixLike]:
    """Prefixes of every kind: toys, typed languages, a tool dialect, with text and names in scope or without."""
    return {
        "brackets": Brackets(),
        "brackets begun": Brackets(b"(", b")"),
        "digits": Digits(),
        "fun": oracle("fun").start(context={"n": "Int", "yes": "Bool"}, goal="Int -> Bool"),
        "ml": oracle("ml").start().feed("let f x ="),
        "tools": tools().start({"d": type_from_hint(Docs)}),
    }


def messages(text: str) -> list[Message]:
    return [Message(role="user", content=text)]


def ours(model: TransformersModel, prompt: str, start: PrefixLike, *, budget: int = BUDGET) -> list[int]:
    """The tokens of our own decoder, its end left out."""

    async def main() -> list[int]:
        result = await model.session().generate(
            messages(prompt),
            prefix=start,
            sampling=Sampling(),
            max_tokens=budget,
            stop_policy=StopPolicy.STRICT,
            assistant_prefill=start.text.decode(),
        )
        return [record.token for record in result.tokens if record.token is not None and record.text]

    return anyio.run(main)


def batch(model: TransformersModel, prompts: Sequence[str], prefixes: Sequence[PrefixLike]) -> dict[str, Any]:
    """Several prompts as one padded batch."""
    rows = [
        prompt_tokens(model.tokenizer, messages(p), s.text.decode()) for p, s in zip(prompts, prefixes, strict=True)
    ]
    padded: Any = model.tokenizer.pad({"input_ids": rows}, padding_side="left", return_tensors="pt")
    return dict(padded)


def generate(
    model: TransformersModel, prompts: Sequence[str], prefixes: Sequence[PrefixLike], processor: Any, **more: Any
) -> list[list[int]]:
    """What transformers generates under a processor: the tokens of each row up to its end."""
    inputs = batch(model, prompts, prefixes)
    settings: dict[str, Any] = {
        "max_new_tokens": BUDGET,
        "do_sample": False,
        "eos_token_id": list(model.vocabulary.stop),
        "pad_token_id": model.tokenizer.pad_token_id,
    }
    out = model._model.generate(**inputs, logits_processor=LogitsProcessorList([processor]), **{**settings, **more})
    return [text_only(model, row) for row in out[:, inputs["input_ids"].shape[1] :].tolist()]


def text_only(model: TransformersModel, row: Sequence[int]) -> list[int]:
    end = next((i for i, token in enumerate(row) if token in model.vocabulary.special), len(row))
    return list(row[:end])


class FromScratch:
    """A processor without memory, by the definition: it feeds each row from its start, token by token."""

    def __init__(self, start: PrefixLike, width: int) -> None:
        self.start = start
        self.width = width

    def __call__(self, ids: Any, scores: Any) -> Any:
        out = torch.full_like(scores, -torch.inf)
        for row, tokens in enumerate(ids[:, self.width :].tolist()):
            prefix = self.start.feed(b"".join(VOCABULARY.spelling(t) for t in tokens if t < len(VOCABULARY)))
            ended = any(token in VOCABULARY.special for token in tokens)
            complete = prefix.verdict is Verdict.SATISFIED
            mask = admissible(prefix, VOCABULARY)
            if ended or (complete and not prefix.extensible):
                mask[:] = False
            mask[list(VOCABULARY.stop)] = ended or complete
            allowed = np.flatnonzero(mask)
            out[row, allowed] = scores[row, allowed]
        return out


# The same text, whoever decodes


@pytest.mark.parametrize("greedy", [False, True], ids=["masked", "best only"])
@pytest.mark.parametrize("name", starts())
def test_transformers_decodes_as_we_do(name: str, greedy: bool) -> None:
    start = starts()[name]
    for seed in range(2):
        processor = AufbauLogitsProcessor(start, VOCABULARY, greedy=greedy)
        [theirs] = generate(tiny(seed), PROMPTS[:1], [start], processor)
        assert theirs == ours(tiny(seed), PROMPTS[0], start)
        assert theirs
        assert processor.seconds > 0.0


@pytest.mark.parametrize("greedy", [False, True], ids=["masked", "best only"])
def test_a_batch_equals_single_runs(greedy: bool) -> None:
    rows = [starts()[name] for name in ("digits", "fun", "brackets begun")]
    processor = AufbauLogitsProcessor(rows, VOCABULARY, greedy=greedy)
    together = generate(tiny(), PROMPTS, rows, processor)
    alone = [ours(tiny(), prompt, start) for prompt, start in zip(PROMPTS, rows, strict=True)]
    assert together == alone
    # One of them ended and was padded while others went on.
    assert len({len(row) for row in alone}) > 1
    processor.reset()
    assert generate(tiny(), PROMPTS, rows, processor) == alone


def test_the_next_prompt_needs_no_reset() -> None:
    start = starts()["fun"]
    processor = AufbauLogitsProcessor(start, VOCABULARY)
    for prompt in PROMPTS:
        assert generate(tiny(), [prompt], [start], processor) == [ours(tiny(), prompt, start)]


def test_outlines_decodes_as_we_do() -> None:
    outlines = pytest.importorskip("outlines")
    model = tiny()
    theirs = outlines.from_transformers(model._model, TOKENIZER)
    for name, start in starts().items():
        if start.text:  # Outlines knows no beginning of an answer
            continue
        for greedy in (False, True):
            processor = AufbauLogitsProcessor(start, VOCABULARY, greedy=greedy)
            generator = outlines.Generator(theirs, processor=processor)
            for prompt in PROMPTS:
                chat = outlines.inputs.Chat([{"role": "user", "content": prompt}])
                settings = {"max_new_tokens": BUDGET, "eos_token_id": list(VOCABULARY.stop)}
                text = generator(chat, do_sample=False, **settings)
                assert text == TOKENIZER.decode(ours(model, prompt, start)), name
    rows = [starts()[name] for name in ("digits", "fun", "brackets")]
    generator = outlines.Generator(theirs, processor=AufbauLogitsProcessor(rows, VOCABULARY))
    chats = [outlines.inputs.Chat([{"role": "user", "content": prompt}]) for prompt in PROMPTS]
    texts = generator.batch(chats, do_sample=False, **settings)
    assert texts == [TOKENIZER.decode(ours(model, p, s)) for p, s in zip(PROMPTS, rows, strict=True)]


# Decoders that draw, search and guess


def test_several_answers_to_each_prompt() -> None:
    rows = [starts()["brackets"], starts()["fun"]]
    torch.manual_seed(0)
    processor = AufbauLogitsProcessor(rows, VOCABULARY)
    found = generate(tiny(), PROMPTS[:2], rows, processor, do_sample=True, num_return_sequences=4, temperature=1.5)
    assert len(found) == 8
    for place, tokens in enumerate(found):
        reached = rows[place // 4].feed(b"".join(map(VOCABULARY.spelling, tokens)))
        assert reached.verdict is not Verdict.LOST
        assert reached.verdict is Verdict.SATISFIED or len(tokens) == BUDGET
    assert len({tuple(tokens) for tokens in found}) > 4


@pytest.mark.parametrize("beams", [2, 5])
@pytest.mark.parametrize("name", ["digits", "brackets", "fun"])
def test_beams_are_followed(name: str, beams: int) -> None:
    start = starts()[name]
    width = batch(tiny(), PROMPTS[:1], [start])["input_ids"].shape[1]
    settings = {"num_beams": beams, "num_return_sequences": beams, "max_new_tokens": 8}
    processor = AufbauLogitsProcessor(start, VOCABULARY, speculative=True)
    found = generate(tiny(), PROMPTS[:1], [start], processor, **settings)
    assert found == generate(tiny(), PROMPTS[:1], [start], FromScratch(start, width), **settings)
    assert start.feed(b"".join(map(VOCABULARY.spelling, found[0]))).verdict is not Verdict.LOST


def test_guessed_tokens_are_taken_back() -> None:
    start = starts()["fun"]
    expected = ours(tiny(), "hello hello 12 345 12 345", start)
    processor = AufbauLogitsProcessor(start, VOCABULARY, speculative=True)
    inputs = ["hello hello 12 345 12 345"], [start], processor
    assert generate(tiny(), *inputs, prompt_lookup_num_tokens=3) == [expected]


# What is left to a row


MOVES = st.lists(st.integers(0, 400), max_size=6)
"""Ranks among the admissible tokens, which make a text."""


def walk(start: PrefixLike, ranks: Sequence[int]) -> tuple[PrefixLike, list[int]]:
    prefix, tokens = start, []
    for rank in ranks:
        allowed = np.flatnonzero(admissible(prefix, VOCABULARY))
        if not len(allowed):
            break
        tokens.append(int(allowed[rank % len(allowed)]))
        prefix = prefix.feed(VOCABULARY.spelling(tokens[-1]))
    return prefix, tokens


@given(data=st.data(), name=st.sampled_from(["brackets", "digits", "fun", "tools"]), policy=st.sampled_from(StopPolicy))
@settings(max_examples=40)
def test_the_mask_is_what_the_oracle_says(data: st.DataObject, name: str, policy: StopPolicy) -> None:
    start = starts()[name]
    prefix, tokens = walk(start, data.draw(MOVES))
    complete = prefix.verdict is Verdict.SATISFIED
    expected = np.zeros(len(VOCABULARY) + 5, np.bool_)
    if not complete or prefix.extensible:
        expected[: len(VOCABULARY)] = admissible(prefix, VOCABULARY)
    if complete or policy is StopPolicy.PAPER:
        expected[list(VOCABULARY.stop)] = True
    scores = torch.randn((1, len(expected)), generator=torch.Generator().manual_seed(len(tokens)))
    ids = torch.tensor([[7, 8, 9, *tokens]])
    before = scores.clone()
    for greedy in (False, True):
        processor = AufbauLogitsProcessor(start, VOCABULARY, stop_policy=policy, greedy=greedy, prompt_lengths=3)
        left = processor(ids, scores)[0]
        assert torch.equal(scores, before)
        kept = np.isfinite(left.numpy())
        if greedy:
            assert np.flatnonzero(kept).tolist() == [int(np.where(expected, scores[0].numpy(), -np.inf).argmax())]
        else:
            assert (kept == expected).all()
        assert (left.numpy()[kept] == scores[0].numpy()[kept]).all()
        # llama.cpp gives rows of numpy, its own buffers.
        processor.reset()
        plain = processor(ids[0].numpy(), scores[0].numpy())
        assert isinstance(plain, np.ndarray)
        np.testing.assert_array_equal(plain, left.numpy())


@given(rows=st.integers(1, 3), size=st.integers(1, 100), data=st.data())
def test_packed_words_mask_as_booleans_do(rows: int, size: int, data: st.DataObject) -> None:
    bits = data.draw(st.lists(st.booleans(), min_size=rows * size, max_size=rows * size))
    mask = np.array(bits).reshape(rows, size)
    scores = torch.arange(rows * size, dtype=torch.bfloat16).reshape(rows, size)
    assert torch.equal(masked_by_words(scores, packed(mask)), masked(scores, mask))


@pytest.mark.parametrize("looked_at", [1, 3, 64])
@pytest.mark.parametrize("name", ["digits", "brackets", "fun"])
def test_scores_on_a_device_give_the_same(name: str, looked_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    start = starts()[name]
    monkeypatch.setattr("agentkit.models.processor.on_host", lambda _scores: None)
    monkeypatch.setattr("agentkit.models.masking.LOOKED_AT", looked_at)
    monkeypatch.setattr("agentkit.models.processor.masked", lambda scores, mask: masked_by_words(scores, packed(mask)))
    for greedy in (False, True):
        processor = AufbauLogitsProcessor(start, VOCABULARY, greedy=greedy)
        assert generate(tiny(), PROMPTS[:1], [start], processor) == [ours(tiny(), PROMPTS[0], start)]


def test_rows_that_are_asked_again_end_another_way() -> None:
    vocabulary = Vocabulary([b"1", b"", b""], stop=[1, 2])
    rows = Rows(vocabulary)
    row = rows.after(Row(Digits(b"1")), 1)
    mask = np.empty(3, np.bool_)
    assert rows.mask(row, mask)
    assert mask.tolist() == [False, False, True]
    assert rows.best(row, np.array([5.0, 4.0, 3.0])) == 2
    assert rows.mask(rows.after(row, 2), mask)
    assert mask.tolist() == [False, True, True]


def test_what_is_complete_ends_and_does_not_grow_by_blanks() -> None:
    step = starts()["tools"].feed(b"let n = count(d);")
    assert admissible(step, VOCABULARY).any()
    for greedy in (False, True):
        left = call(AufbauLogitsProcessor(step, VOCABULARY, greedy=greedy), [[5]])
        assert set(torch.isfinite(left[0]).nonzero().flatten().tolist()) <= set(VOCABULARY.stop)
        assert torch.isfinite(left).any()


def test_a_prompt_that_begins_as_the_last_one_is_a_new_one() -> None:
    processor = AufbauLogitsProcessor(Digits(), VOCABULARY)
    first = call(processor, [[5]])
    assert not torch.equal(call(processor, [[5, ONE]]), first)
    assert torch.equal(call(processor, [[5, ONE, BRACKET, BRACKET]]), first)


# What is refused


def call(processor: AufbauLogitsProcessor, rows: list[list[int]], size: int = len(VOCABULARY)) -> Any:
    return processor(torch.tensor(rows), torch.zeros((len(rows), size)))


ONE, BRACKET = (int(TOKENIZER.convert_tokens_to_ids(text)) for text in ("1", "("))


@pytest.mark.parametrize("greedy", [False, True], ids=["masked", "best only"])
def test_a_token_that_was_refused_is_an_error(greedy: bool) -> None:
    processor = AufbauLogitsProcessor(Digits(), VOCABULARY, greedy=greedy)
    call(processor, [[5], [6]])
    with pytest.raises(HistoryError, match=r"row 1 .* refused; its text is now '\(', .*reset\(\)"):
        call(processor, [[5, ONE], [6, BRACKET]])


@pytest.mark.parametrize("greedy", [False, True], ids=["masked", "best only"])
@pytest.mark.parametrize("start", [Nothing(), Digits(b"x")], ids=["nothing may follow", "lost"])
def test_a_dead_end_names_row_and_text(start: PrefixLike, greedy: bool) -> None:
    processor = AufbauLogitsProcessor([Digits(), start], VOCABULARY, greedy=greedy)
    with pytest.raises(DeadEndError, match="row 1 is at a dead end") as caught:
        call(processor, [[5], [6]])
    assert (caught.value.row, caught.value.text) == (1, start.text)


class _Until(Digits):
    """Series of ones; a two may follow, and nothing after it."""

    @property
    def verdict(self) -> Verdict:
        return Verdict.LOST if b"2" in self.text[:-1] else Verdict.LIVE

    def feed(self, data: bytes, /) -> _Until:
        return _Until(self.text + data)


def test_a_dead_beam_is_no_dead_end_while_others_live() -> None:
    vocabulary = Vocabulary([b"1", b"2", b""], stop=[2])
    processor = AufbauLogitsProcessor(_Until(), vocabulary, speculative=True)
    call(processor, [[0], [0]], 3)
    left = call(processor, [[0, 0], [0, 1]], 3)
    assert torch.isfinite(left).tolist() == [[True, True, False], [False] * 3]
    with pytest.raises(DeadEndError, match="row 0"):
        call(processor, [[0, 1], [0, 1]], 3)


REFUSALS: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: AufbauLogitsProcessor([], VOCABULARY), ProcessorError, "no prefix"),
    (lambda: AufbauLogitsProcessor(Digits(), Vocabulary([b"1"])), ValueError, "no stop token"),
    (lambda: AufbauLogitsProcessor(Digits(), VOCABULARY, stop=[ONE]), ValueError, "are text"),
    (lambda: call(AufbauLogitsProcessor([Digits()] * 2, VOCABULARY), [[1]] * 3), ProcessorError, "3 rows but 2 prefix"),
    (lambda: call(AufbauLogitsProcessor(Digits(), VOCABULARY), [[1]], 7), ProcessorError, "scores 7 tokens"),
    (
        lambda: AufbauLogitsProcessor(Digits(), VOCABULARY)(torch.tensor([[1]]), torch.zeros((2, len(VOCABULARY)))),
        ProcessorError,
        "1 rows of token ids but 2 of scores",
    ),
    (
        lambda: call(AufbauLogitsProcessor(Digits(), VOCABULARY, prompt_lengths=2), [[1]]),
        ProcessorError,
        "longer than the 1 ids",
    ),
    (
        lambda: call(AufbauLogitsProcessor(Digits(), VOCABULARY, prompt_lengths=[1, 1]), [[1]] * 3),
        ProcessorError,
        "one length for each prompt",
    ),
]


@pytest.mark.parametrize(("attempt", "error", "words"), REFUSALS)
def test_what_cannot_be_is_said(attempt: Callable[[], object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        attempt()
