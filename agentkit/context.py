"""What a tool may know of the run that calls it: its dependencies, and where the run stands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, get_args

from typing_extensions import TypeVar

from agentkit.errors import ConfigurationError
from agentkit.result import RunUsage
from episodes import Bindings
from registry import CallContext, Tool

D = TypeVar("D", default=Any)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunContext(CallContext, Generic[D]):
    """Given to a tool whose first parameter is annotated `RunContext[T]`; the model neither sees nor writes it."""

    deps: D
    """What `Agent.run(..., deps=...)` was given."""

    run_id: str
    turn: int
    """The number of the turn that makes the call."""

    usage: RunUsage
    """What the run had used before the step was executed."""

    bindings: Bindings
    """Γ before the step, with values. It is immutable: only steps bind names."""


def check_deps(tools: Iterable[Tool], deps: object) -> None:
    """Raise `ConfigurationError` where a tool is promised dependencies of another class than the run's."""
    for tool in tools:
        if tool.context is None:
            continue
        if not issubclass(RunContext, tool.context.type):
            raise ConfigurationError(
                f"tool {tool.name!r}: a run gives a RunContext, not a {tool.context.type.__name__}; annotate "
                f"{tool.context.name!r} with RunContext"
            )
        wanted = next(iter(get_args(tool.context.hint)), Any)
        if not _holds(wanted, deps):
            raise ConfigurationError(
                f"tool {tool.name!r} takes deps of the class {getattr(wanted, '__name__', wanted)}, but the run has "
                f"{type(deps).__name__}; give them: agent.run(..., deps=...)"
            )


def _holds(wanted: Any, deps: object) -> bool:
    """Whether the dependencies are what a hint says, as far as `isinstance` can tell."""
    try:
        return isinstance(deps, wanted)
    except TypeError:  # Any, a protocol, a TypedDict, list[int]: nothing can be said
        return True
