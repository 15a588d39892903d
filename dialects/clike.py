"""The C-like surface: `let d = search("solar storms 1859");`, `return count(d);`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dialects.jsonlike import JsonSurface
from dialects.lowering import SurfaceDialect
from dialects.surface import Surface


class CLikeSurface(JsonSurface):
    """Statements of C, with keyword arguments `limit = 3`."""

    name = "c"
    title = "C-like"
    template = "clike.auf"
    part_keywords = JsonSurface.keywords  # a keyword argument begins with its bare name
    bare_parts = True
    let = "'let' Name[x] '=' {call}[call] ';'"
    returns = "'return' {value}[value] ';'"
    comma = gap = "','"

    def opening(self, owner: str) -> str:
        return f"'{owner}' '('"

    def closing(self, owner: str) -> str:
        return "')'"

    def keyed(self, name: str) -> tuple[str, str]:
        return f"'{name}' '='", ""

    def spell_list(self, items: Sequence[str]) -> str:
        return f"[{', '.join(items)}]"

    def spell_applied(self, owner: str, arguments: Sequence[tuple[str | None, str]]) -> str:
        spelled = (text if name is None else f"{name} = {text}" for name, text in arguments)
        return f"{owner}({', '.join(spelled)})"

    def spell_let(self, name: str, call: str) -> str:
        return f"let {name} = {call};"

    def spell_return(self, value: str) -> str:
        return f"return {value};"


@dataclass(frozen=True, kw_only=True, slots=True)
class CLikeDialect(SurfaceDialect):
    """Steps that look like statements of C."""

    surface: Surface = field(default_factory=CLikeSurface)
    name: str = CLikeSurface.name
