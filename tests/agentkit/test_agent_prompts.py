"""Prompts: worked examples are well typed, every variant tells what it must, and prompts only grow."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import pytest

from agentkit.prompts import Form, Prompt, PromptVariant, Situation, build_prompt
from agentkit.worked import worked_examples
from aufbau import Verdict
from dialects import CLikeDialect, LoweredDialect
from episodes import Binding, Bindings, Result, Turn
from registry import INT, STRING, Registry, builtin, tool


class Album:
    """A handle."""


class Style(enum.Enum):
    """An enumeration."""

    PLAIN = "plain"
    RICH = "rich"


@dataclass(frozen=True)
class Place:
    """A record."""

    name: str
    height: float = 0.0


@tool
def open_album(owner: str, since: datetime.date) -> Album:
    """Open an album."""
    return Album()


@tool
def first_place(album: Album, tags: list[str], limit: int = 3) -> Place:
    """Find the first place."""
    return Place(name="")


@tool
def describe(place: Place, style: Style, mode: Literal["long", "short"], title: str | None) -> str:
    """Describe a place."""
    return ""


@tool
def never(missing: Style, key: Place, unmade: Registry) -> bool:
    """Needs a handle that nothing makes."""
    return True


REGISTRIES: dict[str, Callable[[], Registry]] = {
    "builtin": builtin,
    "records": lambda: Registry([open_album, first_place, describe]),
    "unreachable": lambda: Registry([never, describe]),
}


@pytest.fixture(params=REGISTRIES, name="language")
def language_fixture(request: pytest.FixtureRequest) -> LoweredDialect:
    return CLikeDialect().lower(REGISTRIES[request.param](), types=[INT, STRING])


def test_worked_examples_are_well_typed(language: LoweredDialect) -> None:
    for example in worked_examples(language, 5):
        program = "\n".join(step.text for step in example.steps)
        prefix = language.start({}, None, "Program").feed(program)
        assert prefix.verdict is Verdict.SATISFIED, f"{program}\n{prefix.explain()}"
        assert example.task


def test_the_four_tools_are_all_shown() -> None:
    language = CLikeDialect().lower(builtin())
    texts = [" ".join(step.text for step in example.steps) for example in worked_examples(language, 3)]
    assert [name for name in language.registry if not any(f"{name}(" in text for text in texts)] == []
    assert all(text.endswith(";") and "return" in text for text in texts)


TURNS = (
    Turn(
        number=1, text='let d = search("tea");', observation="d : docs = 3 documents",
        result=Result(name="d", type="docs", value=None),
    ),
    Turn(number=2, text="Hm.\n", observation="Not a step: …", error="…"),
    Turn(
        number=3, text="let n = count(d);", observation="n : int = 3",
        result=Result(name="n", type="int", value=3),
    ),
)  # fmt: skip


def prompt_of(variant: PromptVariant, turns: int) -> Prompt:
    return build_prompt(
        variant.value,
        Situation(
            task="How many documents are about tea?",
            lowered=CLikeDialect().lower(builtin()),
            output=INT,
            initial=Bindings([Binding(name="k", type=INT, value=5)]),
            turns=TURNS[:turns],
            instructions="Be brief.",
        ),
    )


def flat(prompt: Prompt) -> str:
    return "\n".join([f"{one.role}: {one.content}" for one in prompt.messages]) + f"\nprefill: {prompt.prefill}"


@pytest.mark.parametrize("variant", PromptVariant)
def test_what_every_prompt_tells(variant: PromptVariant) -> None:
    told = flat(prompt_of(variant, 3))
    wanted = [
        "search(query: string) -> docs", "How many documents are about tea?", "k : int = 5", "Be brief.",
        'let d = search("tea");', "n : int = 3", "Not a step", "Hm.",
    ]  # fmt: skip
    assert [part for part in wanted if part not in told] == []


@pytest.mark.parametrize("variant", PromptVariant)
def test_a_prompt_only_grows(variant: PromptVariant) -> None:
    """So the key-value cache of a session stays good from turn to turn."""
    for turns in range(3):
        before, after = prompt_of(variant, turns), prompt_of(variant, turns + 1)
        assert after.messages[: len(before.messages)] == before.messages
        assert after.prefill.startswith(before.prefill)
        if variant.value.form is Form.CONVERSATION:
            assert after.messages[len(before.messages)].role == "assistant"


@pytest.mark.parametrize("variant", PromptVariant)
def test_roles_take_turns(variant: PromptVariant) -> None:
    roles = [message.role for message in prompt_of(variant, 3).messages]
    assert roles[0] == "system" and roles[-1] == "user"
    assert all(left != right for left, right in pairwise(roles))


def test_values_in_comments_stay_on_their_line() -> None:
    prefill = prompt_of(PromptVariant.PROGRAM, 3).prefill
    assert [line[:3] for line in prefill.splitlines()] == ["let", "// ", "// ", "let", "// "]
