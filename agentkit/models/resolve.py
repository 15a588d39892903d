"""From what a user types after `--model` to a model."""

from __future__ import annotations

from agentkit.models.base import Model
from agentkit.models.default import default_model
from agentkit.models.transformers import TransformersModel


def resolve_model(spec: str) -> Model:
    """The model called "default", or of a folder, a .gguf file or a hub id, else `ModelNotFoundError`."""
    return default_model() if spec == "default" else TransformersModel.load(spec)
