"""Finds the last item of an OCaml program's text: an expression after `;;`, or a definition."""

from __future__ import annotations

import re

# What can't be part of an expression or keeps its inside to itself: strings, characters, the marks that matter here.
_PIECE = re.compile(
    r"""
    "(?:[^"\\]|\\.)*"                              # a string
  | \{([a-z_]*)\|.*?\|\1\}                         # a quoted string
  | '(?:[^'\\\n]|\\[^0-9xou]|\\[0-9]{3}|\\x[0-9a-fA-F]{2}|\\o[0-3][0-7]{2})'  # a character
  | \(\*                                           # a comment begins
  | \*\)                                           # … and ends
  | ;;
    """,
    re.VERBOSE | re.DOTALL,
)
_DEFINITION = re.compile(r"(?:let|type|exception|open|module|external|class|include)\b")
_BLANK = re.compile(r"\s+")


def last_expression(program: str) -> tuple[str, str] | None:
    """The program up to its last item, and that item where it is an expression; None where it is a definition.

    Of a program that the compiler accepts this is right. The item comes without its comments.
    """
    depth = 0
    last = 0
    for piece in _PIECE.finditer(program):
        match piece.group():
            case "(*":
                depth += 1
            case "*)":
                depth = max(0, depth - 1)
            case ";;" if not depth and _without_comments(program[piece.end() :]):
                last = piece.end()
    item = _without_comments(program[last:])
    if not item or (_DEFINITION.match(item) and not _is_local(item)):
        return None
    return program[:last], item


def _is_local(item: str) -> bool:
    """`let … in …`: an expression. Only asked of a text without comments; the answer is the compiler's to confirm."""
    return item.startswith("let") and bool(re.search(r"\bin\b", item))


def _without_comments(text: str) -> str:
    """The text without its comments and marks `;;` at either end."""
    kept: list[str] = []
    depth = at = 0
    for piece in _PIECE.finditer(text):
        token = piece.group()
        if token not in ("(*", "*)"):
            continue
        if not depth:
            kept.append(text[at : piece.start()])
        depth = depth + 1 if token == "(*" else max(0, depth - 1)
        at = piece.end()
    kept.append(text[at:])
    found = " ".join(kept).strip()
    while found.startswith(";;") or found.endswith(";;"):
        found = found.removeprefix(";;").removesuffix(";;").strip()
    return found
