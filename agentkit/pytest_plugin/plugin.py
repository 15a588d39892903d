"""The hooks and fixtures that are there once a folder of episodes is named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agentkit.models import Model, resolve_model
from agentkit.pytest_plugin.collect import EpisodeFile
from agentkit.pytest_plugin.report import summary_lines
from agentkit.pytest_plugin.settings import PluginSettings, plugin_settings
from registry import Registry, builtin

_SETTINGS = pytest.StashKey[PluginSettings]()


def pytest_configure(config: pytest.Config) -> None:
    """Read the settings, and add the folders where pytest was not told what to collect."""
    if not config.pluginmanager.hasplugin("asyncio"):
        raise pytest.UsageError("episodes as tests need pytest-asyncio; install it with: pip install pytest-asyncio")
    settings = config.stash[_SETTINGS] = plugin_settings(config)
    config.addinivalue_line("markers", "agentkit: an episode of a TOML file, made a test by agentkit")
    # A folder of the configuration file is collected like testpaths; one of the command line in any case.
    here = config.invocation_params.dir
    named = [(here / path).resolve() for path in config.getoption("agentkit_episodes")]
    told = config.args_source is pytest.Config.ArgsSource.ARGS
    present = [(here / argument.partition("::")[0]).resolve() for argument in config.args]
    for path in named if told else settings.paths:
        if not any(path.is_relative_to(other) for other in present):
            config.args.append(str(path))


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """The test of a TOML file in one of the folders."""
    settings = parent.config.stash[_SETTINGS]
    return EpisodeFile.of(parent, file_path, settings) if settings.is_episode(file_path) else None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The section about episodes."""
    reports = [
        report
        for found in terminalreporter.stats.values()
        for report in found
        if isinstance(report, pytest.TestReport) and report.when == "call"
    ]
    lines = summary_lines(reports)
    if lines:
        terminalreporter.section("agentkit episodes")
        for line in lines:
            terminalreporter.line(line)


@pytest.fixture(scope="session")
def agentkit_model(request: pytest.FixtureRequest) -> Model:
    """The model of all episodes; override it in a conftest.py to use another one."""
    return resolve_model(request.config.stash[_SETTINGS].model)


@pytest.fixture(scope="session")
def agentkit_registry() -> Iterator[Registry]:
    """The tools of episodes that name no registry; override it in a conftest.py to use yours."""
    with builtin() as registry:
        yield registry


@pytest.fixture(scope="session")
def agentkit_options() -> Mapping[str, Any]:
    """Further arguments of `Agent`, such as its dialect, limits and sampling; override it in a conftest.py."""
    return {}


@pytest.fixture
def agentkit_number() -> int:
    """Which repetition a test is, from 0 on."""
    return 0
