"""What a tool is given by its caller beside its arguments, unseen by whoever writes the call."""

from __future__ import annotations

from dataclasses import dataclass


class CallContext:
    """The base of what callers give. A tool whose first parameter is annotated with a subclass is given one.

    That parameter is none of the tool's `parameters`: no type is made of it and no step can write it.
    """

    __slots__ = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ContextParameter:
    """The parameter by which a tool takes its context."""

    name: str
    hint: object
    """The annotation: a subclass of `CallContext`, perhaps with what it holds in brackets."""

    type: type[CallContext]
