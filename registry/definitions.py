"""Tools from JSON definitions, as model interfaces and tool protocols exchange them, over functions of JSON data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from registry.constraints import check_bounds, violations
from registry.errors import ModelRetry, SchemaError, SignatureError
from registry.jsonvalues import from_json, to_json
from registry.schema import SchemaReader, default_of, identifier
from registry.signature import Parameter
from registry.tool import Tool
from registry.types import ABSENT, RecordType, ToolType

_NAMES = ("name", "description", "title", "type", "strict", "annotations")
_INPUTS = ("parameters", "inputSchema", "input_schema")
_OUTPUTS = ("outputSchema", "output_schema", "response")


def type_from_schema(schema: Mapping[str, Any], *, name: str = "output", opaque: bool = False) -> ToolType:
    """The type that a JSON Schema describes; `name` is the spelling of an enum or record that has none of its own.

    With `opaque`, what states no shape becomes a handle instead of a `SchemaError`.
    """
    check_bounds(schema)
    return SchemaReader(root=schema, opaque=opaque).read(schema, name)


def tool_from_json_schema(
    definition: Mapping[str, Any],
    function: Callable[..., Any],
    *,
    returns: ToolType | Mapping[str, Any] | None = None,
    opaque_results: bool = False,
    pure: bool = False,
) -> Tool:
    """The tool that a JSON definition describes, over a function that takes and gives JSON data by keyword.

    A definition has `name`, `description` and the parameters' schema under `parameters`, `inputSchema` or
    `input_schema`; it may be wrapped as `{"type": "function", "function": …}`. The result's type is `returns` (a type
    or a schema), or the definition's `outputSchema`; what a result schema leaves open is a handle with
    `opaque_results`, else refused. Constraints (`minimum`, `pattern`, …) are checked at each call; what breaks one
    raises `ModelRetry`.

    Raises `SignatureError` that names the tool, the JSON pointer and the keyword.
    """
    given = name_of(definition)
    definition = _inner(definition)
    name = identifier(given)
    try:
        inputs = _only(definition, _INPUTS) or {"type": "object", "properties": {}}
        outputs = returns if returns is not None else _only(definition, _OUTPUTS)
        for word in definition:
            if word not in (*_NAMES, *_INPUTS, *_OUTPUTS):
                raise SchemaError(f"/{word}", f"the keyword {word!r} is not supported in a tool definition; drop it")
        parameters, keys = _parameters(inputs, name)
        if isinstance(outputs, Mapping):
            outputs = type_from_schema(outputs, name=f"{name}_result", opaque=opaque_results)
    except SchemaError as error:
        raise SignatureError(f"tool {given!r}: {error}") from error
    if not isinstance(outputs, get_args(ToolType)):
        raise SignatureError(f"tool {given!r} says nothing of its result; pass returns=, a type or a schema")
    adapter = _Adapter(function=function, schema=inputs, keys=keys, parameters=parameters, returns=outputs)
    asynchronous = inspect.iscoroutinefunction(function)
    return Tool(
        name=name,
        description=str(definition.get("description", "")),
        parameters=parameters,
        returns=outputs,
        pure=pure,
        is_async=asynchronous,
        function=adapter.call_async if asynchronous else adapter.call,
    )


def name_of(definition: Mapping[str, Any]) -> str:
    """The name in a tool definition. Raises `SignatureError`."""
    given = _inner(definition).get("name")
    if not isinstance(given, str) or not given:
        raise SignatureError(f"a tool definition has a name; got the keys {sorted(definition)}")
    return given


def _inner(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = definition.get("function")
    return inner if isinstance(inner, Mapping) else definition


def _only(definition: Mapping[str, Any], words: tuple[str, ...]) -> Mapping[str, Any] | None:
    found = [word for word in words if definition.get(word) is not None]
    if len(found) > 1:
        raise SchemaError(f"/{found[1]}", f"{found[0]} is given too; keep one")
    return definition[found[0]] if found else None


def _parameters(schema: Mapping[str, Any], tool: str) -> tuple[tuple[Parameter, ...], dict[str, str]]:
    """The parameters in the order of the properties, and the property behind each."""
    check_bounds(schema)
    reader = SchemaReader(root=schema)
    properties = schema.get("properties") or {}
    if not properties:
        _check_empty(schema)
        return (), {}
    shape = reader.read(schema, f"{tool}_arguments")
    if not isinstance(shape, RecordType):
        raise SchemaError("#", "the parameters are an object with properties")
    keys = {}
    parameters = []
    for field, (key, part) in zip(shape.fields, properties.items(), strict=True):
        pointer, name = f"#/properties/{key}", identifier(key)
        keys[name] = key
        # Named after the tool and the parameter, like those that come from hints.
        kind = reader.read(part, f"{tool}_{name}", pointer)
        default = default_of(part, kind, pointer)
        description = part.get("description", "") if isinstance(part, Mapping) else ""
        parameters.append(
            Parameter(
                name=name,
                type=kind,
                required=field.required,
                default=None if default is ABSENT else default,
                description=str(description),
            )
        )
    # A step leaves out arguments from the end on first, so those that may lack come last.
    return tuple(sorted(parameters, key=lambda part: not part.required)), keys


def _check_empty(schema: Mapping[str, Any]) -> None:
    extra = set(schema) - {"type", "properties", "required", "additionalProperties", "title", "description", "$schema"}
    if schema.get("type", "object") != "object" or schema.get("required") or extra:
        raise SchemaError("#", f"parameters without properties are an empty object, not {dict(schema)!r}")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Adapter:
    """Calls a function of JSON data with checked arguments, and reads its result at the declared type."""

    function: Callable[..., Any]
    schema: Mapping[str, Any]
    keys: Mapping[str, str]
    parameters: tuple[Parameter, ...]
    returns: ToolType

    def call(self, **arguments: object) -> object:
        return from_json(self.returns, self.function(**self._json(arguments)))

    async def call_async(self, **arguments: object) -> object:
        return from_json(self.returns, await self.function(**self._json(arguments)))

    def _json(self, arguments: Mapping[str, object]) -> dict[str, object]:
        kinds = {part.name: part.type for part in self.parameters}
        data = {self.keys[name]: to_json(kinds[name], value) for name, value in arguments.items()}
        broken = list(violations(self.schema, data, self.schema))
        if broken:
            raise ModelRetry("; ".join(broken))
        return data
