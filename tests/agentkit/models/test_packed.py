"""Passes over several sequences: their scores are those of ordinary passes, in any company, or the model is refused."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
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

from agentkit.models import Message, ModelLoadError, Sampling, StopPolicy, TransformersModel
from agentkit.models.packed import Packing, UnpackableError, pack
from tests.agentkit.models_toys import Brackets, byte_level_tokenizer, tiny_llama

TOKENIZER = byte_level_tokenizer()
torch.set_num_threads(1)


@cache
def tiny() -> Any:
    return tiny_llama(len(TOKENIZER) + 13)


@cache
def packing(reproducible: bool = False) -> Packing:
    return pack(tiny(), max_batch=8, reproducible=reproducible)


def plain(series: Sequence[int]) -> np.ndarray:
    with torch.inference_mode():
        scores: np.ndarray = tiny()(torch.tensor([list(series)])).logits[0, -1].numpy()
    return scores


# Of each pass: which of five sequences goes on, by how many tokens, and how much of it is taken back before.
PASSES = st.lists(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(1, 9), st.integers(0, 4)),
        min_size=1, max_size=5, unique_by=lambda part: part[0],
    ),
    min_size=1, max_size=8,
)  # fmt: skip


def test_ordinary_passes_are_what_they_were() -> None:
    before = tiny_llama(300, seed=2)
    after = tiny_llama(300, seed=2)
    pack(after, max_batch=2)
    ids = torch.tensor([[5, 6, 7, 8, 9], [1, 5, 6, 7, 8]])
    mask = torch.tensor([[1] * 5, [0] + [1] * 4])
    with torch.inference_mode():
        for more in ({}, {"attention_mask": mask}):
            assert torch.equal(before(ids, **more).logits, after(ids, **more).logits)


@settings(max_examples=15, deadline=None)
@given(passes=PASSES, seed=st.integers(0, 99))
def test_company_changes_no_scores(passes: list[list[tuple[int, int, int]]], seed: int) -> None:
    draw = np.random.default_rng(seed)
    together = packing()
    readers = [together.reader() for _ in range(5)]
    series: list[list[int]] = [[] for _ in range(5)]
    for one in passes:
        parts = []
        for place, size, back in one:
            kept = series[place][: max(0, len(series[place]) - back)]
            series[place] = kept + draw.integers(0, 300, size).tolist()
            begun = readers[place].rewind(series[place])
            parts.append((readers[place], series[place][begun:]))
        for (place, _, _), scores in zip(one, together.read(parts), strict=True):
            assert list(readers[place].tokens) == series[place]
            np.testing.assert_allclose(scores, plain(series[place]), atol=5e-4)


def test_reproducible_scores_are_equal_bit_for_bit() -> None:
    try:
        together = packing(True)
    except ModelLoadError as error:
        pytest.skip(str(error))
    draw = np.random.default_rng(3)
    prompt, answer = draw.integers(0, 300, 20).tolist(), draw.integers(0, 300, 6).tolist()

    def scores(company: int) -> list[bytes]:
        own, others = together.reader(), [together.reader() for _ in range(company)]
        found = []
        for tokens in (prompt, *([token] for token in answer)):
            parts = [(other, draw.integers(0, 300, 1 + place % 3).tolist()) for place, other in enumerate(others)]
            parts.insert(company // 2, (own, tokens))
            found.append(together.read(parts)[company // 2].tobytes())
        return found

    alone = scores(0)
    for company in (1, 2, 3, 5, 8, 17, 40):
        assert scores(company) == alone


def test_a_failed_pass_leaves_its_readers_as_they_were() -> None:
    together = packing()
    one, other = together.reader(), together.reader()
    together.read([(one, [5, 6, 7]), (other, [8, 9])])
    with pytest.raises(IndexError):
        together.read([(one, [10]), (other, [10**6])])
    assert (list(one.tokens), list(other.tokens)) == ([5, 6, 7], [8, 9])
    np.testing.assert_allclose(one.extend([11]), plain([5, 6, 7, 11]), atol=5e-4)


def config(**more: Any) -> dict[str, Any]:
    return dict(
        vocab_size=len(TOKENIZER), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, bos_token_id=None, eos_token_id=None, pad_token_id=None, **more,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("family", "settings", "words"),
    [
        ("Llama", {}, None),
        ("Qwen2", {}, None),
        ("Qwen3", {"head_dim": 8}, None),
        ("Mistral", {"sliding_window": None}, None),
        ("Mistral", {"sliding_window": 8}, "window"),
        ("Gemma3Text", {"head_dim": 8, "sliding_window": 8}, "sliding_attention"),
        ("Llama", {"attn_implementation": "eager"}, "'eager'"),
        (
            "Llama",
            {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}},
            "scaled by length",
        ),
    ],
)
def test_models_that_cannot_be_packed_are_read_alone(family: str, settings: dict[str, Any], words: str | None) -> None:
    import transformers

    torch.manual_seed(0)
    name = "Gemma3ForCausalLM" if family == "Gemma3Text" else f"{family}ForCausalLM"
    network = getattr(transformers, name)(getattr(transformers, f"{family}Config")(**config(**settings)))
    model = TransformersModel(network, TOKENIZER, name=family)
    reason = model.reads_alone
    assert reason is None if words is None else words in str(reason)
    alone = TransformersModel(network, TOKENIZER, name=family, max_batch=1)

    async def main() -> None:
        asked = [[Message(role="user", content=f"cat {i}")] for i in range(5)]
        expected = [await ask(alone, one) for one in asked]
        found: dict[int, list[int | None]] = {}

        async def one(i: int) -> None:
            found[i] = await ask(model, asked[i])

        async with anyio.create_task_group() as group:
            for i in range(5):
                group.start_soon(one, i)
        assert [found[i] for i in range(5)] == expected

    anyio.run(main)


def test_a_trial_that_does_not_agree_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Packing.read
    with monkeypatch.context() as patch:
        patch.setattr(Packing, "read", lambda self, parts: [scores[::-1] for scores in read(self, parts)])
        with pytest.raises(UnpackableError, match="other scores"):
            pack(tiny(), max_batch=4)
    other = tiny_llama(300, seed=1)
    forward = type(other).forward

    def strict(self: Any, input_ids: Any, use_cache: bool = False, position_ids: Any = None) -> Any:
        return forward(self, input_ids, use_cache=use_cache, position_ids=position_ids)

    monkeypatch.setattr(type(other), "forward", strict)
    with pytest.raises(UnpackableError, match="failed: TypeError"):
        pack(other, max_batch=4)
    assert other.config._attn_implementation == "sdpa"


async def ask(model: TransformersModel, messages: list[Message], session: Any = None) -> list[int | None]:
    session = session or model.session()
    generation = await session.generate(
        messages, prefix=Brackets(), sampling=Sampling(), max_tokens=12, stop_policy=StopPolicy.STRICT
    )
    return [record.token for record in generation.tokens]


LONG = [Message(role="user", content="hello (ab) cat " * 30)]


@pytest.mark.parametrize("at_once", [False, True])
def test_shared_prefixes_are_read_once(at_once: bool) -> None:
    sharing = TransformersModel(tiny(), TOKENIZER, share_prefixes=True)
    messages = [[*LONG, Message(role="user", content=f"cat {i}")] for i in range(6)]
    prefilled: dict[int, int] = {}

    async def one(i: int) -> None:
        session = sharing.session()
        generation = await session.generate(
            messages[i], prefix=Brackets(), sampling=Sampling(), max_tokens=12, stop_policy=StopPolicy.STRICT
        )
        usage = generation.usage
        assert usage.cached_tokens + usage.prefilled_tokens == usage.prompt_tokens
        prefilled[i] = usage.prefilled_tokens
        fresh = TransformersModel(tiny(), TOKENIZER)
        assert [record.token for record in generation.tokens] == await ask(fresh, messages[i])
        await session.aclose()

    async def main() -> None:
        if not at_once:
            for i in range(6):
                await one(i)
            return
        async with anyio.create_task_group() as group:
            for i in range(6):
                group.start_soon(one, i)

    anyio.run(main)
    # The long part once, by one or by several together; of each its own end.
    assert sum(prefilled.values()) < 1.5 * max(len(TOKENIZER(LONG[0].content)["input_ids"]), 1) + 6 * 40


def test_closing_a_session_frees_what_it_read() -> None:
    for sharing, remain in ((False, 0), (True, 2)):
        model = TransformersModel(tiny(), TOKENIZER, share_prefixes=sharing)
        readers: list[Any] = []

        async def one(i: int, model: TransformersModel, readers: list[Any]) -> None:
            session = model.session()
            await ask(model, [Message(role="user", content=f"{i} cat")], session)
            readers.append(weakref.ref(session._reader))
            await session.aclose()

        for i in range(4):
            anyio.run(one, i, model, readers)
        gc.collect()
        assert sum(reader() is not None for reader in readers) == remain


def test_settings_that_exclude_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="depends on the company"):
        TransformersModel(tiny(), TOKENIZER, reproducible=True, share_prefixes=True)
    with pytest.raises(ValueError, match="max_batch"):
        TransformersModel(tiny(), TOKENIZER, max_batch=0)
