"""Goes on with an earlier conversation: which of its messages a next prompt repeats."""

from __future__ import annotations

from collections.abc import Sequence

from agentkit.models import Message


def earlier(preamble: Sequence[Message], history: Sequence[Message]) -> tuple[Message, ...]:
    """What stands between the rules of a prompt and its task: the earlier conversation without its own rules.

    A history that begins with the same rules and examples keeps the prompt a growing one, which a model with a cache
    need not read again. Two messages of the user in a row, after a run without an answer, are set apart.
    """
    begin = len(preamble) if list(history[: len(preamble)]) == list(preamble) else 0
    rest = [message for message in history[begin:] if message.role != "system"]
    if rest and rest[-1].role == "user":
        rest.append(Message(role="assistant", content="(no answer)"))
    return tuple(rest)
