"""Agents that are put together wrongly are refused by name, with what would do."""

from __future__ import annotations

import pytest

from agentkit import Agent, ConfigurationError
from agentkit.models import ScriptedModel

CONFIGURATIONS: list[tuple[dict[str, object], str]] = [
    ({"mode": "dircet"}, "unknown mode 'dircet'.*'unconstrained', 'direct', 'mixed', 'thinking', 'syntactic'"),
    ({"dialect": "cobol"}, "unknown dialect 'cobol'.*'c'"),
    ({"tool_errors": "ignore"}, "'raise' or 'observe'"),
]


@pytest.mark.parametrize(("options", "said"), CONFIGURATIONS)
def test_a_wrong_argument_is_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        Agent(ScriptedModel([]), **options)  # type: ignore[arg-type]
