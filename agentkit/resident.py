"""Models for commands, whose process is theirs: what is loaded stays, and the garbage collector is told so."""

from __future__ import annotations

import gc

from agentkit.models import Model, resolve_model


def resident_model(source: str) -> Model:
    """The model that a command runs with. Raises what `resolve_model` raises.

    With torch, half a million objects are alive that never become garbage. Frozen, they are not looked at again each
    time that the collector goes through all it knows, which takes 0.3 s and more.
    """
    model = resolve_model(source)
    gc.collect()
    gc.freeze()
    return model
