"""Pieces of HTML that cannot be broken out of: every text is escaped, and what does not print is spelled out."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Final

# Characters of one text on a page; what is longer is cut, with its size stated. The JSON form keeps it whole.
LIMIT: Final = 8000


def text(content: str) -> str:
    """Any text as HTML; control and direction characters are spelled out, since they could show something else."""
    if len(content) <= LIMIT:
        return attribute(content)
    return f"{attribute(content[:LIMIT])}… <span class=dim>({len(content):,} characters in all)</span>"


def attribute(content: str) -> str:
    """Any text for the inside of a quoted attribute."""
    return html.escape("".join(map(_visible, content)), quote=True)


def token_text(content: str) -> str:
    """The text of a token, its white space made visible."""
    return text(content.replace("\n", "⏎\n").replace("\t", "⇥").replace(" ", "·"))


def table(caption: str, head: Sequence[str], rows: Iterable[str]) -> str:
    """A table in a frame that scrolls by itself, for narrow screens; a heading that begins with `#` is of numbers."""
    cells = "".join(
        f"<th scope=col class=n>{text(one[1:])}</th>" if one.startswith("#") else f"<th scope=col>{text(one)}</th>"
        for one in head
    )
    return (
        f'<div class=scroll role=region tabindex=0 aria-label="{attribute(caption)}">'
        f"<table><caption>{text(caption)}</caption><thead><tr>{cells}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def row(*cells: str, new: bool = False) -> str:
    """A row of cells that are HTML already; `number` and `mono` make others than plain ones."""
    inside = "".join(cell if cell.startswith("<td") else f"<td>{cell}</td>" for cell in cells)
    return f"<tr class=new>{inside}</tr>" if new else f"<tr>{inside}</tr>"


def number(content: str) -> str:
    """A cell of a figure."""
    return f"<td class=n>{text(content)}</td>"


def mono(content: str) -> str:
    """A cell of code or of a value."""
    return f"<td class=m>{text(content)}</td>"


def block(content: str, label: str) -> str:
    """A text as it stands; it can be scrolled by keyboard."""
    return f'<pre tabindex=0 role=region aria-label="{attribute(label)}">{text(content)}</pre>'


def folded(summary: str, content: str) -> str:
    """What is shown when asked for, without a script."""
    return f"<details><summary>{text(summary)}</summary>{content}</details>"


def _visible(char: str) -> str:
    if char in "\n\t" or char.isprintable():
        return char
    return char.encode("unicode_escape").decode("ascii")
