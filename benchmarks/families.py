"""The four stress families, in the small languages, in ML and in C: texts that grow in one direction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Series = tuple[str, ...]

_LANGUAGES = Path(__file__).parents[1] / "aufbau" / "languages"
_SMALL = Path(__file__).parent / "grammars"


@dataclass(frozen=True, kw_only=True, slots=True)
class Text:
    """A text of the language, split where a measurement may start and after each lexeme."""

    prelude: Series  # lexemes that only set the scene (binders); part of the text, left out of per-lexeme figures
    body: Series  # the lexemes that make the family grow, each with the white space that precedes it

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.prelude + self.body)

    @property
    def lexemes(self) -> int:
        """How many lexemes the text has."""
        return len(self.prelude) + len(self.body)


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """A way to grow a text of one of the shipped languages by a repeated part."""

    name: str
    language: str  # the name that Grammar.load takes
    period: int  # lexemes after which the same kinds of lexeme come again (in nesting, on the way in)
    build: Callable[[int], Text]  # number of repetitions -> text
    # A grammar of the family's texts in the notation that both engines read; "" where they both read the shipped one.
    small: str = ""

    @property
    def title(self) -> str:
        """The family with its language."""
        return f"{self.language}: {self.name}"

    def grammars(self) -> dict[str, str]:
        """The sources of the grammars to measure, by name: the shipped one, then what both engines read."""
        paths = [_LANGUAGES / f"{self.language}.auf"]
        paths += [_SMALL / f"{self.small}.auf"] if self.small else []
        return {path.name: path.read_text(encoding="utf-8") for path in paths}

    def at_least(self, lexemes: int) -> Text:
        """The smallest text of the family with at least so many lexemes in its body."""
        repetitions = 1
        while len(self.build(repetitions).body) < lexemes:
            repetitions += 1
        return self.build(repetitions)

    def nearest(self, lexemes: int) -> Text:
        """The largest text with at most so many lexemes in all, or the smallest text there is."""
        repetitions = 1
        while self.build(repetitions + 1).lexemes <= lexemes:
            repetitions += 1
        return self.build(repetitions)


def _flat_sum(n: int) -> Text:
    body = ["1"]
    for index in range(n):
        body += [" +", f" {index % 10}"]
    return Text(prelude=(), body=tuple(body))


def _nesting(n: int) -> Text:
    opening = ["(", "1", " +"]
    for _ in range(n - 1):
        opening += [" (", "1", " +"]
    return Text(prelude=(), body=(*opening, " 1", *(")",) * n))


def _declarations(n: int) -> Text:
    body: list[str] = []
    for index in range(n):
        body += ["let" if index == 0 else " let", f" x{index}", " :", " Int", " =", f" {index}", ";"]
    return Text(prelude=(), body=(*body, f" x{n - 1}"))


def _application_chain(n: int) -> Text:
    arrow = ("A", "→") * n + ("A",)
    return Text(prelude=("λ", "f", ":", *arrow, ".", "λ", "a", ":", "A", "."), body=("f", *(" a",) * n))


def _ml(body: Text) -> Text:
    return Text(prelude=("let", " s", " :", " int", " ="), body=_spaced(body))


def _ml_declarations(n: int) -> Text:
    body: list[str] = []
    for index in range(n):
        body += ["let" if index == 0 else " let", f" x{index}", " :", " int", " =", f" {index}"]
    return Text(prelude=(), body=tuple(body))


def _ml_application_chain(n: int) -> Text:
    arrow = (" int", " ->") * n + (" int",)
    prelude = ("let", " c", " (", "f", " :", *arrow, ")", " :", " int", " =")
    return Text(prelude=prelude, body=(" f", *(" 1",) * n))


def _c(body: Text) -> Text:
    return Text(prelude=_C_HEAD, body=(" return", *_spaced(body), ";", " }"))


def _c_declarations(n: int) -> Text:
    body: list[str] = []
    for index in range(n):
        body += [" int", f" x{index}", " =", f" {index}", ";"]
    return Text(prelude=_C_HEAD, body=(*body, " return", f" x{n - 1}", ";", " }"))


def _c_application_chain(n: int) -> Text:
    """C has no currying, so the chain is of calls in calls."""
    return Text(prelude=_C_HEAD, body=(" return", *(" f", "(") * n, "1", *(")",) * n, ";", " }"))


_C_HEAD = ("int", " f", "(", "int", " a", ")", " {")


def _spaced(text: Text) -> Series:
    """The body with a space before its first lexeme."""
    return (f" {text.body[0]}", *text.body[1:])


_ML, _C = "small_ml", "small_c"

FAMILIES: tuple[Family, ...] = (
    Family(name="flat sum", language="fun", period=2, build=_flat_sum),
    Family(name="nesting", language="fun", period=3, build=_nesting),
    Family(name="declarations", language="fun", period=7, build=_declarations),
    Family(name="application chain", language="stlc", period=1, build=_application_chain),
    Family(name="flat sum", language="ml", period=2, build=lambda n: _ml(_flat_sum(n)), small=_ML),
    Family(name="nesting", language="ml", period=3, build=lambda n: _ml(_nesting(n)), small=_ML),
    Family(name="declarations", language="ml", period=6, build=_ml_declarations, small=_ML),
    Family(name="application chain", language="ml", period=1, build=_ml_application_chain, small=_ML),
    Family(name="flat sum", language="c", period=2, build=lambda n: _c(_flat_sum(n)), small=_C),
    Family(name="nesting", language="c", period=3, build=lambda n: _c(_nesting(n)), small=_C),
    Family(name="declarations", language="c", period=5, build=_c_declarations, small=_C),
    Family(name="application chain", language="c", period=2, build=_c_application_chain, small=_C),
)
