"""Episodes as pytest tests; `pytest_agentkit` loads this where a folder of episodes is named."""

from agentkit.pytest_plugin.settings import PluginSettings, plugin_settings

__all__ = ["PluginSettings", "plugin_settings"]
