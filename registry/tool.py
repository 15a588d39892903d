"""Tools: functions whose typed signature is known, and which are called with checked arguments."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypedDict, Unpack, overload

import anyio
from typing_extensions import ParamSpec, TypeVar

from registry.ambient import CallContext, ContextParameter
from registry.docstrings import read_docstring
from registry.errors import (
    ArgumentError,
    MismatchError,
    ModelRetry,
    ResultError,
    SignatureError,
    ToolExecutionError,
    ToolTimeoutError,
    near_misses,
)
from registry.signature import Parameter, read_signature
from registry.threads import run_in_thread
from registry.types import ToolType, brand, release

P = ParamSpec("P", default=...)
R = TypeVar("R", default=Any)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Tool(Generic[P, R]):
    """A function with its typed signature. Calling a tool calls the function, unchecked; `call` checks."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    returns: ToolType
    # An identical call of a pure tool gives an equal result and changes nothing, so it need not be repeated.
    pure: bool
    is_async: bool
    function: Callable[P, R] = field(repr=False)
    # A call may be made again, with the same arguments, when nobody knows whether it was made: it does no harm.
    idempotent: bool = False
    # Somebody must agree to every call.
    approval: bool = False
    # Seconds for one call; the tighter of this and the caller's limit holds.
    timeout: float | None = None
    context: ContextParameter | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    @property
    def __wrapped__(self) -> Callable[P, R]:
        """The function, where `inspect.signature` and `inspect.unwrap` look for it."""
        return self.function

    @property
    def __name__(self) -> str:
        return self.name

    @property
    def signature(self) -> str:
        """The signature, types as spelled: `search(query: string) -> docs`; `?` marks what may be omitted."""
        inside = ", ".join(f"{part.name}{'' if part.required else '?'}: {part.type.name}" for part in self.parameters)
        return f"{self.name}({inside}) -> {self.returns.name}"

    def parameter(self, name: str) -> Parameter:
        """The parameter of that name; raises `ArgumentError` with near misses."""
        for part in self.parameters:
            if part.name == name:
                return part
        known = near_misses(name, (part.name for part in self.parameters))
        raise ArgumentError(self.name, name, f"no such parameter; {known}")

    def validate_arguments(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """The checked arguments in the order of declaration; those with a default may lack."""
        for name in arguments:
            self.parameter(name)
        checked: dict[str, object] = {}
        for part in self.parameters:
            if part.name in arguments:
                try:
                    checked[part.name] = part.type.validate(arguments[part.name])
                except MismatchError as error:
                    raise ArgumentError(self.name, part.name, str(error)) from error
            elif part.required:
                raise ArgumentError(self.name, part.name, f"missing; give a {part.type.name}")
        return checked

    def validate_result(self, value: object) -> object:
        """The checked result, its identifiers branded; raises `ResultError`."""
        try:
            return brand(self.returns, value)
        except MismatchError as error:
            raise ResultError(self.name, str(error)) from error

    @property
    def repeatable(self) -> bool:
        """Whether a call of unknown fate may be made again."""
        return self.pure or self.idempotent

    async def call(
        self, arguments: Mapping[str, object], *, timeout: float | None = None, context: CallContext | None = None
    ) -> object:
        """Call the function with checked arguments, and `context` if it takes one; return its checked result.

        An async function is awaited; a sync one runs in a thread. Cancellation passes through, and so does
        `ModelRetry`; any other exception of the tool is raised as a `ToolExecutionError` from it. After
        `timeout` seconds the caller gets a `ToolTimeoutError`. An async function is then cancelled at its
        next await; the thread of a sync one cannot be stopped and runs on until the function returns.
        """
        _check_timeout(timeout)
        if timeout is None or (self.timeout is not None and self.timeout < timeout):
            timeout = self.timeout
        function: Callable[..., Any] = self.function
        checked = self.validate_arguments(arguments)
        given = {name: release(self._type(name), checked[name]) for name in checked}
        bound = functools.partial(function, **self._given(context), **given)
        try:
            with anyio.move_on_after(timeout) as scope:
                value = await self._outcome(bound)
        except ModelRetry:
            raise
        except Exception as error:
            raise ToolExecutionError(self.name, error) from error
        if timeout is not None and scope.cancelled_caught:
            raise ToolTimeoutError(self.name, timeout)
        return self.validate_result(value)

    def _given(self, context: CallContext | None) -> dict[str, object]:
        """The context by the name of its parameter, where there is one."""
        if self.context is None:
            return {}
        if not isinstance(context, self.context.type):
            wanted = self.context.type.__name__
            raise ArgumentError(
                self.name, self.context.name, f"it takes a {wanted}, which only a run of an agent gives"
            )
        return {self.context.name: context}

    def _type(self, name: str) -> ToolType:
        return self.parameter(name).type

    async def _outcome(self, bound: Callable[[], Any]) -> object:
        if self.is_async:
            return await bound()
        return await run_in_thread(bound, name=f"tool {self.name}")


class ToolOptions(TypedDict, total=False):
    """What may be said of a tool that is made of a function; see `tool`."""

    name: str | None
    description: str | None
    pure: bool
    idempotent: bool
    approval: bool
    timeout: float | None


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...


@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[P, R]], Tool[P, R]]: ...


def tool(function: Callable[..., Any] | None = None, /, **options: Unpack[ToolOptions]) -> Any:
    """Make a function a tool: `@tool`, or `@tool(pure=True, ...)`.

    Types come from the hints, descriptions from the docstring; `name` and `description` replace what the
    function says. A `pure` tool changes nothing and answers alike; an `idempotent` one may be called again where
    nobody knows whether it was; `approval` asks for a decision before each call; `timeout` is in seconds.
    Raises `SignatureError` where the function cannot become a tool.
    """
    if function is None:
        return functools.partial(make_tool, **options)
    return make_tool(function)


def make_tool(
    function: Callable[P, R],
    *,
    name: str | None = None,
    description: str | None = None,
    pure: bool = False,
    idempotent: bool = False,
    approval: bool = False,
    timeout: float | None = None,
) -> Tool[P, R]:
    """The tool that `@tool` makes of a function."""
    _check_timeout(timeout)
    chosen: str = name if name is not None else getattr(function, "__name__", repr(function))
    if not chosen.isidentifier():
        raise SignatureError(f"{chosen!r} is not an identifier; name the tool by @tool(name=...)")
    documentation = read_docstring(getattr(function, "__doc__", None))
    signature = read_signature(function, chosen, documentation.parameters)
    return Tool(
        name=chosen,
        description=documentation.summary if description is None else description,
        parameters=signature.parameters,
        returns=signature.returns,
        pure=pure,
        is_async=inspect.iscoroutinefunction(function),
        function=function,
        idempotent=idempotent,
        approval=approval,
        timeout=timeout,
        context=signature.context,
    )


def _check_timeout(timeout: float | None) -> None:
    if timeout is not None and not (timeout > 0 and math.isfinite(timeout)):
        raise ValueError(f"timeout must be a positive number of seconds, or None for no limit; got {timeout!r}")
