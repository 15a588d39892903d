"""Puts another model, other tools or dependencies into an agent for a while, as tests want to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from agentkit.models import Model
from registry import Registry


class Kept(Enum):
    """What is not overridden."""

    KEPT = "kept"


KEPT: Final = Kept.KEPT


@dataclass(frozen=True, kw_only=True, slots=True)
class Override:
    """What stands in for an agent's own."""

    model: Model | Kept = KEPT
    tools: Registry | Kept = KEPT
    deps: object = KEPT

    def over(self, other: Override) -> Override:
        """Both, this one first."""
        own = {name: value for name in self.__slots__ if (value := getattr(self, name)) is not KEPT}
        return replace(other, **own)


# Bound to the task that enters the block and those it starts, so that runs beside it see nothing of it.
_ACTIVE: ContextVar[tuple[tuple[object, Override], ...]] = ContextVar("agentkit_overrides", default=())


def active(agent: object) -> Override:
    """What overrides the agent here."""
    for overridden, override in reversed(_ACTIVE.get()):
        if overridden is agent:
            return override
    return Override()


@contextmanager
def overriding(agent: object, override: Override) -> Iterator[None]:
    """Within the block the agent is overridden, for this task and those it starts."""
    token = _ACTIVE.set((*_ACTIVE.get(), (agent, override.over(active(agent)))))
    try:
        yield
    finally:
        _ACTIVE.reset(token)
