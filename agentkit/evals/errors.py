"""What an evaluation raises before it runs; an attempt that fails is a record, and no error.

AgentError
└── EvalError    a file of records that cannot be used, or settings that leave nothing to do
"""

from __future__ import annotations

from agentkit.root import AgentError


class EvalError(AgentError):
    """An evaluation that cannot go on; the message says what to change."""
