"""What becomes of a prompt that the model's context cannot hold."""

from __future__ import annotations

from enum import Enum


class ContextPolicy(Enum):
    """What a run does when its prompt is longer than the model's context."""

    RAISE = "raise"
    """It ends with `ContextWindowExceeded`."""

    TRUNCATE = "truncate"
    """The turn is asked again with less, in the order of `Cut`; only when that is not enough it ends. The names and
    types of all bindings stay, and the prompt says what is left out."""


class Cut(Enum):
    """How much of the run a prompt leaves out; each member leaves out what those before it do."""

    NOTHING = 0
    """The prompt is whole."""

    OLD = 1
    """Reasoning and observed values before the last two steps."""

    RECENT = 2
    """Those before the last step, the long values of the last one, values bound at the start, and the conversation
    before the task."""

    STEPS = 3
    """All steps but the last, and the worked examples."""

    @property
    def words(self) -> str:
        """What is left out, as the model and the caller are told."""
        return _WORDS[self]

    def next(self) -> Cut | None:
        """What to try after this one."""
        return Cut(self.value + 1) if self is not Cut.STEPS else None


_WORDS = {
    Cut.NOTHING: "",
    Cut.OLD: "reasoning and values before the last two steps",
    Cut.RECENT: "the conversation before this task, values bound at the start, reasoning and values of the steps",
    Cut.STEPS: "the conversation before this task, the examples, values bound at the start, all steps but the last",
}

# Characters that an observation keeps which is no binding, or is the last one.
KEPT_CHARACTERS = 120


def brief(observation: str, bound: tuple[str, str] | None) -> str:
    """An observation without its value: of a binding its name and type, of anything else the beginning."""
    if bound is not None:
        return f"{bound[0]} : {bound[1]} (value left out)"
    if len(observation) <= KEPT_CHARACTERS:
        return observation
    return f"{observation[:KEPT_CHARACTERS]}… ({len(observation):,} characters in all)"
