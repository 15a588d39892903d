"""Messages to prompt tokens, by the tokenizer's chat template or a plain fallback."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from agentkit.models.base import Generation, Message
from agentkit.models.errors import PromptError
from agentkit.models.extras import require
from agentkit.models.reasoning import ReasoningFormat, bare, reasoning_format

_INSIDE = frozenset(bytes((byte,)) for byte in range(0x80, 0xC0))
_PLAIN_NAMES = {"system": "System", "user": "User", "assistant": "Assistant"}


def prompt_text(tokenizer: Any, messages: Sequence[Message], *, thinks: bool = False) -> str:
    """The conversation as the model reads it, up to where its next answer begins, without reasoning before it.

    With `thinks`, up to where its reasoning begins, behind the opening tag; a model that has no form for reasoning
    is asked the same either way.
    """
    if not messages:
        raise PromptError("a model needs at least one message to answer; give it a user message")
    if not getattr(tokenizer, "chat_template", None):
        return _plain(messages)
    error = require("jinja2").exceptions.TemplateError
    try:
        return _templated(tokenizer, messages, thinks)
    except error as refusal:
        # Some published templates know no system role; its text then opens the first user message.
        merged = _without_system(messages)
        if merged is None:
            raise PromptError(f"the chat template refuses the messages: {refusal}") from refusal
        try:
            return _templated(tokenizer, merged, thinks)
        except error as second:
            roles = ", ".join(message.role for message in messages)
            raise PromptError(f"the chat template refuses messages of the roles {roles}: {second}") from second


class Answer:
    """Cuts the prompts of one session into tokens, each anew, but for an answer that thinks and goes on.

    There what the model wrote stays as it wrote it: cut again it might begin otherwise, and would be read again.
    """

    def __init__(self, tokenizer: Any, spell: Callable[[int], bytes]) -> None:
        self._tokenizer = tokenizer
        self._spell = spell
        self._text = ""
        self._tokens: list[int] = []
        self._thinks = False

    def cut(self, messages: Sequence[Message], prefill: str, *, thinks: bool) -> list[int]:
        """The tokens of a prompt."""
        text = prompt_text(self._tokenizer, messages, thinks=thinks) + prefill
        more = text[len(self._text) :] if thinks and self._thinks and text.startswith(self._text) else ""
        tokens = text_tokens(self._tokenizer, more, goes_on=True) if more else []
        # Some tokenizers put a space before every text, which would stand between the two here.
        if tokens and b"".join(map(self._spell, tokens)) == more.encode():
            self._tokens += tokens
        else:
            self._tokens = text_tokens(self._tokenizer, text)
        self._text, self._thinks = text, thinks
        return list(self._tokens)

    def grow(self, generation: Generation) -> None:
        """Note what was generated, as far as it was kept: a stop string is left out, with what follows it."""
        kept = generation.text.encode()
        written, tokens = b"", list[int]()
        for record in generation.tokens:
            written += record.text
            tokens.append(record.token if record.token is not None else -1)
            if not kept.startswith(written) or not record.text:
                break
            # A token may end inside a character; the text cannot.
            if kept[len(written) : len(written) + 1] not in _INSIDE:
                self._text += written.decode()
                self._tokens += tokens
                kept = kept[len(written) :]
                written, tokens = b"", []


def prompt_tokens(tokenizer: Any, messages: Sequence[Message], prefill: str, *, thinks: bool = False) -> list[int]:
    """The tokens of the conversation and of the beginning of the answer, cut as one text."""
    return text_tokens(tokenizer, prompt_text(tokenizer, messages, thinks=thinks) + prefill)


def text_tokens(tokenizer: Any, text: str, *, goes_on: bool = False) -> list[int]:
    """The tokens of a whole prompt, or of one that `goes_on` after others."""
    # A chat template writes the beginning-of-text token itself; the plain form leaves it to the tokenizer.
    plain = not getattr(tokenizer, "chat_template", None)
    encoded = tokenizer(text, add_special_tokens=plain and not goes_on)
    return [int(token) for token in encoded["input_ids"]]


def reasoning_of(tokenizer: Any) -> ReasoningFormat | None:
    """How the tokenizer's chat template sets reasoning apart; None where it does not."""
    template = getattr(tokenizer, "chat_template", None)
    if not template:
        return None
    messages = [Message(role="user", content="?")]
    # A template may have several by name; the text of all is searched.
    known = template if isinstance(template, str) else " ".join(map(str, template.values()))
    return reasoning_format(known, lambda thinks: _asked(tokenizer, messages, thinks))


def _templated(tokenizer: Any, messages: Sequence[Message], thinks: bool) -> str:
    text = _asked(tokenizer, messages, thinks)
    form = reasoning_of(tokenizer)
    return text if form is None else bare(text, form) + (form.opening if thinks else form.skipped)


def _asked(tokenizer: Any, messages: Sequence[Message], thinks: bool) -> str:
    """What the template writes; one that does not ask for `enable_thinking` overlooks it."""
    turns = [{"role": message.role, "content": message.content} for message in messages]
    return str(tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True, enable_thinking=thinks))


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
