"""A run written down: recorded from its events, kept as JSON, shown as one static page."""

from agentkit.trace.errors import TraceError
from agentkit.trace.model import BindingTrace, CallTrace, MessageTrace, TokenTrace, Trace, TurnTrace
from agentkit.trace.page import trace_page
from agentkit.trace.recorder import TraceRecorder

__all__ = [
    "BindingTrace",
    "CallTrace",
    "MessageTrace",
    "TokenTrace",
    "Trace",
    "TraceError",
    "TraceRecorder",
    "TurnTrace",
    "trace_page",
]
