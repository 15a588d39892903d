"""Agents that solve episodes by typed tool steps, each held to the oracle before it is executed."""

from agentkit.agent import Agent
from agentkit.block import Block, BlockRequest, decode_block
from agentkit.errors import (
    ConfigurationError,
    IncompleteStep,
    ModelFailed,
    RepeatedStep,
    RunError,
    ToolFailed,
    UsageLimitExceeded,
)
from agentkit.events import Event, RunEnded, RunStarted, StepProposed, TokenGenerated, TurnEnded, TurnStarted
from agentkit.limits import UsageLimits
from agentkit.modes import Mode
from agentkit.prompts import PromptVariant
from agentkit.result import RunResult, RunTiming, RunUsage, StopReason, TurnTelemetry
from agentkit.root import AgentError
from agentkit.run import Run

__all__ = [
    "Agent",
    "AgentError",
    "Block",
    "BlockRequest",
    "ConfigurationError",
    "Event",
    "IncompleteStep",
    "Mode",
    "ModelFailed",
    "PromptVariant",
    "RepeatedStep",
    "Run",
    "RunEnded",
    "RunError",
    "RunResult",
    "RunStarted",
    "RunTiming",
    "RunUsage",
    "StepProposed",
    "StopReason",
    "TokenGenerated",
    "ToolFailed",
    "TurnEnded",
    "TurnStarted",
    "TurnTelemetry",
    "UsageLimitExceeded",
    "UsageLimits",
    "decode_block",
]
