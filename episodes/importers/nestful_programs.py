"""NESTFUL's sequences of calls as programs: references become references, fields become field access."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from dialects import Call, Expression, Let, ListLiteral, Literal, Program, RecordLiteral, Reference, Return
from episodes.importers.base import InexpressibleError, Reason, express
from episodes.importers.nestful_bridges import ITEM, JOINED, PRODUCT, Bridges, applied, call, parts, respelled
from registry import Registry
from registry.schema import field_name, identifier
from registry.types import BOOL, FLOAT, INT, STRING, Field, ListType, OptionalType, RecordType, ToolType

RESULT: Final = "var_result"

REFERENCE: Final = re.compile(r"\$(\w+)(?:\.([^$]+))?\$")
ANY_REFERENCE: Final = re.compile(r"\$var\d+[^$]*\$")


@dataclass(slots=True)
class Translation:
    """The program of one sequence of calls, as it grows."""

    registry: Registry
    bridges: Bridges | None  # None: nothing is converted or computed
    known: dict[str, ToolType] = field(default_factory=dict)
    lets: list[Let] = field(default_factory=list)
    shapes: dict[object, str] = field(default_factory=dict)  # names of the results' types, shared by a part's programs
    origins: dict[str, object] = field(default_factory=dict)  # what a bridging step stands for in the source

    def program(self, steps: Sequence[Mapping[str, Any]]) -> tuple[Program, RecordType]:
        """The program, and the record that it returns. Raises `InexpressibleError`."""
        for step in steps:
            if step["name"] == RESULT:
                kind, value = self._result(step["arguments"])
                return Program(steps=(*self.lets, Return(value=value))), kind
            arguments = tuple(self._arguments(step))
            label, tool = identifier(step["label"]), identifier(step["name"])
            self.lets.append(Let(name=label, call=Call(tool=tool, arguments=arguments)))
            self.known[label] = self.registry[tool].returns
        raise InexpressibleError(Reason.UNBOUND, f"no step is called {RESULT}")

    def _arguments(self, step: Mapping[str, Any]) -> Iterator[tuple[str, Expression]]:
        tool = self.registry[identifier(step["name"])]
        given = {identifier(key): value for key, value in step["arguments"].items()}
        for key in given:
            if all(part.name != key for part in tool.parameters):
                raise InexpressibleError(Reason.UNKNOWN_PARAMETER, f"{tool.name}: {key}")
        for part in tool.parameters:
            place = f"{tool.name}.{part.name}"
            if part.name in given:
                yield part.name, self.expression(given[part.name], part.type, place)
            elif part.required:
                raise InexpressibleError(Reason.MISSING_PARAMETER, place)

    def expression(self, value: object, kind: ToolType, place: str, *, inside: bool = False) -> Expression:
        """An argument where a type is demanded; `inside` a list the package compares values, not spellings."""
        inner = kind.item if isinstance(kind, OptionalType) else kind
        if isinstance(value, str) and ANY_REFERENCE.search(value):
            found, at = self._referring(value)
            return self._converted(found, at, inner, value, Reason.REFERENCE_TYPE, place)
        if isinstance(value, list) and isinstance(inner, ListType):
            return ListLiteral(items=tuple(self.expression(item, inner.item, place, inside=True) for item in value))
        if isinstance(value, list) and inner == STRING and self.bridges and "$var" in str(value):
            texts = ListLiteral(items=tuple(self.expression(item, STRING, place) for item in value))
            return self._converted(texts, ListType(STRING), STRING, value, Reason.LITERAL_TYPE, place)
        if isinstance(value, Mapping) and isinstance(inner, RecordType) and "$var" in str(value):
            fields = ((field_name(key), inner.field(field_name(key)).type, part) for key, part in value.items())
            return RecordLiteral(
                type=inner.name,
                fields=tuple((name, self.expression(part, of, f"{place}.{name}")) for name, of, part in fields),
            )
        try:
            return express(value, kind, place)
        except InexpressibleError:
            literal = respelled(value, inner) if self.bridges and not inside else None
            if literal is not None:
                return literal
            if self.bridges is None or "$var" in str(value):
                raise
            own = natural(value)
            return self._converted(express(value, own, place), own, inner, value, Reason.LITERAL_TYPE, place)

    def _converted(
        self, value: Expression, found: ToolType, wanted: ToolType, origin: object, reason: Reason, place: str
    ) -> Expression:
        if fits(found, wanted):
            return value
        literal = reason is Reason.LITERAL_TYPE
        tools = self.bridges.conversions(found, wanted, literal=literal) if self.bridges else None
        if tools is None:
            raise InexpressibleError(reason, f"{place}: {wanted.name} from {origin!r}, a {found.name}")
        return applied(tools, value, lambda made: self._bind(made, origin))

    def _bind(self, made: Call, origin: object) -> Reference:
        """Bind a bridging step, which stands for what the source wrote."""
        assert self.bridges is not None
        name = f"bridge{len(self.origins) + 1}"
        self.lets.append(Let(name=name, call=made))
        self.known[name] = self.bridges.tools[made.tool].returns
        self.origins[name] = origin
        return Reference(name=name)

    def _referring(self, text: str) -> tuple[Expression, ToolType]:
        """What a text with references denotes. Raises `InexpressibleError`."""
        if REFERENCE.fullmatch(text) and ANY_REFERENCE.fullmatch(text) and "[" not in text:
            return self.refer(text)
        if self.bridges is None:
            raise InexpressibleError(Reason.INDEX if ITEM.fullmatch(text) else Reason.COMPUTED, text)
        return self._item(text) if ITEM.fullmatch(text) else self._computed(text, self.bridges)

    def refer(self, text: str) -> tuple[Reference, ToolType]:
        """The reference that a text is, and its type. Raises `InexpressibleError`."""
        match = REFERENCE.fullmatch(text)
        name = identifier(match[1]) if match else ""
        if match is None or name not in self.known:
            raise InexpressibleError(Reason.UNBOUND, text)
        path, kind = self._follow(self.known[name], match[2].split(".") if match[2] else [], text)
        return Reference(name=name, fields=path), kind

    def _follow(self, kind: ToolType, keys: Sequence[str], text: str) -> tuple[tuple[str, ...], ToolType]:
        """The fields behind keys, and the type of the last. Raises `InexpressibleError`."""
        path = []
        for key in keys:
            known = (
                [part for part in kind.fields if part.name == field_name(key)] if isinstance(kind, RecordType) else []
            )
            if not known:
                raise InexpressibleError(Reason.UNKNOWN_FIELD, f"{text}: {kind.name} has no field {key!r}")
            path.append(known[0].name)
            kind = known[0].type
        return tuple(path), kind

    def _item(self, text: str) -> tuple[Expression, ToolType]:
        """An item of a list, bound by a step, and a field of it."""
        match = ITEM.fullmatch(text)
        assert match is not None and self.bridges is not None
        listed, kind = self.refer(f"${match[1]}$")
        if not isinstance(kind, ListType):
            raise InexpressibleError(Reason.INDEX, f"{text}: {kind.name} is no list")
        item = self._bind(call(self.bridges.item(kind), listed, Literal(value=int(match[2]))), text)
        path, found = self._follow(kind.item, match[3].split(".")[1:], text)
        return Reference(name=item.name, fields=path), found

    def _computed(self, text: str, bridges: Bridges) -> tuple[Expression, ToolType]:
        """Arithmetic on references, or a text with references in it."""
        product, joined = PRODUCT.fullmatch(text), JOINED.fullmatch(text)
        if product:
            factor = Literal(value=float(product[1]))
            return self._bind(call(bridges.operation("*"), factor, self._float(product[2])), text), FLOAT
        if joined:
            left, right = self._float(joined[1]), self._float(joined[3])
            return self._bind(call(bridges.operation(joined[2]), left, right), text), FLOAT
        pieces: list[Expression] = []
        at = 0
        for match in ANY_REFERENCE.finditer(text):
            pieces += [Literal(value=text[at : match.start()])] if match.start() > at else []
            pieces.append(self.expression(match[0], STRING, text))
            at = match.end()
        pieces += [Literal(value=text[at:])] if at < len(text) else []
        return self._bind(call(bridges.join(), parts(pieces)), text), STRING

    def _float(self, text: str) -> Expression:
        return self.expression(text, FLOAT, text)

    def _result(self, arguments: Mapping[str, object]) -> tuple[RecordType, RecordLiteral]:
        shape, values = [], []
        for key, value in arguments.items():
            expression: Expression
            if isinstance(value, str) and ANY_REFERENCE.search(value):
                expression, kind = self._referring(value)
            else:
                kind = natural(value)
                expression = express(value, kind, f"{RESULT}.{key}")
            values.append((field_name(key), expression))
            shape.append((field_name(key), key, kind))
        name = self.shapes.setdefault(tuple(shape), f"{RESULT}_{len(self.shapes) + 1}")
        return _record(name, tuple(shape)), RecordLiteral(type=name, fields=tuple(values))


def fits(found: ToolType, wanted: ToolType) -> bool:
    """Whether a reference of one type may stand where another is demanded."""
    inner = wanted.item if isinstance(wanted, OptionalType) else wanted
    return found in (wanted, inner) or (found, inner) == (INT, FLOAT)


@cache
def _record(name: str, shape: tuple[tuple[str, str, ToolType], ...]) -> RecordType:
    """The type of a result; equal ones share a class, and so a lowered dialect."""
    made = dataclasses.make_dataclass(
        name,
        [(part, object, dataclasses.field(metadata={"json": key})) for part, key, _ in shape],
        frozen=True,
        kw_only=True,
    )
    fields = tuple(Field(name=part, type=kind) for part, _, kind in shape)
    return RecordType(name=name, fields=fields, python_type=made)


def natural(value: object) -> ToolType:
    """The type that a literal has by itself. Raises `InexpressibleError`."""
    match value:
        case bool():
            return BOOL
        case str():
            return STRING
        case int():
            return INT
        case float():
            return FLOAT
        case [first, *_]:
            return ListType(natural(first))
    raise InexpressibleError(Reason.LITERAL_TYPE, f"{value!r} has no type of its own")
