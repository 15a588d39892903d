"""What the options and the configuration file say: where episodes are, with what model, how, how often."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from agentkit.errors import ConfigurationError
from agentkit.modes import Mode, mode_of


@dataclass(frozen=True, kw_only=True, slots=True)
class PluginSettings:
    """The settings of one pytest run; an option goes before the configuration file."""

    paths: tuple[Path, ...]
    """Folders of episodes, and single ones."""

    model: str
    modes: tuple[Mode, ...]
    repeat: int

    def is_episode(self, path: Path) -> bool:
        """Whether a file is to be a test: a `.toml` file that is named, or lies in a folder that is."""
        return path.suffix == ".toml" and (path in self.paths or path.parent in self.paths)


def plugin_settings(config: pytest.Config) -> PluginSettings:
    """The settings. Raises `pytest.UsageError`."""
    named = [config.invocation_params.dir / path for path in config.getoption("agentkit_episodes")]
    paths = [path.resolve() for path in (*config.getini("agentkit_episodes"), *named)]
    for path in paths:
        if not path.exists():
            raise pytest.UsageError(f"agentkit_episodes: {path} is not there; name a folder of .toml files, or one")
    repeat = str(config.getoption("agentkit_repeat") or config.getini("agentkit_repeat"))
    if not repeat.isdecimal() or int(repeat) < 1:
        raise pytest.UsageError(f"agentkit_repeat: {repeat!r} is no number from 1 on")
    try:
        modes = [mode_of(mode) for mode in config.getoption("agentkit_mode") or config.getini("agentkit_mode")]
    except ConfigurationError as error:
        raise pytest.UsageError(f"agentkit_mode: {error}") from error
    return PluginSettings(
        paths=tuple(dict.fromkeys(paths)),
        model=str(config.getoption("agentkit_model") or config.getini("agentkit_model")),
        modes=tuple(dict.fromkeys(modes)),
        repeat=int(repeat),
    )
