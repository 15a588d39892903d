"""The agent: a model, tools and a way of decoding, put to work on episodes."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final, Literal, TypedDict, Unpack, get_args

import anyio
import anyio.to_thread

from agentkit.approval import Approve, Approver, Deny, defer_required
from agentkit.checkpoint import Checkpoint
from agentkit.context import check_deps
from agentkit.decoding import Decoder
from agentkit.errors import ConfigurationError
from agentkit.events import Event, EventHandler
from agentkit.journal import Journal
from agentkit.ledger import Ledger
from agentkit.limits import UsageLimits
from agentkit.models import Message, Model, Sampling, Session, StopPolicy, resolve_model
from agentkit.modes import Mode, mode_of
from agentkit.overriding import KEPT, Kept, Override, active, overriding
from agentkit.prompts import DEFAULT_PROMPT, PromptVariant
from agentkit.repetition import History
from agentkit.result import RunResult
from agentkit.resuming import check_resumable
from agentkit.run import Run, Setup
from agentkit.saving import CheckpointError, Codecs, Saver
from agentkit.stream import BUFFERED_EVENTS, Background, EventStream
from agentkit.window import ContextPolicy
from dialects import DIALECTS, Dialect, LoweredDialect
from episodes import Episode
from registry import Registry, ToolType, builtin, type_from_hint

Saved = Checkpoint | str | os.PathLike[str]
"""A checkpoint as a value, as JSON text, or as the path of a file."""


class RunOptions(TypedDict, total=False):
    """What may be given to one run."""

    deps: object
    """For tools that take a `RunContext`."""

    message_history: Sequence[Message]
    """The conversation to go on with: `RunResult.messages` of an earlier run."""

    on_event: EventHandler | None
    """Hears every event as it happens."""

    session: Session | None
    """Of `open_session`: the model need not read again what runs have in common. The caller closes it."""

    checkpoint_path: str | os.PathLike[str] | None
    """A file that holds the run's checkpoint at any moment, replaced as a whole before and after each step."""


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
        approve: Approver | None = None,
        context_policy: ContextPolicy | str = ContextPolicy.RAISE,
        codecs: Codecs | None = None,
    ) -> None:
        """Put an agent together.

        `tools` stand in where an episode brings none (None: the four built-in ones); `output_type`, a Python
        hint or a type of the registry, where an episode names none. `nested` lets arguments be calls.
        `tool_errors` says whether a failing tool ends the run or is told to the model. Masked steps are steered to an
        end within `UsageLimits.tokens_per_step`; with `StopPolicy.PAPER` a model may abandon them instead.
        `approve` is asked before every call; without it calls of tools with `approval=True` are deferred.
        `context_policy` says what happens when the prompt outgrows the model's context, and `codecs` how handles are
        written into checkpoints. Raises `ConfigurationError`.
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
        self._approver: Final[Approver] = approve or defer_required
        self._context_policy: Final = _context_policy(context_policy)
        self._codecs: Final = dict(codecs or {})

    async def run(self, episode: Episode | str, **options: Unpack[RunOptions]) -> RunResult:
        """Run an episode, or a task given as text, to its end. Raises a `RunError` when there is no output."""
        async with self.iter(episode, **options) as run:
            async for _ in run:
                pass
            return run.result

    def run_sync(self, episode: Episode | str, **options: Unpack[RunOptions]) -> RunResult:
        """`run`, for programs without an event loop."""

        async def main() -> RunResult:
            return await self.run(episode, **options)

        return anyio.run(main)

    async def resume(
        self,
        checkpoint: Saved,
        *,
        episode: Episode | str,
        decision: Approve | Deny | None = None,
        **options: Unpack[RunOptions],
    ) -> RunResult:
        """Go on with a run of the same episode to its end: nothing that was executed is executed again.

        A checkpoint is a value, its JSON text, or the path of a file. `decision` is on the step that waits in it.
        Raises `ResumeConflict` where a step was begun and nobody knows whether it ended, unless its tools are pure or
        idempotent or there is a decision.
        """
        async with self.iter(episode, resume_from=checkpoint, decision=decision, **options) as run:
            async for _ in run:
                pass
            return run.result

    @asynccontextmanager
    async def stream(
        self,
        episode: Episode | str,
        *,
        buffer: int = BUFFERED_EVENTS,
        resume_from: Saved | None = None,
        decision: Approve | Deny | None = None,
        **options: Unpack[RunOptions],
    ) -> AsyncIterator[EventStream]:
        """A run as a stream of its events. Leaving the block cancels what is left of it and waits for its end.

        The run has a task of its own, so the block may be entered, read and left in different tasks.
        """
        stream = EventStream(buffer)
        options["on_event"] = stream.hear(options.get("on_event"))

        async def drive() -> None:
            failed: BaseException | None = None
            try:
                async with self.iter(episode, resume_from=resume_from, decision=decision, **options) as run:
                    await stream.drive(run)
            except anyio.get_cancelled_exc_class() as error:
                # By somebody else, such as an event loop that is closed, the stream does not just end.
                failed = None if work.ending else error
                raise
            except BaseException as error:  # it is raised where the stream is read
                failed = error
            finally:
                stream.close(failed)

        work = Background(drive)
        try:
            yield stream
        finally:
            await work.end()

    @asynccontextmanager
    async def iter(
        self,
        episode: Episode | str,
        *,
        resume_from: Saved | None = None,
        decision: Approve | Deny | None = None,
        **options: Unpack[RunOptions],
    ) -> AsyncIterator[Run]:
        """A run to iterate over, turn by turn. Leaving the block ends it, wherever it stands.

        `resume_from` and `decision` are those of `resume`.
        """
        task = episode if isinstance(episode, Episode) else Episode(name="task", prompt=episode)
        lowered, output = self._lower(task)
        override = active(self)
        deps = options.get("deps") if override.deps is KEPT else override.deps
        check_deps(lowered.registry.values(), deps)
        path = options.get("checkpoint_path")
        if path is not None:
            self._check_kept(lowered.registry, Path(path))
        checkpoint = None if resume_from is None else await self._read(resume_from, task, lowered.registry, output)
        if checkpoint is not None:
            check_resumable(checkpoint, task, lowered.registry, decision)
        history, ledger = self._opened(task, lowered.registry, checkpoint, options.get("message_history", ()))
        given = options.get("session")
        session = given or await self.open_session()
        try:
            yield Run(
                Setup(
                    episode=task,
                    model=self._model_name,
                    lowered=lowered,
                    output=output,
                    limits=_tighter(self.usage_limits, task),
                    style=self._prompt.value,
                    instructions=self._instructions,
                    observe_tool_errors=self._observe_tool_errors,
                    on_event=options.get("on_event") or _ignore,
                    deps=deps,
                    approver=self._approver,
                    context_policy=self._context_policy,
                    journal=Journal(None if path is None else Path(path)),
                    resumed=checkpoint is not None,
                    decision=decision,
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
                ledger,
            )
        finally:
            # A cancelled run closes its session too.
            if given is None:
                with anyio.CancelScope(shield=True):
                    await session.aclose()

    def _opened(
        self, task: Episode, registry: Registry, checkpoint: Checkpoint | None, message_history: Sequence[Message]
    ) -> tuple[History, Ledger]:
        """What a run proposed and did so far: nothing, or what the checkpoint holds."""
        if checkpoint is None:
            history = History(registry)
        elif message_history:
            raise ConfigurationError("message_history=: a checkpoint holds the conversation already; leave it out")
        else:
            history = History(registry, proposed=checkpoint.proposed, called=checkpoint.called)
        messages = tuple(message_history)
        return history, Ledger(task, history, message_history=messages, codecs=self._codecs, checkpoint=checkpoint)

    def override(
        self,
        *,
        model: Model | Kept = KEPT,
        tools: Registry | Iterable[Callable[..., Any]] | Kept = KEPT,
        deps: object = KEPT,
    ) -> AbstractContextManager[None]:
        """Within the block runs use these instead: those begun by this task and by tasks that it starts, no others."""
        registry = tools if isinstance(tools, Registry | Kept) else Registry(tools)
        return overriding(self, Override(model=model, tools=registry, deps=deps))

    async def open_session(self) -> Session:
        """A session of the model, for runs one after the other; the caller closes it."""
        model = active(self).model
        if model is KEPT:
            own = self._model
            model = await anyio.to_thread.run_sync(self.load_model) if isinstance(own, str) else own
        return model.session()

    @property
    def _model_name(self) -> str:
        overridden = active(self).model
        model = self._model if overridden is KEPT else overridden
        return model if isinstance(model, str) else model.name

    async def _read(self, saved: Saved, episode: Episode, registry: Registry, output: ToolType | None) -> Checkpoint:
        if isinstance(saved, Checkpoint):
            return saved
        text = saved if isinstance(saved, str) else await anyio.to_thread.run_sync(_text_of, Path(saved))
        types = [*episode.bindings.types().values(), *([output] if output is not None else [])]
        return Checkpoint.from_json(text, registry, types=types, codecs=self._codecs)

    def _check_kept(self, registry: Registry, path: Path) -> None:
        """What cannot be kept is refused before the run, not after a tool has made it."""
        if not path.parent.is_dir():
            raise ConfigurationError(f"checkpoint_path={str(path)!r}: there is no folder {str(path.parent)!r}; make it")
        lacking = list(Saver(self._codecs).lacking(tool.returns for tool in registry.values()))
        if lacking:
            names = ", ".join(f"{kind.python_type.__name__}: Codec(encode=..., decode=...)" for kind in lacking)
            raise ConfigurationError(
                f"checkpoint_path: tools make handles that JSON cannot hold; give the agent codecs={{{names}}}"
            )

    def _lower(self, episode: Episode) -> tuple[LoweredDialect, ToolType | None]:
        overridden = active(self).tools
        if overridden is not KEPT:
            registry = overridden if episode.tools is None else overridden.select(*episode.tools)
        else:
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


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise CheckpointError(f"the checkpoint cannot be read: {error}; JSON text is given as a str") from error


def _context_policy(policy: ContextPolicy | str) -> ContextPolicy:
    try:
        return ContextPolicy(policy)
    except ValueError:
        known = ", ".join(repr(one.value) for one in ContextPolicy)
        raise ConfigurationError(f"unknown context_policy {policy!r}; available: {known}") from None


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
