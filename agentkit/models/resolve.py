"""From what a user types after `--model` to a model."""

from __future__ import annotations

from agentkit.models.base import Model
from agentkit.models.default import default_model
from agentkit.models.endpoint import EndpointModel
from agentkit.models.transformers import TransformersModel


def resolve_model(spec: str) -> Model:
    """The model called "default", of a folder, a .gguf file or a hub id, or of a server as `http://HOST/v1#MODEL`.

    Raises `ModelNotFoundError` where it is none of these.
    """
    if spec.startswith(("http://", "https://")):
        return EndpointModel.parse(spec)
    return default_model() if spec == "default" else TransformersModel.load(spec)
