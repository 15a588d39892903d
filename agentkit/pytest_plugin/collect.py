"""Makes tests of the TOML files: a module for each file, with one asynchronous test that runs the episode."""

from __future__ import annotations

import tomllib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

from agentkit.agent import Agent
from agentkit.models import Model, Sampling
from agentkit.modes import Mode
from agentkit.pytest_plugin.settings import PluginSettings
from agentkit.result import RunResult
from agentkit.root import AgentError
from episodes import Episode, EpisodeError
from episodes.evaluation import Attempt, attempt_episode
from registry import Registry, RegistryError

# The name of a file's test.
TEST = "episode"
# Errors that say all there is to say.
_TOLD = (AgentError, EpisodeError, RegistryError)
# What a report's properties are called; `report` finds attempts by the first.
EPISODE, MODE, FAILURE, PREFIX = "agentkit.episode", "agentkit.mode", "agentkit.failure", "agentkit."


class EpisodeFile(pytest.Module):
    """A TOML file, as a module that holds its test; so conftest files, fixtures and marks apply as to any."""

    @classmethod
    def of(cls, parent: pytest.Collector, path: Path, settings: PluginSettings) -> EpisodeFile:
        """The module of a file."""
        node: EpisodeFile = cls.from_parent(parent, path=path)
        node._settings = settings
        return node

    _settings: PluginSettings

    def _getobj(self) -> ModuleType:
        # Where pytest imports the file of an ordinary module.
        module = ModuleType(self.path.stem, f"The episode of {self.path.name}.")
        test = _located(_run, self.path)
        for mark in _marks(self.path, self._settings):
            test = mark(test)
        setattr(module, TEST, test)
        return module


def _marks(path: Path, settings: PluginSettings) -> list[pytest.MarkDecorator]:
    """What the test is marked with: the `markers` of the file, and what makes it the test of an episode."""
    # Only these are read here: an episode needs its tools, which a fixture gives. Its other faults fail its test.
    try:
        named = tomllib.loads(path.read_text(encoding="utf-8")).get("markers", [])
    except (OSError, ValueError) as error:
        raise pytest.Collector.CollectError(f"{path}: not TOML: {error}") from error
    if not isinstance(named, list) or not all(isinstance(name, str) and name.isidentifier() for name in named):
        raise pytest.Collector.CollectError(f"{path}: markers: expected a list of names, got {named!r}")
    marks = [getattr(pytest.mark, name) for name in named]
    marks += [pytest.mark.asyncio, pytest.mark.agentkit]
    marks.append(pytest.mark.parametrize("agentkit_mode", settings.modes, ids=[mode.value for mode in settings.modes]))
    if settings.repeat > 1:
        marks.append(pytest.mark.parametrize("agentkit_number", range(settings.repeat)))
    return marks


def _located(function: Callable[..., Awaitable[None]], path: Path) -> Any:
    """A copy of a function that says it stands in `path`, so that reports name the file of the episode."""
    assert isinstance(function, FunctionType)
    code = function.__code__.replace(co_filename=str(path), co_firstlineno=1)
    copy = FunctionType(code, function.__globals__, TEST)
    # Collected whatever names python_functions asks for.
    copy.__test__ = True  # type: ignore[attr-defined]
    return copy


async def _run(
    request: pytest.FixtureRequest,
    agentkit_model: Model,
    agentkit_registry: Registry,
    agentkit_options: Mapping[str, Any],
    agentkit_mode: Mode,
    agentkit_number: int,
) -> None:
    await run_episode(request.node, agentkit_model, agentkit_registry, agentkit_options, agentkit_mode, agentkit_number)


async def run_episode(
    item: pytest.Item, model: Model, registry: Registry, options: Mapping[str, Any], mode: Mode, number: int
) -> None:
    """Run the episode of a test's file once, enter what came of it into the report, and fail where it did not pass."""
    try:
        episode = Episode.from_toml(item.path, registry)
    except EpisodeError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from error
    sampling = options.get("sampling") or Sampling()
    given = {"tools": registry, **options, "mode": mode}
    given["sampling"] = replace(sampling, seed=(sampling.seed or 0) + number)
    attempt = await attempt_episode(Agent(model, **given), episode, number)
    item.user_properties.extend(_properties(attempt, mode, model))
    if attempt.failure is not None:
        item.add_report_section("call", "agentkit", _told(attempt))
        if attempt.error is not None and not isinstance(attempt.error, _TOLD):
            raise attempt.error
        # Our errors say what, where and how to mend; frames of the agent would say nothing more.
        raise pytest.fail.Exception(
            f"{attempt.failure.group}: {attempt.failure.message}", pytrace=False
        ) from attempt.error


def _properties(attempt: Attempt, mode: Mode, model: Model) -> list[tuple[str, object]]:
    result = attempt.result if isinstance(attempt.result, RunResult) else None
    found: list[tuple[str, object]] = [
        (EPISODE, attempt.episode),
        (MODE, mode.value),
        (PREFIX + "model", model.name),
        (PREFIX + "number", attempt.number),
        (PREFIX + "turns", attempt.turns),
        (PREFIX + "refused", attempt.refused),
        (PREFIX + "seconds", round(attempt.seconds, 3)),
    ]
    if result is not None:
        found += [(PREFIX + "tokens", result.usage.generated_tokens), (PREFIX + "stop", result.stop_reason.value)]
    if attempt.failure is not None:
        found.append((FAILURE, attempt.failure.group))
    return found


def _told(attempt: Attempt) -> str:
    """The turns of an attempt, as the section of a failed test shows them."""
    lines = []
    for turn in attempt.result.transcript if attempt.result is not None else ():
        lines.append(f"turn {turn.number}: {turn.text or '(nothing)'}")
        if turn.thought:
            lines.append(f"  thought: {turn.thought}")
        lines.append(f"  {turn.observation or turn.error or ''}")
    return "\n".join(lines) or "no turn ended"
