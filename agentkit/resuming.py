"""Decides whether and how a run may go on from a checkpoint, before anything is done."""

from __future__ import annotations

from agentkit.approval import Approve, Decision, Deny
from agentkit.checkpoint import Checkpoint, ResumeConflict
from agentkit.errors import ConfigurationError
from agentkit.repetition import calls_of
from agentkit.saving import CheckpointError
from episodes import Episode
from registry import Registry


def check_resumable(checkpoint: Checkpoint, episode: Episode, registry: Registry, decision: Decision | None) -> None:
    """Raise where going on would be another task, or might execute a step twice that must not be."""
    if (checkpoint.episode, checkpoint.prompt) != (episode.name, episode.prompt):
        raise CheckpointError(
            f"the checkpoint is of the episode {checkpoint.episode!r}, {checkpoint.prompt!r}, and cannot go on with "
            f"{episode.name!r}, {episode.prompt!r}; give the episode that the run began with"
        )
    pending = checkpoint.pending
    if decision is not None and not isinstance(decision, Approve | Deny):
        raise ConfigurationError(f"decision={decision!r}: a run is resumed with Approve() or Deny(reason)")
    if pending is None:
        if decision is not None:
            raise ConfigurationError("decision=: no step waits for one in this checkpoint; leave it out")
        return
    if not pending.begun or decision is not None:
        return
    unknown = tuple(dict.fromkeys(call.tool for call in calls_of(pending.step) if not registry[call.tool].repeatable))
    if unknown:
        names = ", ".join(unknown)
        raise ResumeConflict(
            f"the process ended while {pending.text!r} was executed, and whether {names} took effect is not known; "
            "find out and resume with decision=Approve() to execute the step again or Deny(what to tell the model) "
            "not to, or declare the tool @tool(idempotent=True) where a second call does no harm",
            tools=unknown,
        )
