"""The root of the errors of agentkit, apart so that models can have it without importing runs."""

from __future__ import annotations


class AgentError(Exception):
    """Anything that agentkit raises on purpose."""
