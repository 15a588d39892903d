"""The tree of errors that models raise; each message says what failed, where, and how to mend it.

ModelError (an AgentError)
├── MissingExtraError     a package of an extra is not installed
├── ModelNotFoundError    a model specification that names nothing we can load
├── ModelLoadError        a model that is there but cannot be loaded
├── ModelFetchError       the default model could not be obtained, verified or converted
├── PromptError           messages that the model's chat template refuses
├── ContextOverflowError  a prompt longer than the model's context
├── SessionError          a session used after `aclose`, or by two callers at once
├── LogitsError           the model computed something that is not a number
├── ProcessorError        a logits processor cannot follow the decoder that calls it
│   ├── DeadEndError      no token at all may follow the text of a row
│   └── HistoryError      a row goes on with a token that was refused
├── EndpointError         a server with the interface of chat completions gives no text that is of use
│   ├── EndpointUnavailable   no answer after all tries: no connection, time out, too many requests, its own errors
│   ├── EndpointRefused       it refuses the request itself: key, model, length
│   ├── EndpointAnswerError   its answer is no chat completion
│   └── EndpointStuck         none of several samples goes on with a text that the oracle admits
└── ScriptError           a scripted model is out of replies, or a function model returned no text
"""

from __future__ import annotations

from collections.abc import Sequence

from agentkit.root import AgentError


class ModelError(AgentError):
    """The root of what models raise."""


class MissingExtraError(ModelError, ImportError):
    """A package that only an extra installs is needed and absent."""

    def __init__(self, package: str, *, extra: str = "models", purpose: str = "running a local model") -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed;"
            f' install it with: pip install "aufbau[{extra}]"'
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


class ProcessorError(ModelError):
    """A logits processor was given rows, ids or scores that do not fit its prefixes and its vocabulary."""


class DeadEndError(ProcessorError):
    """No token at all may follow the text of one row of a batch."""

    def __init__(self, row: int, text: bytes) -> None:
        super().__init__(
            f"row {row} is at a dead end: no token of the vocabulary may follow {_tail(text)}; the grammar or the"
            " context leaves it no way on (`aufbau check --classify` and `prefix.witness()` show why), or the"
            " vocabulary cannot spell what must come"
        )
        self.row = row
        self.text = text


class HistoryError(ProcessorError):
    """A row of a batch goes on with a token that the processor had refused."""

    def __init__(self, row: int, text: bytes, tokens: Sequence[int]) -> None:
        super().__init__(
            f"row {row} goes on with a token that was refused; its text is now {_tail(text)}, its last ids"
            f" {list(tokens[-5:])}. Call reset() before each new prompt, put this processor after those that force"
            " tokens, and give speculative=True for beam search and assisted decoding"
        )
        self.row = row
        self.text = text


def _tail(text: bytes) -> str:
    """The end of a text, as an error shows it."""
    return ("…" if len(text) > 60 else "") + repr(text[-60:].decode(errors="replace"))


class ScriptError(ModelError):
    """A scripted or function model has nothing to say."""


class EndpointError(ModelError):
    """A server did not give a text that is of use; `url` says which."""

    def __init__(self, message: str, *, url: str) -> None:
        super().__init__(message)
        self.url = url


class EndpointUnavailable(EndpointError):
    """No answer after `tries` tries, each of which might have gone better."""

    def __init__(self, message: str, *, url: str, tries: int) -> None:
        super().__init__(message, url=url)
        self.tries = tries


class EndpointRefused(EndpointError):
    """The server refuses the request, and would again; `status` is its HTTP status."""

    def __init__(self, message: str, *, url: str, status: int) -> None:
        super().__init__(message, url=url)
        self.status = status


class EndpointAnswerError(EndpointError):
    """An answer that is no chat completion."""


class EndpointStuck(EndpointError):
    """No sample goes on with a live text: `text` is what was kept, `rejected` what the samples would have added."""

    def __init__(self, message: str, *, url: str, text: str, rejected: tuple[str, ...]) -> None:
        super().__init__(message, url=url)
        self.text = text
        self.rejected = rejected
