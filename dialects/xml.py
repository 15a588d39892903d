"""The XML surface: `<let name="d"><search><string>solar storms 1859</string></search></let>`.

What it spells is well-formed XML 1.0, in which a parser finds the same texts; only control characters that no XML can
hold are an exception (see `dialects.xmltext`).
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field

from dialects.literals import DAY_PATTERN, FLOAT_PATTERN, INT_PATTERN
from dialects.lowering import SurfaceDialect
from dialects.surface import Surface
from dialects.xmltext import TEXT_PATTERN, read_text, spell_text

# A literal is one lexeme with its tags, so that white space in it is never taken for space between elements.
_LITERALS = {
    "text": rf"Text(text) ::= /<string>{TEXT_PATTERN}<\/string>/",
    "int": rf"Int(int) ::= /<int>{INT_PATTERN}<\/int>/",
    "float": rf"Float(float) ::= /<float>{FLOAT_PATTERN}<\/float>/",
    "bool": "Bool(bool) ::= '<bool>true</bool>' | '<bool>false</bool>'",
    "date": rf"Day ::= /<date>{DAY_PATTERN}<\/date>/" + "\nDate(date) ::= Day[day]",
}


class XmlSurface(Surface):
    """Elements of XML.

    `<arg name="limit">` holds a keyword argument, `<field name="title">` the reference that a field is read from.
    """

    name = "xml"
    title = "XML"
    template = "xml.auf"
    keywords = frozenset(
        {"let", "return", "arg", "field", "var", "string", "int", "float", "bool", "date", "null", "list"}
    )
    announced = True
    bare_parts = True
    reference = """'<var name="' Name[x] '"' '/>'"""
    let = """'<let name="' Name[x] '"' '>' {call}[call] '</let>'"""
    returns = "'<return>' {value}[value] '</return>'"
    empty_list = ("'<list' '/>'", "'<list>' '</list>'")
    brackets = ("'<list>'", "'</list>'")
    null = ("'<null' '/>'",)

    def literal(self, label: str) -> str:
        return _LITERALS[label]

    def field(self, name: str, source: str) -> str:
        return f"""'<field name="' '{name}' '"' '>' {source}[record] '</field>'"""

    def opening(self, owner: str) -> str:
        return f"'<{owner}>'"

    def closing(self, owner: str) -> str:
        return f"'</{owner}>'"

    def bare(self, owner: str) -> Sequence[tuple[str, str]]:
        return ((f"'<{owner}'", "'/>'"),)

    def keyed(self, name: str) -> tuple[str, str]:
        return f"""'<arg name="' '{name}' '"' '>'""", "'</arg>'"

    def spell_text(self, value: str) -> str:
        return f"<string>{spell_text(value)}</string>"

    def spell_date(self, value: datetime.date) -> str:
        return f"<date>{value.isoformat()}</date>"

    def spell_word(self, label: str, text: str) -> str:
        return "<null/>" if label == "null" else f"<{label}>{text}</{label}>"

    def spell_reference(self, name: str, fields: Sequence[str]) -> str:
        around = [f'<field name="{field}">' for field in reversed(fields)]
        return f"""{"".join(around)}<var name="{name}"/>{"</field>" * len(fields)}"""

    def spell_list(self, items: Sequence[str]) -> str:
        return f"<list>{''.join(items)}</list>" if items else "<list/>"

    def spell_applied(self, owner: str, arguments: Sequence[tuple[str | None, str]]) -> str:
        spelled = [text if name is None else f'<arg name="{name}">{text}</arg>' for name, text in arguments]
        return f"<{owner}>{''.join(spelled)}</{owner}>" if spelled else f"<{owner}/>"

    def spell_let(self, name: str, call: str) -> str:
        return f'<let name="{name}">{call}</let>'

    def spell_return(self, value: str) -> str:
        return f"<return>{value}</return>"

    def read_text(self, text: str) -> str:
        return read_text(_content(text))

    def read_day(self, text: str) -> datetime.date:
        return datetime.date.fromisoformat(_content(text))

    def read_word(self, text: str) -> str:
        return _content(text)


def _content(element: str) -> str:
    """What stands between the tags of a literal."""
    return element[element.index(">") + 1 : element.rindex("<")]


@dataclass(frozen=True, kw_only=True, slots=True)
class XmlDialect(SurfaceDialect):
    """Steps that are elements of XML."""

    surface: Surface = field(default_factory=XmlSurface)
    name: str = XmlSurface.name
