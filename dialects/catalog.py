"""The dialects by name, and the translation of a step from one into another."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from aufbau import Verdict
from dialects.base import Dialect, LoweredDialect, Root
from dialects.clike import CLikeDialect
from dialects.errors import DialectError, SpellingError, TranslationError
from dialects.sexpr import SexprDialect
from dialects.steps import Let, Step
from dialects.xml import XmlDialect
from registry.types import ToolType

# Every dialect, in the order in which tables show them.
DIALECTS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in (CLikeDialect(), SexprDialect(), XmlDialect())}


def by_name(name: str) -> Dialect:
    """The dialect of a name: "c", "sexpr" or "xml". Raises `DialectError`."""
    if name not in DIALECTS:
        near = difflib.get_close_matches(name, DIALECTS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise DialectError(f"no dialect is called {name!r}; there are {', '.join(map(repr, DIALECTS))}{hint}")
    return DIALECTS[name]


def translate(
    text: str,
    source: LoweredDialect,
    target: LoweredDialect,
    context: Mapping[str, ToolType],
    output: ToolType | None = None,
    root: Root | str = Root.STEP,
) -> str:
    """A step or program of one dialect in another one, over the same tools and under the same Γ.

    Raises `TranslationError` when the text is none of the source, and `SpellingError` when it binds a name that the
    target reserves.
    """
    prefix = source.start(context, output, root).feed(text)
    tree = prefix.tree() if prefix.verdict is Verdict.SATISFIED else None
    if tree is None:
        why = str(prefix.explain()) if prefix.verdict is Verdict.LOST else "it is not complete; give the whole text"
        raise TranslationError(f"{text!r} is no {Root(root).name.lower()} of the {source.name} dialect: {why}")
    if Root(root) is Root.PROGRAM:
        program = source.read_program(tree)
        _check_binders(program.steps, target)
        return target.render_program(program)
    step = source.read_step(tree)
    _check_binders((step,), target)
    return target.render_step(step)


def _check_binders(steps: tuple[Step, ...], target: LoweredDialect) -> None:
    for step in steps:
        if isinstance(step, Let) and step.name in target.words:
            raise SpellingError(
                f"{step.name!r} can't be bound in the {target.name} dialect, which reserves it; rename it"
            )
