"""The lambda calculi's independent judge: is a term well typed, and equal to a reference? No code of the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from agentkit.synthesis.errors import FuelSpent, TermError, TestsError
from agentkit.synthesis.fun import read_fun, read_fun_type
from agentkit.synthesis.languages import Language
from agentkit.synthesis.normal import normal_form
from agentkit.synthesis.stlc import read_stlc, read_stlc_type
from agentkit.synthesis.terms import Scope, Term, Type, render_type, type_of

_READERS: Final[Mapping[Language, tuple[Callable[[str], Term], Callable[[str], Type]]]] = {
    Language.STLC: (read_stlc, read_stlc_type),
    Language.FUN: (read_fun, read_fun_type),
}
_SHOWN = 120


def type_problem(
    language: Language, program: str, goal: str | None = None, context: Mapping[str, str] | None = None
) -> str | None:
    """Why a text is no term of the goal's type (of any type, where there is no goal); None where it is one."""
    scope, demanded = _given(language, goal, context)
    try:
        _, bound = _typed(language, program, scope)
    except (TermError, FuelSpent) as error:
        return str(error)
    return _other_type(bound, demanded)


def difference(
    language: Language,
    program: str,
    reference: str,
    goal: str | None = None,
    context: Mapping[str, str] | None = None,
) -> str | None:
    """Why a text is no term of the reference's type and normal form; None where it is one."""
    scope, demanded = _given(language, goal, context)
    try:
        wanted, bound = _typed(language, reference, scope)
        normal = normal_form(wanted, bound, scope)
    except (TermError, FuelSpent) as error:
        raise TestsError(f"no term can be held against the reference {reference!r}: {error}") from error
    if demanded is not None and demanded != bound:
        raise TestsError(f"the reference has type {render_type(bound)}, but the goal is {render_type(demanded)}")
    try:
        term, found = _typed(language, program, scope)
        other = _other_type(found, bound)
        own = normal if other is not None else normal_form(term, found, scope)
    except (TermError, FuelSpent) as error:
        return str(error)
    return other if own == normal else f"its normal form is {own[:_SHOWN]}, that of the reference {normal[:_SHOWN]}"


def _other_type(found: Type, demanded: Type | None) -> str | None:
    if demanded is None or found == demanded:
        return None
    return f"it has type {render_type(found)}, not {render_type(demanded)}"


def _given(language: Language, goal: str | None, context: Mapping[str, str] | None) -> tuple[Scope, Type | None]:
    """The types of a goal and a context. Raises `TestsError`."""
    _, read_type = _READERS[language]
    try:
        scope = {name: read_type(text) for name, text in (context or {}).items()}
        return scope, None if goal is None else read_type(goal)
    except (TermError, RecursionError) as error:
        raise TestsError(f"the goal or the context holds what is no type: {error}") from error


def _typed(language: Language, text: str, scope: Scope) -> tuple[Term, Type]:
    """A text as a term with its type. Raises `TermError`, and `FuelSpent` for one nested too deeply to be read."""
    read, _ = _READERS[language]
    try:
        term = read(text)
        return term, type_of(term, scope)
    except RecursionError as error:
        raise FuelSpent("the term is nested too deeply to be checked") from error
