"""What the surfaces with JSON's literals share: strings, numbers, lists in brackets, fields read after a dot."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from dialects.literals import (
    DATE_PATTERN,
    FLOAT_PATTERN,
    INT_PATTERN,
    TEXT_PATTERN,
    read_date,
    read_text,
    spell_text,
)
from dialects.surface import Surface

_LITERALS = {
    "text": f"Text(text) ::= /{TEXT_PATTERN}/",
    "int": f"Int(int) ::= /{INT_PATTERN}/",
    "float": f"Float(float) ::= /{FLOAT_PATTERN}/",
    "bool": "Bool(bool) ::= 'true' | 'false'",
}


class JsonSurface(Surface):
    """Literals of JSON; a date is the word `date` applied to a string."""

    keywords = frozenset({"let", "return", "true", "false", "null"})
    words = keywords | {"date"}
    empty_list = ("'[' ']'",)
    brackets = ("'['", "']'")
    null = ("'null'",)

    def literal(self, label: str) -> str:
        if label == "date":
            around = (self.opening("date"), self.lead, "Day[day]", self.closing("date"))
            return f"Day ::= /{DATE_PATTERN}/\nDate(date) ::= {' '.join(filter(None, around))}"
        return _LITERALS[label]

    def field(self, name: str, source: str) -> str:
        return f"{source}[record] '.{name}'"

    def spell_text(self, value: str) -> str:
        return spell_text(value)

    def spell_date(self, value: datetime.date) -> str:
        return self.spell_applied("date", [(None, f'"{value.isoformat()}"')])

    def spell_reference(self, name: str, fields: Sequence[str]) -> str:
        return ".".join((name, *fields))

    def read_text(self, text: str) -> str:
        return read_text(text)

    def read_day(self, text: str) -> datetime.date:
        return read_date(text)
