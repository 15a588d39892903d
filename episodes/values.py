"""Values of given types from the data of a TOML file; the way back from `episodes.plain`, where there is one."""

from __future__ import annotations

from registry import MismatchError
from registry.types import HandleType, ListType, OptionalType, RecordType, ToolType


def value_from_data(data: object, kind: ToolType) -> object:
    """The value that data denotes at a type; a record is written as a table.

    Raises `MismatchError`, also for every handle: only a tool can make one.
    """
    match kind:
        case HandleType():
            raise MismatchError(f"a value that can be written, which a handle ({kind.name}) can't", data)
        case OptionalType():
            return None if data is None else value_from_data(data, kind.item)
        case ListType() if isinstance(data, list):
            return [_part(item, kind.item, f"[{index}]") for index, item in enumerate(data)]
        case RecordType() if isinstance(data, dict):
            return kind.build({name: _part(item, kind.field(name).type, f".{name}") for name, item in data.items()})
    return kind.validate(data)


def _part(data: object, kind: ToolType, step: str) -> object:
    try:
        return value_from_data(data, kind)
    except MismatchError as error:
        raise error.inside(step) from None
