"""The small grammars that the tests of the harness run on, and what they need of the machine."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import pytest

from aufbau import Grammar, Oracle
from aufbau.validation import Language

GRAMMARS = Path(__file__).parent / "grammars"
FILES = {language: GRAMMARS / f"mini_{language}.auf" for language in Language}
PROGRAMS = {Language.ML: "ocamlc", Language.C: "cc"}


@cache
def oracle(language: Language) -> Oracle:
    """The small grammar of a language, compiled."""
    return Oracle(Grammar.load(FILES[language]))


def need_compiler(language: Language) -> None:
    """Skip a test where the reference compiler is not installed."""
    if shutil.which(PROGRAMS[language]) is None:
        pytest.skip(f"{PROGRAMS[language]} is not installed")
