"""Episodes and agents choose the dialect that steps are written in."""

from __future__ import annotations

import pytest

from agentkit import Agent
from agentkit.models import ScriptedModel
from episodes import Episode, SpecError

TEXT = 'prompt = "How many?"\noutput_type = "int"\nexpected = 3\n'
ANSWERS = {"c": "return 3;", "sexpr": "(return 3)", "xml": "<return><int>3</int></return>"}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_agent_writes_steps_in_the_dialect_of_the_episode_or_else_in_its_own(name: str) -> None:
    for agent, episode in (
        (Agent(ScriptedModel([ANSWERS[name]]), dialect=name), Episode.parse(TEXT)),
        (Agent(ScriptedModel([ANSWERS[name]])), Episode.parse(f'dialect = "{name}"\n{TEXT}')),
    ):
        assert agent.run_sync(episode).output == 3


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(SpecError, match="did you mean 'sexpr'"):
        Episode.parse(f'dialect = "sexp"\n{TEXT}')
