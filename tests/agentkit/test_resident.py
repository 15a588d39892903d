"""Models of commands: loaded, and out of the garbage collector's way."""

from __future__ import annotations

import gc

import pytest

from agentkit import resident
from agentkit.models import ScriptedModel


def test_what_is_loaded_is_not_collected_again(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ScriptedModel([])
    monkeypatch.setattr(resident, "resolve_model", lambda source: model)
    before = gc.get_freeze_count()
    try:
        assert resident.resident_model("scripted") is model
        assert gc.get_freeze_count() > before
    finally:
        gc.unfreeze()
