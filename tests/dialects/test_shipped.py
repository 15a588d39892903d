"""The shipped grammars are what the built-in tools generate, and the command writes them."""

from __future__ import annotations

import pytest

from aufbau import Grammar
from dialects import DIALECTS
from dialects.command import FOLDER, SHIPPED, main, shipped_text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_shipped_grammar_is_what_the_builtin_tools_generate(dialect: str) -> None:
    shipped = (FOLDER / SHIPPED[dialect]).read_text(encoding="utf-8")
    assert shipped == shipped_text(dialect), "regenerate it: python -m dialects"
    assert Grammar.parse(Grammar.parse(shipped).source()) == Grammar.parse(shipped)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_grammar_is_printed(dialect: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grammar", "registry:builtin", "--dialect", dialect]) == 0
    assert capsys.readouterr().out == shipped_text(dialect)
