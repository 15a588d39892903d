"""What `OutlinesModel` has to know of each kind of model that Outlines can steer."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentkit.models.base import Message
from agentkit.models.errors import ModelLoadError
from agentkit.models.extras import require
from agentkit.models.llamacpp import LlamaTokenizer
from agentkit.models.prompt import prompt_text, reasoning_of
from agentkit.models.reasoning import ReasoningFormat
from agentkit.models.transformers import TransformersModel
from aufbau.vocabulary import Vocabulary


@dataclass(frozen=True, kw_only=True, slots=True)
class Steerable:
    """One model of Outlines, made to read prompts as they are."""

    name: str
    vocabulary: Vocabulary
    # Tokens beside the vocabulary's own, by their text.
    added: Mapping[str, int]
    context_length: int | None
    # Writes a conversation by its chat template.
    tokenizer: Any
    reasoning: ReasoningFormat | None
    # How many tokens a prompt has.
    count: Callable[[str], int]
    # The token that ends a generation; None where there is none.
    end: int | None
    # Outlines' model, without its own way of writing prompts.
    model: Any
    # Arguments of its `generate`, for a budget of tokens.
    arguments: Callable[[int], Mapping[str, Any]]
    # What the back end puts before each prompt, so that it does not stand there twice.
    bos: str = ""

    def prompt(self, messages: Sequence[Message], prefill: str, *, thinks: bool) -> str:
        """The conversation as one text, up to where the model goes on."""
        return prompt_text(self.tokenizer, messages, thinks=thinks).removeprefix(self.bos) + prefill

    def generate(self, prompt: str, processor: Any, max_tokens: int) -> None:
        """Generate under a processor, which also keeps what is generated."""
        self.model.generate(prompt, processor, **self.arguments(max_tokens))


def steerable(model: Any) -> Steerable:
    """What there is to know of a model of Outlines. Raises `ModelLoadError` where Outlines cannot steer it."""
    models = require("outlines").models
    for kind, describe in ((models.Transformers, _transformers), (models.LlamaCpp, _llamacpp), (models.MLXLM, _mlxlm)):
        if isinstance(model, kind):
            return describe(model)
    raise ModelLoadError(
        f"Outlines does not steer a {type(model).__name__} token by token, so it cannot be constrained here; give"
        " one of outlines.from_transformers, from_llamacpp or from_mlxlm"
    )


def _transformers(model: Any) -> Steerable:
    tokenizer = model.hf_tokenizer
    ours = TransformersModel(model.model, tokenizer)
    ends = list(ours.vocabulary.stop)
    padding = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else next(iter(ends), None)
    # The decoder chooses, and looks at the scores as the model computes them.
    settings = {
        "do_sample": False,
        "num_beams": 1,
        "repetition_penalty": 1.0,
        "no_repeat_ngram_size": 0,
        "min_length": 0,
        "eos_token_id": ends or None,
        "pad_token_id": padding,
    }
    return Steerable(
        name=ours.name,
        vocabulary=ours.vocabulary,
        added=ours.added,
        context_length=ours.context_length,
        tokenizer=tokenizer,
        reasoning=ours.reasoning,
        count=lambda text: len(tokenizer(text)["input_ids"]),
        end=next(iter(ends), None),
        model=_reading_verbatim(model),
        arguments=lambda budget: {**settings, "max_new_tokens": budget},
        bos=_added_bos(tokenizer),
    )


def _llamacpp(model: Any) -> Steerable:
    tokenizer = LlamaTokenizer(model.model)
    return Steerable(
        name=tokenizer.name,
        vocabulary=tokenizer.vocabulary,
        added=tokenizer.added,
        context_length=int(model.model.n_ctx()),
        tokenizer=tokenizer,
        reasoning=reasoning_of(tokenizer),
        count=tokenizer.count,
        end=tokenizer.vocabulary.stop[0],
        model=_reading_verbatim(model),
        arguments=lambda budget: {"max_tokens": budget, "temperature": 0.0, "repeat_penalty": 1.0},
        bos=tokenizer.added_bos,
    )


def _mlxlm(model: Any) -> Steerable:
    tokenizer = model.tokenizer.tokenizer
    return Steerable(
        name=str(getattr(tokenizer, "name_or_path", "") or type(model.model).__name__),
        vocabulary=Vocabulary.from_tokenizer(tokenizer),
        added={str(entry.content): int(token) for token, entry in tokenizer.added_tokens_decoder.items()},
        context_length=getattr(getattr(model.model, "args", None), "max_position_embeddings", None),
        tokenizer=tokenizer,
        reasoning=reasoning_of(tokenizer),
        count=lambda text: len(tokenizer(text)["input_ids"]),
        end=tokenizer.eos_token_id,
        model=_reading_verbatim(model),
        arguments=lambda budget: {"max_tokens": budget},
        bos=_added_bos(tokenizer),
    )


class _Verbatim:
    """A type adapter of Outlines that hands prompts on as they are: we apply the chat template, since an answer may
    have begun."""

    def __init__(self, adapter: Any) -> None:
        self.format_output_type = adapter.format_output_type

    def format_input(self, model_input: str) -> str:
        """The prompt."""
        return model_input


def _reading_verbatim(model: Any) -> Any:
    """A view of Outlines' model that shares all but the formatting of prompts."""
    view = copy.copy(model)
    view.type_adapter = _Verbatim(model.type_adapter)
    return view


def _added_bos(tokenizer: Any) -> str:
    """The beginning-of-text token, where a tokenizer puts it before each prompt."""
    begins = tokenizer.bos_token is not None and tokenizer("")["input_ids"][:1] == [tokenizer.bos_token_id]
    return str(tokenizer.bos_token) if begins else ""
