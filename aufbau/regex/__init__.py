"""Regular expressions over characters and their automata over UTF-8 bytes."""

from aufbau.regex.dfa import DEAD, ByteAutomaton, compile_regexes
from aufbau.regex.errors import RegexError
from aufbau.regex.limits import DEFAULT_LIMITS, RegexLimits
from aufbau.regex.parse import parse_regex
from aufbau.regex.syntax import (
    Alternate,
    Chars,
    Concat,
    Regex,
    Repeat,
    is_empty,
    literal_regex,
    nullable,
)

__all__ = [
    "DEAD",
    "DEFAULT_LIMITS",
    "Alternate",
    "ByteAutomaton",
    "Chars",
    "Concat",
    "Regex",
    "RegexError",
    "RegexLimits",
    "Repeat",
    "compile_regexes",
    "is_empty",
    "literal_regex",
    "nullable",
    "parse_regex",
]
