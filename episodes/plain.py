"""Values as JSON-able data and as short text: for transcripts, prompts and comparisons, never for execution."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import math
from collections.abc import Iterable, Iterator

from pydantic import BaseModel

from registry.types import ABSENT, Handle

# Characters of a string, and items of a list, that short text shows; beyond that it states the size.
SHOWN_CHARACTERS = 200
SHOWN_ITEMS = 8
# Characters of the whole short text of one value.
SHOWN_TOTAL = 600


def plain(value: object) -> object:
    """A value as JSON-able data; what JSON cannot hold becomes `{"type": …, "repr": …}`."""
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, float) and not math.isfinite(value):
        return {"type": "float", "repr": repr(value)}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    fields = _fields(value)
    if fields is not None:
        return {name: plain(item) for name, item in fields}
    return {"type": type(value).__name__, "repr": _handle(value)}


def short(value: object, *, characters: int = SHOWN_CHARACTERS, items: int = SHOWN_ITEMS) -> str:
    """A value on one line, cut where it is long; every cut states the full size."""
    text = _short(value, characters, items)
    return _cut(text, SHOWN_TOTAL, f"… ({len(text):,} characters in all)")


def _short(value: object, characters: int, items: int) -> str:
    if isinstance(value, enum.Enum):
        return _short(value.value, characters, items)
    if isinstance(value, str):
        spelled = json.dumps(value[:characters], ensure_ascii=False)
        return spelled if len(value) <= characters else f'{spelled[:-1]}…" ({len(value):,} characters)'
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, list):
        shown = ", ".join(_short(item, characters, items) for item in value[:items])
        return f"[{shown}]" if len(value) <= items else f"[{shown}, …] ({len(value):,} items)"
    fields = _fields(value)
    if fields is not None:
        parts = (f"{name} = {_short(item, characters, items)}" for name, item in fields)
        return f"{type(value).__name__}({', '.join(parts)})"
    return _handle(value)


def _cut(text: str, limit: int, notice: str) -> str:
    return text if len(text) <= limit else text[:limit] + notice


def _fields(value: object) -> Iterable[tuple[str, object]] | None:
    """Name and value of each field of a record; None for anything else."""
    if isinstance(value, Handle):
        return None
    if isinstance(value, BaseModel):
        return [(name, getattr(value, name)) for name in type(value).model_fields]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return list(_dataclass_fields(value))
    return None


def _dataclass_fields(value: object) -> Iterator[tuple[str, object]]:
    for field in dataclasses.fields(value):  # type: ignore[arg-type]
        content = getattr(value, field.name)
        if content is not ABSENT:
            yield field.name, content


def _handle(value: object) -> str:
    """What a handle says of itself; never its address, which differs from run to run."""
    kind = type(value)
    own = kind.__str__ is not object.__str__ or kind.__repr__ is not object.__repr__
    return _cut(" ".join(str(value).split()), SHOWN_CHARACTERS, "…") if own else f"<{kind.__name__}>"
