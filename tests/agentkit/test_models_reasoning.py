"""Reasoning tags are read off chat templates, and an answer begins where the model's own form puts it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import anyio
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from agentkit.models import (
    Decoder,
    FinishReason,
    Generation,
    Message,
    ReasoningFormat,
    Sampling,
    StopPolicy,
    TokenRecord,
    TransformersModel,
)
from agentkit.models.prompt import Answer, prompt_text, reasoning_of
from tests.agentkit.models_toys import Brackets, byte_level_tokenizer, tiny_llama

ASKED = [Message(role="user", content="U")]

TURNS = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
BEGIN = "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
# Hybrid models: thinking is skipped on request, else the model opens its reasoning itself.
HYBRID = TURNS + (
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)
# The prompt opens the reasoning, whatever is asked; reasoning in past turns is taken out.
OPENED = (
    "{% for m in messages %}[{{ m['role'] }}]{{ m['content'].split('</think>')[-1] }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]<think>\n{% endif %}"
)
# Either way the prompt says it.
BOTH = TURNS + (
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking %}<think>\n{% else %}<think></think>\n{% endif %}{% endif %}"
)
# The model opens it, and the template says only in the system's words whether it shall.
INSTRUCTED = (
    "[system]{% if enable_thinking %}Reason in <think> and </think>.{% else %}Answer.{% endif %}"
    "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}[assistant]"
)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A template, and the prompts it comes to, for an answer alone and for reasoning first."""

    template: str
    answer: str
    thinks: str
    closing: str = "\n</think>\n\n"


HEAD = "<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n"
CASES = {
    "none": Case(template=TURNS + BEGIN, answer=HEAD, thinks=HEAD, closing=""),
    "hybrid": Case(template=HYBRID, answer=f"{HEAD}<think>\n\n</think>\n\n", thinks=f"{HEAD}<think>\n"),
    "opened": Case(
        template=OPENED,
        answer="[user]U[assistant]<think>\n\n</think>\n\n",
        thinks="[user]U[assistant]<think>\n",
    ),
    "both": Case(template=BOTH, answer=f"{HEAD}<think></think>\n", thinks=f"{HEAD}<think>\n", closing="\n</think>\n"),
    "instructed": Case(
        template=INSTRUCTED,
        answer="[system]Answer.[user]U[assistant]<think>\n\n</think>\n\n",
        thinks="[system]Reason in <think> and </think>.[user]U[assistant]<think>\n",
    ),
    "brackets": Case(
        template="{% for m in messages %}[INST]{{ m['content'] }}[/INST]{% endfor %}{# [THINK] [/THINK] #}",
        answer="[INST]U[/INST][THINK]\n\n[/THINK]\n\n",
        thinks="[INST]U[/INST][THINK]\n",
        closing="\n[/THINK]\n\n",
    ),
}


def tokenizer_of(template: str, tags: str = "plain") -> Any:
    """A tokenizer with reasoning tags as added tokens, `special` or not, or as mere text."""
    tokenizer = byte_level_tokenizer()
    tokenizer.chat_template = template
    if tags != "text":
        tokenizer.add_tokens(["<think>", "</think>"], special_tokens=tags == "special")
    return tokenizer


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_prompts_of_published_forms(case: Case) -> None:
    tokenizer = tokenizer_of(case.template)
    assert prompt_text(tokenizer, ASKED) == case.answer
    assert prompt_text(tokenizer, ASKED, thinks=True) == case.thinks
    form = reasoning_of(tokenizer)
    assert (form.closing("So.") if form is not None else "") == case.closing


def test_tokens_alone_say_nothing() -> None:
    assert reasoning_of(tokenizer_of(TURNS + BEGIN)) is None
    plain = byte_level_tokenizer()
    plain.chat_template = None
    assert reasoning_of(plain) is None
    assert prompt_text(plain, ASKED, thinks=True) == prompt_text(plain, ASKED)


@pytest.mark.parametrize(("reasoning", "closing"), [("", "</t>\n"), ("So.\n", "</t>\n"), ("So.", "\n</t>\n")])
def test_a_closing_begins_a_line(reasoning: str, closing: str) -> None:
    form = ReasoningFormat(opening="<t>\n", tag="</t>", gap="\n", skipped="<t></t>\n")
    assert form.closing(reasoning) == closing


# Generations that think and go on


def model_of(tags: str, seed: int) -> TransformersModel:
    tokenizer = tokenizer_of(HYBRID, tags)
    return TransformersModel(tiny_llama(len(tokenizer), seed=seed), tokenizer, name="tiny")


async def think(session: Any, prefill: str = "", stop: tuple[str, ...] = (), max_tokens: int = 12) -> Generation:
    generation: Generation = await session.generate(
        ASKED,
        prefix=None,
        sampling=Sampling(temperature=1.0, seed=5),
        max_tokens=max_tokens,
        stop_policy=StopPolicy.STRICT,
        stop=stop,
        assistant_prefill=prefill,
        thinks=True,
    )
    return generation


async def answer(session: Any, prefill: str, *, thinks: bool = True) -> Generation:
    generation: Generation = await session.generate(
        ASKED,
        prefix=Brackets(),
        sampling=Sampling(),
        max_tokens=8,
        stop_policy=StopPolicy.STRICT,
        assistant_prefill=prefill,
        thinks=thinks,
    )
    return generation


@pytest.fixture
def preferred(monkeypatch: pytest.MonkeyPatch) -> dict[int, float]:
    """Scores by token, which stand in for what the random model thinks of these."""
    scores: dict[int, float] = {}
    step = Decoder.step

    def preferring(self: Decoder, logits: Any) -> Any:
        for token, score in scores.items():
            logits[token] = score
        return step(self, logits)

    monkeypatch.setattr(Decoder, "step", preferring)
    return scores


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("tags", ["plain", "special", "text"])
def test_an_answer_after_reasoning_reads_only_what_is_new(tags: str, seed: int, preferred: dict[int, float]) -> None:
    model = model_of(tags, seed)
    # Random bytes are mostly no characters, and what is no text cannot be kept.
    preferred |= {token: -100.0 for token, text in enumerate(model.vocabulary) if not text.isascii()}
    preferred |= dict.fromkeys(model.added.values(), -100.0)

    async def main() -> None:
        session = model.session()
        assert session.reasoning is not None
        thought = await think(session, stop=(session.reasoning.tag,))
        assert thought.text.encode() == b"".join(record.text for record in thought.tokens)
        closing = session.reasoning.closing(thought.text)
        then = await answer(session, thought.text + closing)
        # The last token of the reasoning was chosen and not yet read.
        fresh = len(model.tokenizer(closing, add_special_tokens=False)["input_ids"])
        assert then.usage.prefilled_tokens == fresh + 1
        assert then.usage.cached_tokens == thought.usage.prompt_tokens + len(thought.tokens) - 1
        # A generation that does not think is cut into tokens anew, as one text.
        again = await answer(session, thought.text + closing, thinks=False)
        alone = await answer(model.session(), thought.text + closing, thinks=False)
        assert again.text == alone.text

    anyio.run(main)


def test_reasoning_that_is_cut_inside_a_token_is_kept_up_to_there() -> None:
    model = model_of("plain", 0)
    answer = Answer(model.tokenizer, model.spelling)
    before = answer.cut(ASKED, "", thinks=True)
    spelled = {text: token for token, text in enumerate(model.vocabulary)}
    series = [spelled[text] for text in (b"h", b"\xc3", b"\xa9", b"))", b"\xc3")]
    records = [
        TokenRecord(
            token=token, text=model.vocabulary.spelling(token), entropy=0, first_choice=True, rejected=0, logprob=0
        )
        for token in series
    ]
    # What the stop string or the budget left of it, and how many of the tokens it wholly holds.
    for kept, whole in [("hé))", 4), ("hé)", 3), ("hé", 3), ("h\ufffd", 1), ("", 0)]:
        answer.cut(ASKED, "", thinks=True)
        answer.grow(Generation(text=kept, prefix=None, tokens=tuple(records), finish=FinishReason.STOP))
        after = answer.cut(ASKED, f"{kept}\n", thinks=True)
        assert after[: len(before) + whole] == [*before, *series[:whole]]
        assert model.tokenizer.decode(after) == f"{prompt_text(model.tokenizer, ASKED, thinks=True)}{kept}\n"


@pytest.mark.parametrize("tags", ["plain", "special"])
def test_reasoning_ends_at_the_models_own_tag(tags: str, preferred: dict[int, float]) -> None:
    model = model_of(tags, 0)
    preferred[model.added["</think>"]] = 1000.0

    async def main() -> None:
        session = model.session()
        thought = await think(session, "So.", stop=("</think>",))
        assert (thought.finish, thought.text) == (FinishReason.STOP, "")
        assert [record.token for record in thought.tokens] == [model.added["</think>"]]

    anyio.run(main)
