"""Values of the registry's types as JSON data and back, without loss or refused: what checkpoints are made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, final

from agentkit.root import AgentError
from registry import (
    FLOAT,
    DateType,
    Docs,
    Document,
    EnumType,
    HandleType,
    Hit,
    Identifier,
    ListType,
    MismatchError,
    OptionalType,
    RecordType,
    ToolType,
)
from registry.types import ABSENT, parts_of


class CheckpointError(AgentError):
    """A checkpoint that cannot be written, read, or gone on from; the message says why and how to mend it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Codec:
    """How the values of a class become JSON data and come back."""

    encode: Callable[[Any], object]
    decode: Callable[[Any], object]


Codecs = Mapping[type[Any], Codec]


@final
class Saver:
    """Encodes and decodes values by their types. Nothing is pickled: a handle needs a codec for its class."""

    def __init__(self, codecs: Codecs | None = None) -> None:
        self._codecs = {**BUILT_IN, **(codecs or {})}

    def lacking(self, kinds: Iterable[ToolType]) -> Iterator[HandleType]:
        """The handles among the types and their parts whose class has no codec."""
        waiting, seen = list(kinds), set[str]()
        while waiting:
            kind = waiting.pop()
            if kind.name in seen or self._has_codec(kind):
                continue
            seen.add(kind.name)
            if isinstance(kind, HandleType) and kind.item is None:
                yield kind
            waiting.extend(parts_of(kind))

    def encode(self, kind: ToolType, value: object) -> object:
        """The value as JSON data. Raises `CheckpointError`."""
        codec = self._codec(kind)
        if codec is not None:
            return codec.encode(value)
        match kind:
            case DateType() if isinstance(value, date):
                return value.isoformat()
            case EnumType():
                return kind.spelling(value)
            case ListType() if isinstance(value, list):
                return [self.encode(kind.item, item) for item in value]
            case OptionalType():
                return None if value is None else self.encode(kind.item, value)
            case RecordType():
                return self._record(kind, value)
            case HandleType() if kind.item is not None:
                return self.encode(kind.item, value.value if isinstance(value, Identifier) else value)
            case HandleType():
                raise CheckpointError(_without_codec(kind))
        if kind == FLOAT and isinstance(value, float) and not math.isfinite(value):
            return repr(value)
        return value

    def decode(self, kind: ToolType, data: object) -> object:
        """The value that `encode` made data of. Raises `CheckpointError` where the type has changed since."""
        try:
            return self._decode(kind, data)
        except (MismatchError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"{data!r} is no {kind.name} any more: {error}; resume with the tools that the checkpoint was made with"
            ) from error

    def _decode(self, kind: ToolType, data: object) -> object:
        codec = self._codec(kind)
        if codec is not None:
            return kind.validate(codec.decode(data))
        match kind:
            case DateType():
                return date.fromisoformat(str(data))
            case ListType() if isinstance(data, list):
                return [self._decode(kind.item, item) for item in data]
            case OptionalType():
                return None if data is None else self._decode(kind.item, data)
            case RecordType() if isinstance(data, dict):
                return kind.build({name: self._decode(kind.field(name).type, item) for name, item in data.items()})
            case HandleType() if kind.item is not None:
                return Identifier(type=kind.name, value=self._decode(kind.item, data))
            case HandleType():
                raise CheckpointError(_without_codec(kind))
        return kind.validate(float(data) if kind == FLOAT and isinstance(data, str) else data)

    def _record(self, kind: RecordType, value: object) -> object:
        if type(value) is not kind.python_type:
            raise CheckpointError(
                f"a {type(value).__name__} stands for the record {kind.name}, whose fields are not all of it; give the "
                f"agent a codec: codecs={{{kind.python_type.__name__}: Codec(encode=..., decode=...)}}"
            )
        present = [part for part in kind.fields if getattr(value, part.name) is not ABSENT]
        return {part.name: self.encode(part.type, getattr(value, part.name)) for part in present}

    def _has_codec(self, kind: ToolType) -> bool:
        return self._codec(kind) is not None

    def _codec(self, kind: ToolType) -> Codec | None:
        python_type = kind.python_type if isinstance(kind, HandleType | RecordType) else None
        return self._codecs.get(python_type) if python_type is not None else None


def _without_codec(kind: HandleType) -> str:
    name = kind.python_type.__name__
    return (
        f"a value of the handle {kind.name} cannot be written as JSON, and nothing is pickled; give the agent a codec: "
        f"codecs={{{name}: Codec(encode=..., decode=...)}}"
    )


def _docs_to_data(docs: Docs) -> object:
    found = [[hit.document.id, hit.document.title, hit.document.text, hit.score] for hit in docs.hits]
    return {"query": docs.query, "hits": found}


def _docs_from_data(data: Any) -> Docs:
    hits = (
        Hit(document=Document(id=name, title=title, text=text), score=score)
        for name, title, text, score in data["hits"]
    )
    return Docs(query=data["query"], hits=tuple(hits))


BUILT_IN: Codecs = {Docs: Codec(encode=_docs_to_data, decode=_docs_from_data)}
"""For the handle of the built-in tools."""
