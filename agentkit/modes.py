"""The decoding modes: how the text of a step, or of a program, comes about."""

from __future__ import annotations

from enum import Enum

from agentkit.errors import ConfigurationError


class Mode(Enum):
    """The five schedules that the paper compares."""

    UNCONSTRAINED = "unconstrained"
    """Free text, judged by the oracle afterwards; what is no well-typed step becomes an observation."""

    DIRECT = "direct"
    """The block alone, every token admitted by the typed oracle."""

    MIXED = "mixed"
    """Free reasoning, closed by a delimiter or by its budget, then the block as in DIRECT."""

    THINKING = "thinking"
    """The same reasoning, then a free answer as in UNCONSTRAINED."""

    SYNTACTIC = "syntactic"
    """The block alone, admitted by the grammar without its typing rules, then judged as in UNCONSTRAINED."""

    @property
    def reasons(self) -> bool:
        """Whether free reasoning comes before the block."""
        return self in (Mode.MIXED, Mode.THINKING)

    @property
    def well_typed(self) -> bool:
        """Whether the typed oracle admits every token of the block."""
        return self in (Mode.DIRECT, Mode.MIXED)

    @property
    def masked(self) -> bool:
        """Whether any oracle admits the tokens of the block."""
        return self.well_typed or self is Mode.SYNTACTIC


def mode_of(mode: Mode | str) -> Mode:
    """`mode` as a member, refused by name when it is unknown."""
    try:
        return Mode(mode)
    except ValueError:
        names = ", ".join(repr(one.value) for one in Mode)
        raise ConfigurationError(f"unknown mode {mode!r}; available are {names}") from None
