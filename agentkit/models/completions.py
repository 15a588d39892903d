"""One request for a chat completion over HTTP: bounded in time, size and tries, and with typed errors."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Self, final

import anyio

from agentkit.models.base import Message
from agentkit.models.errors import EndpointAnswerError, EndpointRefused, EndpointUnavailable, MissingExtraError

# Statuses after which the same request may go better.
_PASSING: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
# Bytes of an answer; a completion of 100,000 tokens is below 1 MiB.
_MOST: Final = 8 * 2**20


@dataclass(frozen=True, kw_only=True, slots=True)
class Patience:
    """How long an endpoint is waited for, and how often it is asked again."""

    # Seconds for one request, from the connection to the last byte.
    timeout: float = 120.0
    # Requests for one answer, the first included.
    tries: int = 4
    # Seconds before the second try; doubled for each further one. A server's Retry-After counts more.
    pause: float = 0.5
    # Seconds at most between two tries, whatever the server asks for.
    longest_pause: float = 30.0

    def __post_init__(self) -> None:
        for name in ("timeout", "pause", "longest_pause"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be a positive number of seconds, not {value!r}")
        if self.tries < 1:
            raise ValueError(f"tries must be 1 at least, not {self.tries}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """A server's answer."""

    text: str
    # "stop", "length" or a word of the server's own.
    finish: str
    prompt_tokens: int | None
    cached_tokens: int
    completion_tokens: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Fault:
    """Why a try gave no answer, and whether the server says when to come back."""

    what: str
    retry_after: float | None = None


@final
class CompletionClient:
    """Asks one server; belongs to one event loop."""

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        patience: Patience = Patience(),
    ) -> None:
        try:
            self._httpx: Final[Any] = import_module("httpx")
        except ModuleNotFoundError as error:
            raise MissingExtraError("httpx", extra="endpoint", purpose="asking a model server") from error
        self.url: Final = url
        self._patience: Final = patience
        own = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        # A time limit of the whole request stands around it; those of its parts would only be second ones.
        self._client: Final[Any] = self._httpx.AsyncClient(
            headers={**own, **(headers or {})}, timeout=None, verify=url.startswith("https:")
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def complete(self, messages: Sequence[Message], options: Mapping[str, object]) -> Completion:
        """The completion of a conversation, with the request's further fields. Raises `EndpointError`."""
        turns = [{"role": message.role, "content": message.content} for message in messages]
        body = json.dumps({"messages": turns, "stream": False, **options}).encode()
        patience, pause = self._patience, self._patience.pause
        fault = _Fault(what="")
        for number in range(patience.tries):
            if number:
                await anyio.sleep(min(fault.retry_after or pause, patience.longest_pause))
                pause *= 2
            outcome = await self._try(body)
            if isinstance(outcome, Completion):
                return outcome
            fault = outcome
        raise EndpointUnavailable(
            f"{self.url}: no answer in {patience.tries} tries, the last one: {fault.what}; "
            "see whether the server runs, or allow more by Patience(timeout=..., tries=...)",
            url=self.url,
            tries=patience.tries,
        )

    async def _try(self, body: bytes) -> Completion | _Fault:
        try:
            with anyio.fail_after(self._patience.timeout):
                status, headers, content = await self._post(body)
        except TimeoutError:
            return _Fault(what=f"no whole answer within {self._patience.timeout:g} s")
        except self._httpx.InvalidURL as error:
            raise self._no_answer(f"the address is none: {error}") from error
        except self._httpx.TransportError as error:
            # Half an answer is one of these, too.
            return _Fault(what=f"{type(error).__name__}: {error or 'no details'}")
        if status in _PASSING:
            return _Fault(what=f"HTTP {status}: {_message(content)}", retry_after=_seconds(headers.get("retry-after")))
        if status != 200:
            raise EndpointRefused(
                f"{self.url}: HTTP {status}: {_message(content)}; mend the address, the key or the model's name, or "
                "shorten the prompt",
                url=self.url,
                status=status,
            )
        return self._read(content)

    async def _post(self, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        headers, content = {"Content-Type": "application/json"}, bytearray()
        async with self._client.stream("POST", self.url, content=body, headers=headers) as response:
            async for piece in response.aiter_bytes():
                content += piece
                if len(content) > _MOST:
                    raise self._no_answer(f"it is longer than {_MOST:,} bytes")
            return response.status_code, response.headers, bytes(content)

    def _read(self, content: bytes) -> Completion:
        try:
            data = json.loads(content)
        except ValueError as error:
            raise self._no_answer(f"it is no JSON ({error}): {_short(content)}") from error
        match data:
            case {"choices": [{"message": {"content": (str() | None) as text}, **choice}, *_]}:
                usage = data.get("usage")
            case _:
                raise self._no_answer(f"it has no choices[0].message.content: {_short(content)}")
        finish = choice.get("finish_reason")
        return Completion(
            text=text or "",
            finish=finish if isinstance(finish, str) else "stop",
            prompt_tokens=_count(usage, "prompt_tokens"),
            cached_tokens=_count(_part(usage, "prompt_tokens_details"), "cached_tokens") or 0,
            completion_tokens=_count(usage, "completion_tokens"),
        )

    def _no_answer(self, problem: str) -> EndpointAnswerError:
        return EndpointAnswerError(
            f"{self.url}: the answer is no chat completion: {problem}; is this the address of an interface like "
            "OpenAI's, up to and with /v1?",
            url=self.url,
        )


def _part(data: object, key: str) -> object:
    return data.get(key) if isinstance(data, Mapping) else None


def _count(data: object, key: str) -> int | None:
    value = _part(data, key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _seconds(header: str | None) -> float | None:
    """Seconds of a Retry-After header; a date in it is left aside."""
    try:
        seconds = float(header) if header is not None else math.nan
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds > 0 else None


def _message(content: bytes) -> str:
    """What an error's body says."""
    try:
        said = _part(_part(json.loads(content), "error"), "message")
    except ValueError:
        said = None
    return said if isinstance(said, str) else _short(content)


def _short(content: bytes) -> str:
    text = " ".join(content[:400].decode(errors="replace").split())
    return (text[:200] + ("…" if len(text) > 200 else "")) or "an empty answer"
