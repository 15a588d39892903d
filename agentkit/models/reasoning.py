"""How chat models set their reasoning apart, read off their chat template."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

# Opening and closing tags of published reasoning models.
_TAGS: Final = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReasoningFormat:
    """The tags around a model's reasoning, with the white space that its template puts at them."""

    # "<think>\n", say: what stands between the beginning of the answer and the reasoning.
    opening: str
    # The tag alone: where the model itself ends its reasoning.
    tag: str
    # What stands between the tag and the answer itself.
    gap: str = "\n\n"
    # No reasoning at all, as the template writes it; where it has no way to, an opening and a closing.
    skipped: str

    def closing(self, reasoning: str) -> str:
        """What must follow a reasoning, ended by the model or by a budget, for the answer to begin."""
        return ("" if reasoning.endswith("\n") or not reasoning else "\n") + self.tag + self.gap


def reasoning_format(template: str, ask: Callable[[bool], str]) -> ReasoningFormat | None:
    """The form that a chat template knows; None where it knows none.

    `ask` gives a prompt that it writes with `enable_thinking` on or off; they are the same where it does not ask.
    That a vocabulary has such tags says nothing: it is often shared with models that don't reason.
    """
    for begin, end in _TAGS:
        if begin not in template and end not in template:
            continue
        empty = re.search(rf"{re.escape(begin)}\s*{re.escape(end)}(\s*)\Z", ask(False))
        begun = re.search(rf"{re.escape(begin)}\s*\Z", ask(True))
        opening = begun[0] if begun is not None else f"{begin}\n"
        gap = empty[1] if empty is not None and empty[1] else "\n\n"
        without = empty[0] if empty is not None else f"{opening}\n{end}{gap}"
        return ReasoningFormat(opening=opening, tag=end, gap=gap, skipped=without)
    return None


def bare(prompt: str, form: ReasoningFormat) -> str:
    """A prompt up to where the answer begins, without a reasoning that the template opened or skipped itself."""
    if prompt.endswith(form.skipped):
        return prompt.removesuffix(form.skipped)
    return prompt.removesuffix(form.opening)
