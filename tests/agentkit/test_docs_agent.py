"""The examples in docs/agent.md run, each with a model that answers as its text supposes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agentkit.models import ScriptedModel

PAGE = Path(__file__).parents[2] / "docs" / "agent.md"
BLOCKS = dict(
    re.findall(r"^## ([^\n]+)$(?:(?!^## ).)*?```python\n(.*?)\n```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
)
REPLIES = {
    "Dependencies": ['let p = price("tea");', "return p;"],
    "Approval": ["let p = pay(300);", "return p;"],
    "Checkpoints": ['let b = fill("tea");', "let n = size(b);", "return n;"],
    "Conversations": ["let n = add(1, 2);", "return n;", "let m = add(n, 4);", "return m;"],
    "Events": ["let n = add(1, 2);", "return n;"],
    "In tests": [],
}


def test_every_example_has_replies() -> None:
    assert set(BLOCKS) == set(REPLIES)


@pytest.mark.parametrize("title", REPLIES)
def test_an_example_runs(title: str) -> None:
    model = ScriptedModel(REPLIES[title])
    exec(
        compile(BLOCKS[title], f"{PAGE.name}: {title}", "exec", dont_inherit=True), {"__name__": title, "model": model}
    )
    assert model.remaining == 0
