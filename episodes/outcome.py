"""What executing a step gives: a new binding, or the value that ends the run."""

from __future__ import annotations

from dataclasses import dataclass

from episodes.context import Binding
from episodes.plain import short
from registry.types import ToolType


@dataclass(frozen=True, kw_only=True, slots=True)
class Bound:
    """A let: the binding to add to Γ."""

    binding: Binding

    def observation(self) -> str:
        """The binding in one line, as the model reads it."""
        return str(self.binding)


@dataclass(frozen=True, kw_only=True, slots=True)
class Returned:
    """A return: the output of the run."""

    value: object
    type: ToolType | None  # None where nothing says it: an empty list, null

    def observation(self) -> str:
        """The value in one line."""
        return short(self.value)


StepOutcome = Bound | Returned
