"""What is compared: shipped grammars, `.auf` files, and case files, which hold a grammar and texts for it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from aufbau.grammar.grammar import Grammar
from aufbau.reference.correspondence import Comparison, Start
from aufbau.reference.starts import LENGTHS, STARTS

_LONGEST = 60  # characters of a text of a case file that is taken up
_SPELLINGS = {"␤": "\n", "␉": "\t", "␍": "\r", "·": " ", "¦": ""}
_SETTINGS = ("context", "ambient", "goal", "symbol")


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """A grammar with the starts at which its texts begin."""

    name: str
    grammar: Grammar
    starts: tuple[Start, ...]
    length: int  # lexemes of a text at most

    def comparisons(self) -> list[Comparison]:
        """One comparison for each start."""
        return [Comparison(self.grammar, start) for start in self.starts]

    @classmethod
    def load(cls, name: str) -> Subject:
        """A shipped grammar by its name, or the grammar of a file; `.txt` is a case file. Raises `GrammarError`."""
        stem = Path(name).stem
        if not name.endswith(".txt"):
            starts = STARTS.get(stem, (Start(),))
            return cls(name=stem, grammar=Grammar.load(name), starts=starts, length=LENGTHS.get(stem, 12))
        head, _, body = Path(name).read_text(encoding="utf-8").partition("\n====\n")
        named = head.removeprefix("grammar:")
        grammar = Grammar.parse(head + "\n") if named == head else Grammar.load(named.strip())
        return cls(name=stem, grammar=grammar, starts=_starts(body), length=LENGTHS.get(stem, 6))


def _starts(body: str) -> tuple[Start, ...]:
    """The settings that the cases of a file have, each with the texts of its cases."""
    settings: dict[str, str] = {}
    texts: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for line in body.split("\n"):
        key, colon, value = line.partition(":")
        if colon and key in _SETTINGS:
            settings = {**settings, key: value.strip()}
        elif "|" in line and not line.startswith("#"):
            text = line.partition("|")[2].removeprefix(" ")
            for shown, meant in _SPELLINGS.items():
                text = text.replace(shown, meant)
            if len(text) <= _LONGEST:
                texts.setdefault(tuple(settings.items()), []).append(text)
    return tuple(replace(_start(dict(key)), texts=tuple(found)) for key, found in texts.items()) or (Start(),)


def _start(settings: dict[str, str]) -> Start:
    return Start(
        context=bindings(settings.get("context", "")),
        ambient=bindings(settings.get("ambient", "")),
        goal=settings.get("goal") or None,
        symbol=settings.get("symbol") or None,
    )


def bindings(text: str) -> dict[str, str]:
    """`x : T, y : U`; types may hold commas, so an entry begins with a name and a colon."""
    entries = re.split(r",\s*(?=[^\s,]+ : )", text) if text.strip() else []
    pairs = (entry.split(" : ") for entry in entries)
    return {name.strip(): bound.strip() for name, bound in pairs}
