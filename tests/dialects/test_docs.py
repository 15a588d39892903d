"""The programs in docs/dialects.md are one program in three dialects."""

from __future__ import annotations

import re
from pathlib import Path

from dialects import Root, by_name, translate
from registry import builtin

PAGE = Path(__file__).parents[2] / "docs" / "dialects.md"
FENCES = {"c": "c", "lisp": "sexpr", "xml": "xml"}


def test_the_programs_are_one_program() -> None:
    blocks = dict(re.findall(r"```(\w+)\n(.*?)\n```", PAGE.read_text(encoding="utf-8"), re.DOTALL))
    assert set(blocks) == set(FENCES)
    with builtin() as tools:
        lowered = {fence: by_name(name).lower(tools) for fence, name in FENCES.items()}
        for source, text in blocks.items():
            for target, other in blocks.items():
                assert translate(text, lowered[source], lowered[target], {}, None, Root.PROGRAM) == other
