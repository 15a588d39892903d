"""Cuts ML and C programs into lexemes, for the measure of branching; names of modules stay with what they qualify."""

from __future__ import annotations

import re

from aufbau.validation.corpora import Language

_STRING = r'"(?:[^"\\]|\\.)*"'
_ML = re.compile(
    rf"""
    (?P<skip>\s+|\(\*(?:[^*]|\*(?!\)))*\*\))
  | {_STRING}
  | '(?:[^'\\]|\\.[0-9a-fA-F]*)'
  | (?:[A-Z]\w*\.)*[A-Za-z_][\w']*
  | '[a-z_]\w*
  | \d[\w.]*
  | \[\| | \|\] | ;; | :: | := | -> | <-
  | [-=<>@^|&+*/$%!?.~:]+
  | .
    """,
    re.VERBOSE | re.DOTALL,
)
_C = re.compile(
    rf"""
    (?P<skip>\s+|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)
  | \#[^\n]*
  | {_STRING}
  | '(?:[^'\\]|\\.[0-9a-fA-F]*)'
  | [A-Za-z_]\w*
  | \.?\d(?:[\w.]|(?<=[eEpP])[-+])*
  | <<= | >>= | \.\.\. | -> | \+\+ | -- | << | >> | [-+*/%&|^<>=!]= | && | \|\|
  | .
    """,
    re.VERBOSE | re.DOTALL,
)


def lexemes(language: Language, text: str) -> list[tuple[int, str]]:
    """The lexemes of a program with their places; white space and comments are none."""
    pattern = _ML if language is Language.ML else _C
    return [(found.start(), found[0]) for found in pattern.finditer(text) if found.lastgroup != "skip"]
