"""Data as JSON text, for records and checkpoints."""

from __future__ import annotations

import json


def json_text(data: object, indent: int | None = None) -> str:
    """Data as JSON text that UTF-8 can hold: half a surrogate pair, as names of files may have, becomes an escape.

    Raises `TypeError` or `ValueError` for what is no data of JSON, NaN and infinity included.
    """
    text = json.dumps(data, ensure_ascii=False, indent=indent, allow_nan=False)
    # Only in strings, where the escape is JSON's own.
    return text.encode(errors="backslashreplace").decode()
