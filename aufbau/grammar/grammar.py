"""`Grammar`: an `.auf` text read, checked and ready to be compiled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Final, final

from aufbau.classify import GrammarReport, check
from aufbau.earley.machine import Machine
from aufbau.errors import GrammarError, Span
from aufbau.grammar.analysis import check_surface
from aufbau.grammar.compile import check_rules, compile_grammar
from aufbau.grammar.model import GrammarModel
from aufbau.grammar.reader import read_grammar
from aufbau.grammar.render import render_grammar


def shipped() -> tuple[str, ...]:
    """Names of the grammars that come with the package."""
    folder = resources.files("aufbau.languages")
    return tuple(sorted(f.name.removesuffix(".auf") for f in folder.iterdir() if f.name.endswith(".auf")))


@final
class Grammar:
    """A checked grammar; equal to another when both say the same, wherever it was written."""

    __slots__ = ("_machines", "model")

    def __init__(self, model: GrammarModel) -> None:
        """Check a model. Raises `GrammarError`."""
        self.model: Final = model
        self._machines: dict[str, Machine] = {}
        try:
            check_surface(model)
            check_rules(model)
            for root in (model.start, *model.roots):
                self.machine(root)
        except GrammarError as error:
            error.source = error.source or model.source_name
            raise

    @classmethod
    def parse(cls, text: str, *, source_name: str = "") -> Grammar:
        """Read a grammar from `.auf` text. Raises `GrammarError` with line, column and hint."""
        return cls(read_grammar(text, source_name))

    @classmethod
    def load(cls, name: str | Path) -> Grammar:
        """Read a shipped grammar by its name, or an `.auf` file by its path.

        Raises `GrammarError` for a name that is neither, and for what is wrong in the file.
        """
        text = str(name)
        if text in shipped():
            source = resources.files("aufbau.languages") / f"{text}.auf"
            return cls.parse(source.read_text(encoding="utf-8"), source_name=f"{text}.auf")
        path = Path(name)
        try:
            return cls.parse(path.read_text(encoding="utf-8"), source_name=text)
        except (OSError, UnicodeDecodeError) as error:
            raise GrammarError(
                f"there is no grammar {text!r}: {error}",
                Span(),
                f"name a shipped one ({', '.join(shipped())}) or a path to an .auf file in UTF-8",
                text,
            ) from error

    def source(self) -> str:
        """The grammar as `.auf` text; reading it gives an equal grammar."""
        return render_grammar(self.model)

    def machine(self, symbol: str) -> Machine:
        """The grammar compiled for a start symbol (once)."""
        found = self._machines.get(symbol)
        if found is None:
            found = self._machines.setdefault(symbol, compile_grammar(self.model, symbol))
        return found

    def check(self, context: Mapping[str, str] | None = None) -> GrammarReport:
        """The classification against (P), (T) and (F): whether dead ends are excluded, by what proof, or an example.

        A proof holds whatever names are in scope; `context` is what examples of dead ends are looked for in.
        """
        return check(self.model, self.machine, context)

    def syntactic(self) -> Grammar:
        """The same surface with all rules stripped."""
        rules = {rule.name for rule in self.model.rules}
        definitions = tuple(
            replace(definition, label=None) if definition.label in rules else definition
            for definition in self.model.definitions
        )
        return Grammar(replace(self.model, definitions=definitions, rules=()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Grammar) and self.model == other.model

    def __hash__(self) -> int:
        return hash(self.model)

    def __repr__(self) -> str:
        return f"Grammar({self.model.source_name or self.model.start!r})"
