"""Registries: the tools that a run may call, by name, and the types that they speak of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self, Unpack, final, overload

from registry.definitions import name_of, tool_from_json_schema
from registry.errors import (
    DuplicateToolError,
    SignatureError,
    UnknownToolError,
    UnknownTypeError,
    near_misses,
)
from registry.tool import P, R, Tool, ToolOptions, make_tool
from registry.types import (
    BUILT_IN_TYPES,
    ListType,
    OptionalType,
    RecordType,
    ToolType,
    describe,
    parts_of,
)


@final
class Registry(Mapping[str, Tool]):
    """Tools by name, in the order of registration. Names are unique, and equal type names mean equal types.

    A registry is an instance, never global. What it holds open (`closing`) is closed by `close`, or by
    leaving a `with` block; registries made from it share that.
    """

    def __init__(self, tools: Iterable[Callable[..., Any]] = (), *, closing: Iterable[Callable[[], None]] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        self._types: dict[str, ToolType] = {}
        self._closing = tuple(closing)
        self.add(*tools)

    @classmethod
    def from_json_schema(
        cls,
        definitions: Iterable[Mapping[str, Any]],
        functions: Mapping[str, Callable[..., Any]],
        *,
        returns: Mapping[str, ToolType | Mapping[str, Any]] | None = None,
        opaque_results: bool = False,
    ) -> Registry:
        """A registry of tools described by JSON Schema; functions and result types by the names in the definitions.

        See `tool_from_json_schema`. Raises `SignatureError`, also for a definition without a function.
        """
        tools = []
        for definition in definitions:
            name = name_of(definition)
            if name not in functions:
                raise SignatureError(f"tool {name!r} has no function; {near_misses(name, functions)}")
            result = (returns or {}).get(name)
            tools.append(
                tool_from_json_schema(definition, functions[name], returns=result, opaque_results=opaque_results)
            )
        return cls(tools)

    def __getitem__(self, name: str) -> Tool:
        try:
            return self._tools[name]
        except KeyError:
            raise UnknownToolError(name, self._tools) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __repr__(self) -> str:
        return f"Registry({', '.join(tool.signature for tool in self.values())})"

    @overload
    def tool(self, function: Callable[P, R], /) -> Tool[P, R]: ...

    @overload
    def tool(self, /, **options: Unpack[ToolOptions]) -> Callable[[Callable[P, R]], Tool[P, R]]: ...

    def tool(self, function: Callable[..., Any] | None = None, /, **options: Unpack[ToolOptions]) -> Any:
        """Make a function a tool, as `registry.tool` of the package does, and register it here."""

        def register(function: Callable[..., Any]) -> Tool:
            made = make_tool(function, **options)
            self.add(made)
            return made

        return register if function is None else register(function)

    def add(self, *tools: Callable[..., Any]) -> None:
        """Register tools, or functions as tools: all of them, or none where one cannot be."""
        added = [item if isinstance(item, Tool) else make_tool(item) for item in tools]
        by_name, types = dict(self._tools), dict(self._types)
        for item in added:
            if item.name in by_name:
                raise DuplicateToolError(f"a tool called {item.name!r} exists; name this one by @tool(name=...)")
            by_name[item.name] = item
            for kind in _types_of(item):
                known = types.setdefault(kind.name, kind)
                if known != kind:
                    raise DuplicateToolError(
                        f"tool {item.name!r}: the type name {kind.name!r} would mean both {describe(known)} "
                        f"and {describe(kind)}; rename one of the classes"
                    )
        for name in by_name:
            # A record is written like a call.
            if isinstance(types.get(name), RecordType):
                raise DuplicateToolError(f"{name!r} is the name of a tool and of a record; rename one of them")
        self._tools, self._types = by_name, types

    def types(self) -> tuple[ToolType, ...]:
        """Every type of a parameter or a result, and every part of one, in the order of first appearance."""
        return tuple(self._types.values())

    def find_type(self, spelling: str) -> ToolType:
        """The type of that spelling: built in, in `types()`, or `list[...]` and `optional[...]` of one."""
        text = "".join(spelling.split())
        for constructor, build in (("list[", ListType), ("optional[", OptionalType)):
            if text.startswith(constructor) and text.endswith("]"):
                item = self.find_type(text[len(constructor) : -1])
                return item if build is OptionalType and isinstance(item, OptionalType) else build(item)
        known = {kind.name: kind for kind in BUILT_IN_TYPES} | self._types
        if text not in known:
            raise UnknownTypeError(f"no type is spelled {spelling!r}; {near_misses(text, known)}")
        return known[text]

    def with_tools(self, *tools: Callable[..., Any]) -> Registry:
        """A new registry with these tools added."""
        return Registry([*self.values(), *tools], closing=self._closing)

    def merge(self, other: Registry) -> Registry:
        """A new registry with the tools of both."""
        return Registry([*self.values(), *other.values()], closing=[*self._closing, *other._closing])

    def select(self, *names: str) -> Registry:
        """A new registry with only these tools, in this order."""
        return Registry([self[name] for name in names], closing=self._closing)

    def close(self) -> None:
        """Close what the tools hold open; they cannot be used afterwards. Closing twice is harmless."""
        for close in self._closing:
            close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _types_of(item: Tool) -> Iterator[ToolType]:
    """The types of a tool's signature, each followed by its parts."""
    waiting: list[ToolType] = [item.returns, *(part.type for part in reversed(item.parameters))]
    while waiting:
        kind = waiting.pop()
        yield kind
        waiting.extend(reversed(list(parts_of(kind))))
