"""The S-expression surface: `(let d (search "solar storms 1859"))`, `(return (count d))`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dialects.jsonlike import JsonSurface
from dialects.lowering import SurfaceDialect
from dialects.surface import Surface


class SexprSurface(JsonSurface):
    """Lisp forms, with keyword arguments `:limit 3`, lists `[1 2]` and fields `page.title`.

    White space separates: items never touch, so `007` and `2024-01-02` are not several numbers.
    """

    name = "sexpr"
    title = "S-expression"
    template = "sexpr.auf"
    let = "'(' 'let' Space Name[x] Space {call}[call] ')'"
    returns = "'(' 'return' Space {value}[value] ')'"
    lead = gap = "Space"

    def opening(self, owner: str) -> str:
        return f"'(' '{owner}'"

    def closing(self, owner: str) -> str:
        return "')'"

    def keyed(self, name: str) -> tuple[str, str]:
        return f"':{name}' Space", ""

    def spell_list(self, items: Sequence[str]) -> str:
        return f"[{' '.join(items)}]"

    def spell_applied(self, owner: str, arguments: Sequence[tuple[str | None, str]]) -> str:
        spelled = (text if name is None else f":{name} {text}" for name, text in arguments)
        return f"({' '.join((owner, *spelled))})"

    def spell_let(self, name: str, call: str) -> str:
        return f"(let {name} {call})"

    def spell_return(self, value: str) -> str:
        return f"(return {value})"


@dataclass(frozen=True, kw_only=True, slots=True)
class SexprDialect(SurfaceDialect):
    """Steps that look like Lisp."""

    surface: Surface = field(default_factory=SexprSurface)
    name: str = SexprSurface.name
