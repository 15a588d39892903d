"""The tree of errors that models raise; each message says what failed, where, and how to mend it.

ModelError (an AgentError)
├── MissingExtraError     a package of the extra `models` is not installed
├── ModelNotFoundError    a model specification that names nothing we can load
├── ModelLoadError        a model that is there but cannot be loaded
├── ModelFetchError       the default model could not be obtained, verified or converted
├── PromptError           messages that the model's chat template refuses
├── ContextOverflowError  a prompt longer than the model's context
├── SessionError          a session used after `aclose`, or by two callers at once
├── LogitsError           the model computed something that is not a number
└── ScriptError           a scripted model is out of replies, or a function model returned no text
"""

from __future__ import annotations

from agentkit.root import AgentError


class ModelError(AgentError):
    """The root of what models raise."""


class MissingExtraError(ModelError, ImportError):
    """A package that only the extra `models` installs is needed and absent."""

    def __init__(self, package: str) -> None:
        super().__init__(
            f"running a local model needs the package {package!r}, which is not installed;"
            ' install it with: pip install "aufbau[models]"'
        )
        self.package = package


class ModelNotFoundError(ModelError):
    """Nothing could be loaded under the given name; the message lists what was tried."""


class ModelLoadError(ModelError):
    """A model was found, but its files are broken, incomplete or of an unsupported kind."""


class ModelFetchError(ModelError):
    """The default model could not be downloaded, verified or converted."""


class PromptError(ModelError):
    """The messages do not fit the model's chat template."""


class ContextOverflowError(ModelError):
    """The prompt leaves no room for a single new token."""

    def __init__(self, model: str, prompt_tokens: int, context: int) -> None:
        super().__init__(
            f"the prompt is {prompt_tokens} tokens long, but {model} reads at most {context} tokens"
            " including its answer; shorten the prompt or the observations in it, or use a model with a"
            " longer context"
        )
        self.prompt_tokens = prompt_tokens
        self.context = context


class SessionError(ModelError):
    """A session was used in a way that its key-value cache cannot follow."""


class LogitsError(ModelError):
    """The model's scores are not numbers, so no token can be chosen."""


class ScriptError(ModelError):
    """A scripted or function model has nothing to say."""
