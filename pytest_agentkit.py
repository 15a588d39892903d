"""The pytest plugin of agentkit as pytest loads it: options, and nothing else until a folder of episodes is named."""

from __future__ import annotations

import importlib

import pytest

# The plugin itself. Importing agentkit takes most of a second, which every start of pytest would pay.
_PLUGIN = "agentkit.pytest_plugin.plugin"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, each with a setting of the same name for the configuration file."""
    group = parser.getgroup("agentkit", "agentkit: episodes as tests")
    group.addoption(
        "--agentkit-episodes",
        action="append",
        default=[],
        metavar="PATH",
        help="a folder of TOML episodes, or one episode, to run as tests; may be given several times",
    )
    group.addoption("--agentkit-model", metavar="SPEC", help="what the fixture agentkit_model loads (default: default)")
    group.addoption(
        "--agentkit-mode",
        action="append",
        metavar="MODE",
        help="how steps are decoded (default: direct); may be given several times, each is a test of its own",
    )
    group.addoption("--agentkit-repeat", metavar="N", help="tests of each episode and mode (default: 1)")
    parser.addini("agentkit_episodes", "folders of TOML episodes, and single ones, to run as tests", type="paths")
    parser.addini("agentkit_model", "what the fixture agentkit_model loads", default="default")
    parser.addini("agentkit_mode", "how steps are decoded", type="args", default=["direct"])
    parser.addini("agentkit_repeat", "tests of each episode and mode", default="1")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Load the plugin where episodes are named."""
    if config.getoption("agentkit_episodes") or config.getini("agentkit_episodes"):
        config.pluginmanager.register(importlib.import_module(_PLUGIN), "agentkit-episodes")
