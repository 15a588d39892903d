"""Agents that solve episodes by typed tool steps, each held to the oracle before it is executed."""

from agentkit.agent import Agent, RunOptions
from agentkit.approval import ApprovalRequest, ApprovalRequired, Approve, Decision, Defer, Deny
from agentkit.block import Block, BlockRequest, decode_block
from agentkit.checkpoint import Checkpoint, ResumeConflict
from agentkit.context import RunContext
from agentkit.errors import (
    ConfigurationError,
    ContextWindowExceeded,
    IncompleteStep,
    ModelFailed,
    RepeatedStep,
    RunError,
    ToolFailed,
    UsageLimitExceeded,
)
from agentkit.events import (
    ContextTruncated,
    Event,
    RunEnded,
    RunStarted,
    StepProposed,
    TokenGenerated,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from agentkit.limits import UsageLimits
from agentkit.modes import Mode
from agentkit.prompts import PromptVariant
from agentkit.result import RunResult, RunTiming, RunUsage, StopReason, TurnTelemetry
from agentkit.root import AgentError
from agentkit.run import Run
from agentkit.saving import CheckpointError, Codec
from agentkit.stream import EventStream
from agentkit.window import ContextPolicy

__all__ = [
    "Agent",
    "AgentError",
    "ApprovalRequest",
    "ApprovalRequired",
    "Approve",
    "Block",
    "BlockRequest",
    "Checkpoint",
    "CheckpointError",
    "Codec",
    "ConfigurationError",
    "ContextPolicy",
    "ContextTruncated",
    "ContextWindowExceeded",
    "Decision",
    "Defer",
    "Deny",
    "Event",
    "EventStream",
    "IncompleteStep",
    "Mode",
    "ModelFailed",
    "PromptVariant",
    "RepeatedStep",
    "ResumeConflict",
    "Run",
    "RunContext",
    "RunEnded",
    "RunError",
    "RunOptions",
    "RunResult",
    "RunStarted",
    "RunTiming",
    "RunUsage",
    "StepProposed",
    "StopReason",
    "TokenGenerated",
    "ToolEnded",
    "ToolFailed",
    "ToolStarted",
    "TurnEnded",
    "TurnStarted",
    "TurnTelemetry",
    "UsageLimitExceeded",
    "UsageLimits",
    "decode_block",
]
