"""The report as one self-contained HTML page: no script, no other file, readable on a telephone and on paper."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from agentkit.study.tables import Table

_STYLE = """
:root { color-scheme: light dark; --line: #8885; --soft: #8881; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .4rem; }
p { max-width: 62rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { text-align: right; vertical-align: bottom; white-space: normal; }
th:first-child, td:first-child, th.text, td.text { text-align: left; }
tbody tr:hover { background: var(--soft); }
figure { margin: 1.5rem 0; } figure svg { max-width: 100%; height: auto; background: white; }
figcaption { font-size: .85rem; }
"""
_LEFT = ("model", "mode", "language", "language, what a pass says", "compared", "oracle", "language, measure")


def page(title: str, opening: Sequence[str], tables: Sequence[Table], figures: Sequence[tuple[str, str, str]]) -> str:
    """The page: opening paragraphs, figures (name, caption, SVG text), then the tables."""
    body = [f"<h1>{escape(title)}</h1>", *(f"<p>{_marked(text)}</p>" for text in opening)]
    for name, caption, svg in figures:
        body.append(
            f'<figure id="{escape(name)}">{_inline(svg, name)}<figcaption>{escape(caption)}</figcaption></figure>'
        )
    body += [_section(table) for table in tables]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _section(table: Table) -> str:
    left = [column in _LEFT for column in table.columns]
    head = "".join(f"<th{_text(is_left)}>{escape(one)}</th>" for one, is_left in zip(table.columns, left, strict=True))
    rows = "\n".join(
        "<tr>"
        + "".join(f"<td{_text(is_left)}>{escape(one)}</td>" for one, is_left in zip(row, left, strict=True))
        + "</tr>"
        for row in table.rows
    )
    return (
        f"<h2>{escape(table.title)}</h2>\n<p>{_marked(table.note)}</p>\n"
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table></div>'
    )


def _text(is_left: bool) -> str:
    return ' class="text"' if is_left else ""


def _marked(text: str) -> str:
    """Escaped text in which *words* are emphasised and **words** are strong, as in the Markdown."""
    shown = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escape(text))
    return re.sub(r"\*(.+?)\*", r"<em>\1</em>", shown)


def _inline(svg: str, name: str) -> str:
    """An SVG file as an element of the page: without its head, and with identifiers that no other figure has."""
    element = svg[svg.index("<svg") :]
    element = re.sub(r'\bid="', f'id="{name}-', element)
    element = re.sub(r'(xlink:href="|href=")#', rf"\1#{name}-", element)
    return element.replace("url(#", f"url(#{name}-")
