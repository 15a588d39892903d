"""The bundled episode on the real default model: what must hold whatever the model writes."""

from __future__ import annotations

from importlib.resources import as_file, files

import anyio
import pytest

from agentkit import Agent, UsageLimits
from agentkit.evaluation import run_to_end
from agentkit.models import default_model
from dialects import Let
from episodes import Episode
from registry import builtin


@pytest.mark.model
def test_the_demo_on_the_default_model() -> None:
    with as_file(files("agentkit") / "data" / "demo.toml") as path:
        episode = Episode.from_toml(path)
    agent = Agent(default_model(), usage_limits=UsageLimits(turn_limit=6))
    outcome = anyio.run(run_to_end, agent, episode)
    result = outcome.result
    assert outcome.passed, outcome.error or result.to_json(indent=1)
    assert all(turn.step is not None for turn in result.turns)
    assert {step.call.tool for step in result.steps if isinstance(step, Let)} <= set(builtin())
    assert result.timing.oracle_s < 0.05 * result.timing.model_s
    # Turns after the first read again only what is new.
    assert result.usage.cached_tokens > result.usage.prefilled_tokens
