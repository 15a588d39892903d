"""The languages that programs are written in: their grammars, and what is said of them to a model and a grader."""

from __future__ import annotations

import re
from enum import Enum
from functools import cache
from pathlib import Path

from aufbau import Grammar, Oracle


class Language(Enum):
    """A language with a shipped grammar that synthesis knows more about than the grammar."""

    # Core ML, a subset of OCaml that ocamlc judges.
    ML = "ml"
    # A fragment of C17 that cc judges.
    C = "c"
    # The monomorphic fragment of ML that has no dead ends.
    CORE_ML = "core_ml"
    # The fragment of C that has no dead ends.
    CORE_C = "core_c"
    # The simply typed lambda calculus.
    STLC = "stlc"
    # Finite lambda: let, lambdas, arithmetic; no dead ends.
    FUN = "fun"

    def __str__(self) -> str:
        return self.value

    @property
    def is_ml(self) -> bool:
        """Whether its programs are OCaml's."""
        return self in (Language.ML, Language.CORE_ML)

    @property
    def is_c(self) -> bool:
        """Whether its programs are C's."""
        return self in (Language.C, Language.CORE_C)

    @property
    def has_compiler(self) -> bool:
        """Whether a compiler outside this package judges its programs."""
        return self.is_ml or self.is_c


_NAMES = {language.value: language for language in Language}
_TYPE_VARIABLE = re.compile(r"'([A-Za-z_]\w*)")


def known_language(name: Language | str | Path) -> Language | None:
    """The language of that name; None for what can only be the path of a grammar."""
    return name if isinstance(name, Language) else _NAMES.get(str(name))


@cache
def oracle_of(name: str) -> Oracle:
    """The oracle of a shipped grammar or an `.auf` file, compiled once. Raises `GrammarError`."""
    return Oracle(Grammar.load(name))


def engine_goal(language: Language | None, goal: str | None) -> str | None:
    """What the oracle demands of the root for a goal.

    Nothing for C, whose programs have no type: there a goal is a prototype, which the prefix puts in front. In ML's
    goals a type variable is an open part, `?a` in the notation of grammars.
    """
    if goal is None or language is None:
        return goal
    if language.is_c:
        return None
    return _TYPE_VARIABLE.sub(r"?\1", goal) if language.is_ml else goal


def begun_by(language: Language | None, goal: str | None) -> str:
    """The text that a program for a goal begins with where the caller gives none: the head of the function in C."""
    if language is None or not language.is_c or goal is None:
        return ""
    return f"{goal.strip().rstrip(';').rstrip()} {{\n"
