"""Strings in XML: any Unicode text as character data, with entities and numeric references.

Two things go beyond XML 1.0, which cannot hold most control characters at all: a reference may name any of them
(`&#0;`), and one that names no character (a surrogate, or beyond U+10FFFF) denotes U+FFFD, as it does in HTML. All
other texts are spelled as an XML parser reads them: a carriage return is `&#13;`, since parsers make a bare one a line
feed, and `]]>` is never written, which may not stand in character data.
"""

from __future__ import annotations

import re

from dialects.literals import refuse_surrogates

_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_REFERENCE = f"&({'|'.join(_NAMED)}|#[0-9]{{1,7}}|#x[0-9a-fA-F]{{1,6}});"
# What XML has no place for, not even bare: these are spelled as references.
_FOREIGN = r"\x00-\x08\x0b-\x1f\ufffe\uffff"
# At most one bracket before a bare `>`.
TEXT_PATTERN = rf"(\]?>|\]*([^<&>\]{_FOREIGN}]|{_REFERENCE}))*\]*"

_ESCAPED = re.compile("&(?:#x(?P<hex>[^;]+)|#(?P<decimal>[^;]+)|(?P<name>[^;]+));")
_SPECIAL = re.compile(f"[&<>{_FOREIGN}]")
_NAMES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def read_text(content: str) -> str:
    """The text that a match of `TEXT_PATTERN` denotes."""
    return _ESCAPED.sub(_meaning, content)


def spell_text(value: str) -> str:
    """A string as character data, in which only what has to be is escaped. Raises `SpellingError`."""
    refuse_surrogates(value)
    return _SPECIAL.sub(lambda found: _NAMES.get(found[0], f"&#{ord(found[0])};"), value)


def _meaning(found: re.Match[str]) -> str:
    if found["name"]:
        return _NAMED[found["name"]]
    code = int(found["hex"], 16) if found["hex"] else int(found["decimal"])
    return "\ufffd" if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF else chr(code)
