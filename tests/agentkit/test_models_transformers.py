"""Local models: greedy decoding is exact, the cache changes no score, and cancelling leaves a usable session."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from agentkit.models import (
    ContextOverflowError,
    Decoder,
    FinishReason,
    Generation,
    Message,
    ModelLoadError,
    ModelNotFoundError,
    PrefixLike,
    PromptError,
    Sampling,
    SessionError,
    StopPolicy,
    TransformersModel,
    resolve_model,
)
from agentkit.models.prompt import prompt_text, prompt_tokens
from agentkit.models.transformers import CachedReader
from aufbau.verdict import Verdict
from aufbau.vocabulary import admissible
from tests.agentkit.models_toys import HELLO, Brackets, Counted, Digits, byte_level_tokenizer, tiny_llama

TOKENIZER = byte_level_tokenizer()
# Matrices this small gain nothing from more threads, and lose much where other work runs beside.
torch.set_num_threads(1)


def tiny(seed: int = 0, context: int = 4096) -> TransformersModel:
    # More scores than tokens, as in published models whose embeddings are padded.
    return TransformersModel(tiny_llama(len(TOKENIZER) + 13, seed=seed, context=context), TOKENIZER, name="tiny")


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


def logits_without_cache(model: TransformersModel, tokens: Sequence[int]) -> np.ndarray:
    with torch.inference_mode():
        scores: np.ndarray = model._model(torch.tensor([list(tokens)])).logits[0, -1].numpy()
    return scores


@pytest.mark.parametrize("policy", list(StopPolicy))
@pytest.mark.parametrize("start", [Brackets(), Brackets(b"(", b")"), Digits()])
def test_greedy_equals_the_maximum_over_the_exhaustive_set(start: Any, policy: StopPolicy) -> None:
    for seed in range(2):
        model = tiny(seed)
        prefill = start.text.decode()
        answer = partial(ask, model.session(), start, policy=policy, assistant_prefill=prefill)
        result = anyio.run(answer)
        series, prefix = prompt_tokens(TOKENIZER, HELLO, prefill), start
        assert result.tokens
        for record in result.tokens:
            scores = logits_without_cache(model, series)[: len(model.vocabulary)]
            mask = admissible(prefix, model.vocabulary)
            if policy is StopPolicy.PAPER or prefix.verdict is Verdict.SATISFIED:
                mask[list(model.vocabulary.stop)] = True
            assert record.token == int(np.where(mask, scores, -np.inf).argmax())
            assert record.first_choice is (record.token == int(scores.argmax()))
            series, prefix = [*series, record.token], prefix.feed(record.text)
        assert result.prefix == prefix
        assert result.text == prefix.text[len(start.text) :].decode(errors="replace")


def test_reading_by_parts_gives_the_scores_of_reading_at_once() -> None:
    model = tiny()
    random = np.random.default_rng(0)
    reader = model.reader()
    series: list[int] = []
    for _ in range(20):
        kept = int(random.integers(0, len(series) + 1))
        series = series[:kept] + [int(t) for t in random.integers(0, 300, size=int(random.integers(1, 12)))]
        start = reader.rewind(series)
        assert start == min(kept, len(series) - 1) or series[:start] == list(reader.tokens)
        scores = reader.extend(series[start:])
        assert list(reader.tokens) == series
        np.testing.assert_allclose(scores, logits_without_cache(model, series), atol=2e-4)


def test_a_sliding_window_that_cannot_go_back_is_read_again() -> None:
    from transformers import MistralConfig, MistralForCausalLM

    torch.manual_seed(0)
    config = MistralConfig(
        vocab_size=len(TOKENIZER),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        sliding_window=8,
        initializer_range=0.5,
        bos_token_id=None,
        eos_token_id=None,
    )
    model = TransformersModel(MistralForCausalLM(config), TOKENIZER)
    reader = model.reader()
    for series in ([*range(20, 60)], [*range(20, 50), 7, 8], [*range(20, 50), 7, 8, 9, 10]):
        start = reader.rewind(series)
        scores = reader.extend(series[start:])
        np.testing.assert_allclose(scores, logits_without_cache(model, series), atol=2e-4)


def test_a_failed_pass_leaves_nothing_cached() -> None:
    reader = CachedReader(tiny()._model)
    reader.extend([5, 6, 7])
    with pytest.raises(IndexError):
        reader.extend([10**6])
    assert reader.rewind([5, 6, 7]) == 0
    reader.extend([5, 6, 7])
    assert list(reader.tokens) == [5, 6, 7]


def test_turns_reuse_the_cache_and_change_no_answer() -> None:
    model = tiny()

    async def main() -> None:
        session, messages, before = model.session(), [*HELLO], 0
        for turn in range(4):
            kept = await ask(session, Brackets(), messages)
            fresh = await ask(model.session(), Brackets(), messages)
            assert [t.token for t in kept.tokens] == [t.token for t in fresh.tokens]
            assert kept.usage.prompt_tokens == kept.usage.cached_tokens + kept.usage.prefilled_tokens
            assert fresh.usage.cached_tokens == 0
            # All of the last prompt is still there; only the answer and the new message are read.
            assert kept.usage.cached_tokens >= before
            before = kept.usage.prompt_tokens
            messages += [
                Message(role="assistant", content=kept.text),
                Message(role="user", content=f"again {turn}"),
            ]

    anyio.run(main)


def test_a_long_prompt_is_read_in_portions() -> None:
    model = tiny()
    messages = [Message(role="user", content="hello (ab) cat " * 300)]

    async def main() -> Generation:
        return await ask(model.session(), None, messages, max_tokens=5)

    result = anyio.run(main)
    series = prompt_tokens(TOKENIZER, messages, "")
    assert result.usage.prefilled_tokens == len(series) > 1024
    for record in result.tokens:
        assert record.token is not None
        scores = logits_without_cache(model, series)[: len(model.vocabulary)]
        assert scores[record.token] == pytest.approx(float(scores.max()), abs=1e-3)
        series.append(record.token)


def test_sampling_repeats_by_seed() -> None:
    model = tiny()

    async def main() -> list[list[int | None]]:
        answers = []
        for seed in (1, 1, 2):
            sampling = Sampling(temperature=1.5, seed=seed)
            answers.append(await ask(model.session(), Brackets(), sampling=sampling))
        assert all(a.prefix is not None and a.prefix.verdict is not Verdict.LOST for a in answers)
        return [[record.token for record in answer.tokens] for answer in answers]

    first, second, third = anyio.run(main)
    assert first == second
    assert first != third


def test_unconstrained_text_stops_at_strings_and_budget() -> None:
    model = tiny()

    async def main() -> None:
        free = await ask(model.session(), None, max_tokens=12)
        assert free.prefix is None
        assert (free.finish, len(free.tokens)) == (FinishReason.LENGTH, 12)
        assert all(record.first_choice for record in free.tokens)
        middle = next(character for character in free.text[1:] if character.isascii())
        cut = await ask(model.session(), None, max_tokens=12, stop=[middle])
        assert cut.finish is FinishReason.STOP
        assert cut.text == free.text[: free.text.index(middle)]

    anyio.run(main)


@pytest.mark.parametrize("native", [False, True], ids=["anyio scope", "asyncio task"])
def test_cancelling_ends_after_the_token_at_work(native: bool) -> None:
    model = tiny()

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
        count = len(seen)
        again = await ask(session, None, max_tokens=6)
        assert len(seen) == count <= 4
        assert [t.token for t in again.tokens] == [t.token for t in expected.tokens]

    asyncio.run(main())


def test_the_event_loop_runs_on_meanwhile() -> None:
    model = tiny()
    loop_thread = threading.get_ident()
    threads: set[int] = set()
    model._model.register_forward_pre_hook(lambda _module, _inputs: threads.add(threading.get_ident()))

    async def main() -> None:
        await ask(model.session(), None, max_tokens=4)

    anyio.run(main)
    assert threads
    assert loop_thread not in threads


def test_sessions_side_by_side_do_not_disturb_each_other() -> None:
    model = tiny()

    async def main() -> None:
        alone = [await ask(model.session(), Brackets(), [Message(role="user", content=f"cat {i}")]) for i in range(4)]
        together: dict[int, Generation] = {}

        async def one(i: int) -> None:
            together[i] = await ask(model.session(), Brackets(), [Message(role="user", content=f"cat {i}")])

        async with anyio.create_task_group() as group:
            for i in range(4):
                group.start_soon(one, i)
        assert [together[i].text for i in range(4)] == [answer.text for answer in alone]

    anyio.run(main)
    # The same model in another event loop, of another library.
    anyio.run(main, backend="trio")


def test_a_session_has_one_caller_and_an_end() -> None:
    model = tiny()

    async def main() -> None:
        session = model.session()
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
    model = tiny(context=40)

    async def main() -> None:
        short = await ask(model.session(), None, max_tokens=1000)
        assert short.finish is FinishReason.LENGTH
        assert short.usage.prompt_tokens + short.usage.generated_tokens == 40
        with pytest.raises(ContextOverflowError, match="tiny reads at most 40 tokens"):
            await ask(model.session(), None, [Message(role="user", content="hello " * 40)])

    anyio.run(main)


def test_a_complete_prefix_costs_no_forward_pass() -> None:
    model = tiny()
    result = anyio.run(lambda: ask(model.session(), Digits(b"1234"), assistant_prefill="1234"))
    assert (result.text, result.finish) == ("", FinishReason.SATISFIED)
    assert result.usage.prefilled_tokens == 0


def test_what_is_taken_back_leaves_the_cache_too() -> None:
    """Steered generations through the cache are those of a decoder that is given the scores of whole series."""
    # An `x` is a dead end there, which is only seen behind it.
    start = Counted(trap=True)
    taken_back = 0
    for seed in range(6):
        model = tiny(seed)
        prompt = prompt_tokens(TOKENIZER, HELLO, "")
        sampling = Sampling(temperature=4.0, seed=seed)
        decoder = Decoder(
            model.vocabulary,
            prefix=start,
            sampling=sampling,
            stop_policy=StopPolicy.STRICT,
            max_tokens=20,
            salt=len(prompt),
            steer=True,
        )
        while decoder.finish is None:
            chosen = [record.token for record in decoder.records if record.token is not None]
            decoder.step(logits_without_cache(model, [*prompt, *chosen]))
        session = model.session()
        cached = anyio.run(partial(ask, session, start, sampling=sampling, max_tokens=20, steer=True))
        assert [one.token for one in cached.tokens] == [one.token for one in decoder.records]
        assert cached.prefix is not None and cached.prefix.verdict is Verdict.SATISFIED
        assert cached.usage.generated_tokens == decoder.generated == len(cached.tokens) + decoder.taken_back
        taken_back += decoder.taken_back
    assert taken_back


def test_prompts_by_template_and_without() -> None:
    messages = [Message(role="system", content="S"), Message(role="user", content="U")]
    assert prompt_text(TOKENIZER, messages) == (
        "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n"
    )
    plain = byte_level_tokenizer()
    plain.chat_template = None
    assert prompt_text(plain, messages) == "System: S\n\nUser: U\n\nAssistant:"
    with pytest.raises(PromptError, match="at least one message"):
        prompt_text(plain, [])


def test_templates_that_know_no_system_role() -> None:
    strict = byte_level_tokenizer()
    strict.chat_template = (
        "{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
        "[{{ m['role'] }}]{{ m['content'] }}{% endfor %}"
    )
    messages = [Message(role="system", content="S"), Message(role="user", content="U")]
    assert prompt_text(strict, messages) == "[user]S\n\nU"
    with pytest.raises(PromptError, match="no system role"):
        prompt_text(strict, messages[:1])


def test_saved_folders_load(tmp_path: Path) -> None:
    model = tiny()
    model._model.save_pretrained(tmp_path)
    TOKENIZER.save_pretrained(tmp_path)
    loaded = resolve_model(str(tmp_path))

    async def main() -> None:
        ours, theirs = await ask(model.session(), Brackets()), await ask(loaded.session(), Brackets())
        assert ours.text == theirs.text

    anyio.run(main)


@pytest.mark.parametrize(
    ("spec", "error", "words"),
    [
        ("no such/thing/at all", ModelNotFoundError, "no such file or folder"),
        ("{tmp}/empty", ModelNotFoundError, "no config.json"),
        ("{tmp}/notes.txt", ModelNotFoundError, "not a GGUF file"),
        ("{tmp}/broken.gguf", ModelLoadError, "GGUF file .* cannot be loaded"),
        ("{tmp}/broken", ModelLoadError, "cannot be loaded"),
        ("nobody-at-all/no-such-model", ModelNotFoundError, "HF_HUB_OFFLINE"),
    ],
)
def test_unknown_models_say_what_was_tried(
    spec: str, error: type[Exception], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text(json.dumps({"model_type": "llama"}))
    (tmp_path / "notes.txt").write_text("not a model")
    (tmp_path / "broken.gguf").write_bytes(b"GGUF but no more")
    with pytest.raises(error, match=words):
        resolve_model(spec.format(tmp=tmp_path))
