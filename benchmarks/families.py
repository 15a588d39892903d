"""The four stress families: texts that grow in one direction, as series of lexemes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Series = tuple[str, ...]


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

    def grammar(self) -> str:
        """The source of the shipped grammar; the reference engine reads the same notation."""
        path = Path(__file__).parents[1] / "aufbau" / "languages" / f"{self.language}.auf"
        return path.read_text(encoding="utf-8")

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


FAMILIES: tuple[Family, ...] = (
    Family(name="flat sum", language="fun", period=2, build=_flat_sum),
    Family(name="nesting", language="fun", period=3, build=_nesting),
    Family(name="declarations", language="fun", period=7, build=_declarations),
    Family(name="application chain", language="stlc", period=1, build=_application_chain),
)
