"""The agent: a model, tools and a way of decoding, put to work on episodes."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import fields, replace
from typing import Any, Final, Literal, get_args

import anyio
import anyio.to_thread

from agentkit.decoding import Decoder
from agentkit.errors import ConfigurationError
from agentkit.events import Event, EventHandler
from agentkit.limits import UsageLimits
from agentkit.models import Model, Sampling, Session, StopPolicy, resolve_model
from agentkit.modes import Mode, mode_of
from agentkit.prompts import DEFAULT_PROMPT, PromptVariant
from agentkit.repetition import History
from agentkit.result import RunResult
from agentkit.run import Run, Setup
from dialects import DIALECTS, Dialect, LoweredDialect
from episodes import Episode
from registry import Registry, ToolType, builtin, type_from_hint


class Agent:
    """Runs episodes: each step comes from the model, is held to the typed oracle, and is executed.

    An agent is not changed by running; one may serve any number of runs at once. A model given as text
    ("default", a Hugging Face id, a folder, a GGUF file) is loaded when it is first needed.
    """

    def __init__(
        self,
        model: Model | str = "default",
        *,
        tools: Registry | Iterable[Callable[..., Any]] | None = None,
        dialect: Dialect | str = "c",
        nested: bool = False,
        output_type: object = None,
        mode: Mode | str = Mode.DIRECT,
        usage_limits: UsageLimits | None = None,
        sampling: Sampling | None = None,
        stop_policy: StopPolicy = StopPolicy.STRICT,
        tool_errors: Literal["raise", "observe"] = "raise",
        instructions: str | None = None,
        prompt: PromptVariant = DEFAULT_PROMPT,
    ) -> None:
        """Put an agent together.

        `tools` stand in where an episode brings none (None: the four built-in ones); `output_type`, a Python
        hint or a type of the registry, where an episode names none. `nested` lets arguments be calls.
        `tool_errors` says whether a failing tool ends the run or is told to the model. Masked steps are steered to an
        end within `UsageLimits.tokens_per_step`; with `StopPolicy.PAPER` a model may abandon them instead.
        Raises `ConfigurationError`.
        """
        if tool_errors not in ("raise", "observe"):
            raise ConfigurationError(f"tool_errors={tool_errors!r}: use 'raise' or 'observe'")
        self.mode: Final = mode_of(mode)
        self.usage_limits: Final = usage_limits or UsageLimits()
        self._model: Model | str = model
        self._loading: Final = threading.Lock()
        self._tools: Registry | None = tools if tools is None or isinstance(tools, Registry) else Registry(tools)
        self._dialect: Final = _dialect(dialect)
        self._nested: Final = nested
        self._output: Final = _output_type(output_type)
        self._sampling: Final = sampling or Sampling()
        self._stop_policy: Final = stop_policy
        self._observe_tool_errors: Final = tool_errors == "observe"
        self._instructions: Final = instructions
        self._prompt: Final = prompt

    async def run(
        self, episode: Episode | str, *, on_event: EventHandler | None = None, session: Session | None = None
    ) -> RunResult:
        """Run an episode, or a task given as text, to its end. Raises a `RunError` when there is no output.

        With a `session` of `open_session`, the model need not read again what runs have in common.
        """
        async with self.iter(episode, on_event=on_event, session=session) as run:
            async for _ in run:
                pass
            return run.result

    def run_sync(self, episode: Episode | str, *, on_event: EventHandler | None = None) -> RunResult:
        """`run`, for programs without an event loop."""

        async def main() -> RunResult:
            return await self.run(episode, on_event=on_event)

        return anyio.run(main)

    @asynccontextmanager
    async def iter(
        self, episode: Episode | str, *, on_event: EventHandler | None = None, session: Session | None = None
    ) -> AsyncIterator[Run]:
        """A run to iterate over, turn by turn. Leaving the block ends it, wherever it stands."""
        task = episode if isinstance(episode, Episode) else Episode(name="task", prompt=episode)
        lowered, output = self._lower(task)
        history = History(lowered.registry)
        own = session is None
        session = session or await self.open_session()
        try:
            yield Run(
                Setup(
                    episode=task,
                    model=self._model if isinstance(self._model, str) else self._model.name,
                    lowered=lowered,
                    output=output,
                    limits=_tighter(self.usage_limits, task),
                    style=self._prompt.value,
                    instructions=self._instructions,
                    observe_tool_errors=self._observe_tool_errors,
                    on_event=on_event or _ignore,
                ),
                Decoder(
                    session=session,
                    lowered=lowered,
                    mode=self.mode,
                    sampling=self._sampling,
                    stop_policy=self._stop_policy,
                    history=history,
                ),
                history,
            )
        finally:
            # A cancelled run closes its session too.
            if own:
                with anyio.CancelScope(shield=True):
                    await session.aclose()

    async def open_session(self) -> Session:
        """A session of the model, for runs one after the other; the caller closes it."""
        model = self._model
        return (await anyio.to_thread.run_sync(self.load_model) if isinstance(model, str) else model).session()

    def _lower(self, episode: Episode) -> tuple[LoweredDialect, ToolType | None]:
        if episode.registry is None and self._tools is None:
            self._tools = builtin()
        registry = episode.registry_for(self._tools or Registry())
        output = episode.output_type or self._output
        types = [*episode.bindings.types().values(), *([output] if output is not None else [])]
        dialect = self._dialect if episode.dialect is None else DIALECTS[episode.dialect]
        return dialect.lower(registry, nested=self._nested, types=types), output

    def load_model(self) -> Model:
        """The model, loaded now where it was given as text. Blocks; later runs find it loaded."""
        with self._loading:
            if isinstance(self._model, str):
                self._model = resolve_model(self._model)
            return self._model


def _ignore(event: Event) -> None:
    """The handler of a caller who asked for no events."""


def _dialect(dialect: Dialect | str) -> Dialect:
    if not isinstance(dialect, str):
        return dialect
    if dialect not in DIALECTS:
        known = ", ".join(map(repr, DIALECTS))
        raise ConfigurationError(f"unknown dialect {dialect!r}; available: {known}, or an object of yours")
    return DIALECTS[dialect]


def _output_type(hint: object) -> ToolType | None:
    if hint is None or isinstance(hint, get_args(ToolType)):
        return hint
    return type_from_hint(hint)


def _tighter(limits: UsageLimits, episode: Episode) -> UsageLimits:
    """The agent's limits, tightened by those of the episode."""
    own = {field.name: getattr(episode.limits, field.name) for field in fields(episode.limits)}
    both = {
        name: min(value, getattr(limits, name)) if getattr(limits, name) is not None else value
        for name, value in own.items()
        if value is not None
    }
    return replace(limits, **both)
