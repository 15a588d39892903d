"""Agents that solve episodes by typed tool steps, each held to the oracle before it is executed."""

from agentkit.agent import Agent
from agentkit.errors import (
    ConfigurationError,
    IncompleteStep,
    ModelFailed,
    ModeNotAvailable,
    RepeatedStep,
    RunError,
    ToolFailed,
    UsageLimitExceeded,
)
from agentkit.events import Event, RunEnded, StepProposed, TokenGenerated, TurnEnded
from agentkit.limits import UsageLimits
from agentkit.modes import Mode
from agentkit.prompts import PromptVariant
from agentkit.result import RunResult, RunTiming, RunUsage, StopReason, TurnTelemetry
from agentkit.root import AgentError
from agentkit.run import Run

__all__ = [
    "Agent",
    "AgentError",
    "ConfigurationError",
    "Event",
    "IncompleteStep",
    "Mode",
    "ModeNotAvailable",
    "ModelFailed",
    "PromptVariant",
    "RepeatedStep",
    "Run",
    "RunEnded",
    "RunError",
    "RunResult",
    "RunTiming",
    "RunUsage",
    "StepProposed",
    "StopReason",
    "TokenGenerated",
    "ToolFailed",
    "TurnEnded",
    "TurnTelemetry",
    "UsageLimitExceeded",
    "UsageLimits",
]
