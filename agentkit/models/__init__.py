"""Models for agents: local ones through transformers; scripted, function and random ones without weights."""

from agentkit.models.base import (
    FinishReason,
    Generation,
    Message,
    Model,
    PrefixLike,
    Sampling,
    Session,
    StopPolicy,
    Timing,
    TokenRecord,
    Usage,
)
from agentkit.models.decoding import Decoder
from agentkit.models.default import default_folder, default_model, default_tokenizer
from agentkit.models.errors import (
    ContextOverflowError,
    LogitsError,
    MissingExtraError,
    ModelError,
    ModelFetchError,
    ModelLoadError,
    ModelNotFoundError,
    PromptError,
    ScriptError,
    SessionError,
)
from agentkit.models.random import RandomModel, byte_vocabulary
from agentkit.models.resolve import resolve_model
from agentkit.models.scripted import FunctionModel, ScriptedModel
from agentkit.models.transformers import TransformersModel

__all__ = [
    "ContextOverflowError",
    "Decoder",
    "FinishReason",
    "FunctionModel",
    "Generation",
    "LogitsError",
    "Message",
    "MissingExtraError",
    "Model",
    "ModelError",
    "ModelFetchError",
    "ModelLoadError",
    "ModelNotFoundError",
    "PrefixLike",
    "PromptError",
    "RandomModel",
    "Sampling",
    "ScriptError",
    "ScriptedModel",
    "Session",
    "SessionError",
    "StopPolicy",
    "Timing",
    "TokenRecord",
    "TransformersModel",
    "Usage",
    "byte_vocabulary",
    "default_folder",
    "default_model",
    "default_tokenizer",
    "resolve_model",
]
