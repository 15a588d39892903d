"""Messages to prompt tokens, by the tokenizer's chat template or a plain fallback."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentkit.models.base import Message
from agentkit.models.errors import PromptError
from agentkit.models.extras import require

_PLAIN_NAMES = {"system": "System", "user": "User", "assistant": "Assistant"}


def prompt_text(tokenizer: Any, messages: Sequence[Message]) -> str:
    """The conversation as the model reads it, up to where its next answer begins."""
    if not messages:
        raise PromptError("a model needs at least one message to answer; give it a user message")
    if not getattr(tokenizer, "chat_template", None):
        return _plain(messages)
    error = require("jinja2").exceptions.TemplateError
    try:
        return _templated(tokenizer, messages)
    except error as refusal:
        # Some published templates know no system role; its text then opens the first user message.
        merged = _without_system(messages)
        if merged is None:
            raise PromptError(f"the chat template refuses the messages: {refusal}") from refusal
        try:
            return _templated(tokenizer, merged)
        except error as second:
            roles = ", ".join(message.role for message in messages)
            raise PromptError(f"the chat template refuses messages of the roles {roles}: {second}") from second


def prompt_tokens(tokenizer: Any, messages: Sequence[Message], prefill: str) -> list[int]:
    """The tokens of the conversation and of the beginning of the answer, cut as one text."""
    # A chat template writes the beginning-of-text token itself; the plain form leaves it to the tokenizer.
    plain = not getattr(tokenizer, "chat_template", None)
    encoded = tokenizer(prompt_text(tokenizer, messages) + prefill, add_special_tokens=plain)
    return [int(token) for token in encoded["input_ids"]]


def _templated(tokenizer: Any, messages: Sequence[Message]) -> str:
    turns = [{"role": message.role, "content": message.content} for message in messages]
    return str(tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))


def _plain(messages: Sequence[Message]) -> str:
    turns = [f"{_PLAIN_NAMES[message.role]}: {message.content}\n\n" for message in messages]
    # No space after the colon: most vocabularies write the space together with the word that follows.
    return "".join(turns) + "Assistant:"


def _without_system(messages: Sequence[Message]) -> list[Message] | None:
    """The messages with the system text moved into the first user message; None where there is none."""
    if len(messages) < 2 or messages[0].role != "system" or messages[1].role != "user":
        return None
    opening = Message(role="user", content=f"{messages[0].content}\n\n{messages[1].content}")
    return [opening, *messages[2:]]
