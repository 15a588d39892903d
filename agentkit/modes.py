"""The decoding modes: how the text of a step comes about."""

from __future__ import annotations

from enum import Enum

from agentkit.errors import ConfigurationError, ModeNotAvailable


class Mode(Enum):
    """How a turn gets its step."""

    UNCONSTRAINED = "unconstrained"
    """Free text, judged by the oracle afterwards; what is no well-typed step becomes an observation."""

    DIRECT = "direct"
    """The step alone, every token admitted by the typed oracle."""

    MIXED = "mixed"
    """Free reasoning within a budget, then a constrained step. Not implemented yet."""

    THINKING = "thinking"
    """The model's own reasoning block, then a constrained step. Not implemented yet."""

    SYNTACTIC = "syntactic"
    """The step alone, admitted by the grammar stripped of its typing rules. Not implemented yet."""


AVAILABLE = (Mode.DIRECT, Mode.UNCONSTRAINED)


def available_mode(mode: Mode | str) -> Mode:
    """`mode` as a member, refused by name when it is unknown or not implemented."""
    names = " and ".join(repr(one.value) for one in AVAILABLE)
    try:
        chosen = Mode(mode)
    except ValueError:
        raise ConfigurationError(f"unknown mode {mode!r}; available are {names}") from None
    if chosen not in AVAILABLE:
        raise ModeNotAvailable(f"mode {chosen.value!r} is not available in this version; available are {names}")
    return chosen
