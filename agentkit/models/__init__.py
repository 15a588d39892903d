"""Models for agents: local ones through transformers; scripted, function and random ones without weights."""

from agentkit.models.base import (
    Completable,
    FinishReason,
    Generation,
    Message,
    Model,
    PrefixLike,
    Sampling,
    Session,
    Steering,
    StopPolicy,
    Timing,
    TokenRecord,
    Usage,
)
from agentkit.models.completions import Patience
from agentkit.models.decoding import Decoder
from agentkit.models.default import default_folder, default_model, default_tokenizer
from agentkit.models.endpoint import Continuation, EndpointModel, EndpointOptions
from agentkit.models.errors import (
    ContextOverflowError,
    DeadEndError,
    EndpointAnswerError,
    EndpointError,
    EndpointRefused,
    EndpointStuck,
    EndpointUnavailable,
    HistoryError,
    LogitsError,
    MissingExtraError,
    ModelError,
    ModelFetchError,
    ModelLoadError,
    ModelNotFoundError,
    ProcessorError,
    PromptError,
    ScriptError,
    SessionError,
)
from agentkit.models.outlines import OutlinesModel
from agentkit.models.processor import AufbauLogitsProcessor
from agentkit.models.random import RandomModel, byte_vocabulary
from agentkit.models.reasoning import ReasoningFormat
from agentkit.models.resolve import resolve_model
from agentkit.models.samples import Sample
from agentkit.models.scripted import FunctionModel, ScriptedModel
from agentkit.models.transformers import TransformersModel

__all__ = [
    "AufbauLogitsProcessor",
    "Completable",
    "ContextOverflowError",
    "Continuation",
    "DeadEndError",
    "Decoder",
    "EndpointAnswerError",
    "EndpointError",
    "EndpointModel",
    "EndpointOptions",
    "EndpointRefused",
    "EndpointStuck",
    "EndpointUnavailable",
    "FinishReason",
    "FunctionModel",
    "Generation",
    "HistoryError",
    "LogitsError",
    "Message",
    "MissingExtraError",
    "Model",
    "ModelError",
    "ModelFetchError",
    "ModelLoadError",
    "ModelNotFoundError",
    "OutlinesModel",
    "Patience",
    "PrefixLike",
    "ProcessorError",
    "PromptError",
    "RandomModel",
    "ReasoningFormat",
    "Sample",
    "Sampling",
    "ScriptError",
    "ScriptedModel",
    "Session",
    "SessionError",
    "Steering",
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
