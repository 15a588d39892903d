"""What traces raise: one error, for files that hold none and for recorders used twice."""

from __future__ import annotations

from agentkit.root import AgentError


class TraceError(AgentError):
    """A file that is no trace, or a recorder that was given the events of a second run."""
