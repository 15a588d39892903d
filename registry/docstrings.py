"""What a tool's docstring says: its summary, and a description of each parameter.

Three habits are read: an `Args:` section with indented `name: text` entries, a `Parameters` section
underlined with dashes, and `:param name: text` lines.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_SECTION: Final = re.compile(r"(args|arguments|parameters|params)\s*:\s*$", re.IGNORECASE)
_UNDERLINED: Final = re.compile(r"(other )?parameters\s*$", re.IGNORECASE)
_ENTRY: Final = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_UNDERLINED_ENTRY: Final = re.compile(r"\*{0,2}(\w+)\s*(?::.*)?$")
_FIELD: Final = re.compile(r":param\s+(?:[^:]*\s)?(\w+)\s*:\s*(.*)$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Documentation:
    """The summary and the parameters' descriptions, each on one line; empty where nothing is said."""

    summary: str
    parameters: dict[str, str]


def read_docstring(text: str | None) -> Documentation:
    """Read a docstring; what follows no known habit is left out, never an error."""
    lines = inspect.cleandoc(text or "").splitlines()
    descriptions: dict[str, list[str]] = {}
    for index, line in enumerate(lines):
        if _SECTION.match(line):
            entries = _entries(lines[index + 1 :])
        elif _UNDERLINED.match(line) and index + 1 < len(lines) and _is_rule(lines[index + 1]):
            entries = _underlined_entries(lines[index + 2 :])
        elif match := _FIELD.match(line):
            entries = iter([(match[1], [match[2], *_continuation(lines[index + 1 :])])])
        else:
            continue
        for name, words in entries:
            descriptions.setdefault(name, words)
    parameters = {name: _joined(words) for name, words in descriptions.items()}
    return Documentation(summary=_summary(lines), parameters=parameters)


def _summary(lines: list[str]) -> str:
    """The first paragraph, unless the docstring begins with a section."""
    paragraph: list[str] = []
    for line in lines:
        if not line.strip() or _SECTION.match(line) or _FIELD.match(line):
            break
        paragraph.append(line)
    return _joined(paragraph)


def _entries(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Indented entries `name: text`; deeper lines go on with one, a line at the margin ends the section."""
    margin: int | None = None
    name, words = "", list[str]()
    for line in lines:
        depth = len(line) - len(line.lstrip())
        if not line.strip():
            continue
        if depth == 0:
            break
        margin = depth if margin is None else margin
        match = _ENTRY.match(line.strip()) if depth <= margin else None
        if match is None:
            words.append(line)
            continue
        if name:
            yield name, words
        name, words = match[1], [match[2]]
    if name:
        yield name, words


def _underlined_entries(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Entries whose name stands at the margin and whose text is indented below it, until the next section."""
    name, words = "", list[str]()
    for index, line in enumerate(lines):
        if line.startswith((" ", "\t")):
            words.append(line)
            continue
        if index + 1 < len(lines) and _is_rule(lines[index + 1]):
            break
        match = _UNDERLINED_ENTRY.match(line)
        if match is None:
            continue
        if name:
            yield name, words
        name, words = match[1], []
    if name:
        yield name, words


def _continuation(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if not line.startswith((" ", "\t")):
            return
        yield line


def _is_rule(line: str) -> bool:
    return len(line.strip()) >= 3 and set(line.strip()) == {"-"}


def _joined(words: list[str]) -> str:
    return " ".join(" ".join(words).split())
