"""NESTFUL's catalogues as JSON Schema: the types they state, and amendments where their programs contradict them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from registry import Registry, tool_from_json_schema
from registry.errors import SchemaError, SignatureError

# Keywords of the catalogues that say nothing of a type, or say it elsewhere.
_ASIDE: Final = frozenset({"required", "optional", "example", "allowed_values", "default_value"})
_TYPES: Final[Mapping[str, Mapping[str, Any]]] = {
    "float": {"type": "number"},
    "file": {"type": "string", "x-nominal": "file"},
    "Date (yyyy-mm-dd)": {"type": "string", "format": "date"},
}

Place = tuple[str, str, tuple[str, ...]]  # a tool, "in" or "out", and the path of a parameter or field


@dataclass(slots=True)
class Catalogue:
    """The tools of one catalogue; `notes` says what has no stated type and how it is read."""

    specs: Mapping[str, Mapping[str, Any]]
    notes: dict[str, str] = field(default_factory=dict)
    amended: dict[Place, Mapping[str, Any]] = field(default_factory=dict)

    def registry(
        self, functions: Callable[[str], Callable[..., object]], only: Collection[str] | None = None
    ) -> Registry:
        """The catalogue's tools, or `only` some; `functions` gives each by its name in the catalogue."""
        chosen = self.specs if only is None else {name: self.specs[name] for name in only}
        return Registry([self._tool(spec, functions(name)) for name, spec in chosen.items()])

    def _tool(self, spec: Mapping[str, Any], function: Callable[..., object]) -> Any:
        name = spec["name"]
        inputs = {key: self.schema((name, "in", (key,)), part) for key, part in spec["query_parameters"].items()}
        outputs = {key: self.schema((name, "out", (key,)), part) for key, part in spec["output_parameters"].items()}
        required = [key for key, part in spec["query_parameters"].items() if part.get("required") is True]
        definition = {
            "name": name,
            "description": spec.get("description", ""),
            "parameters": {"type": "object", "properties": inputs, "required": required},
        }
        result = {"type": "object", "properties": outputs, "required": list(outputs)}
        try:
            return tool_from_json_schema(definition, function, returns=result, opaque_results=True)
        except SignatureError as error:
            if isinstance(error.__cause__, SchemaError):
                error.add_note("the catalogue's schema was translated by episodes.importers.nestful_catalogue")
            raise

    def schema(self, place: Place, stated: Any) -> dict[str, Any]:
        """The JSON Schema of a parameter or field, amendments included."""
        if place in self.amended:
            return copy.deepcopy(dict(self.amended[place]))
        if isinstance(stated, str):
            stated = {"type": stated}
        schema = {key: part for key, part in stated.items() if key not in _ASIDE}
        kind = schema.get("type")
        label = f"{place[0]}.{'.'.join(place[2])}"
        if kind is None:
            self.notes["no type"] = "parameters and fields without a type are strings, as all their values are"
            schema["type"] = "string"
        elif kind in _TYPES:
            schema |= _TYPES[kind]
            self.notes[f"type {kind}"] = f"read as {dict(_TYPES[kind])}"
        if kind == "array":
            schema.pop("format", None)
            if "items" not in schema:
                self.notes["array without items"] = "its items are strings"
            schema["items"] = self.schema(_below(place, "[]"), schema.get("items", {"type": "string"}))
        if isinstance(schema.get("properties"), Mapping):
            schema["properties"] = {
                key: self.schema(_below(place, key), part) for key, part in schema["properties"].items()
            }
            schema["required"] = list(schema["properties"]) if place[1] == "out" else []
        elif kind == "object":
            self.notes[f"{label}"] = "an object without properties: a handle"
        return schema


def undefined(**arguments: object) -> object:
    """The function of tools that are only described."""
    raise RuntimeError("this registry only describes the tools; execute a case to call them")


def _below(place: Place, key: str) -> Place:
    tool, side, path = place
    return tool, side, (*path, key)
