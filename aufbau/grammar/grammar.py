"""`Grammar`: an `.auf` text read, checked and compiled, or what an earlier process kept of that."""

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
from aufbau.store import Shelf, default_store

_LONG: Final = 10_000  # characters from which on a grammar is kept: they take about 0.1 s to compile


def shipped() -> tuple[str, ...]:
    """Names of the grammars that come with the package."""
    folder = resources.files("aufbau.languages")
    return tuple(sorted(f.name.removesuffix(".auf") for f in folder.iterdir() if f.name.endswith(".auf")))


@final
class _Compiled:
    """What a process needs of a grammar to judge texts."""

    __slots__ = ("machines", "start", "symbols")

    def __init__(self, model: GrammarModel) -> None:
        self.start: Final = model.start
        self.symbols: Final = tuple(definition.name for definition in model.definitions)
        self.machines: Final = {root: compile_grammar(model, root) for root in (model.start, *model.roots)}


@final
class Grammar:
    """A checked grammar; equal to another when both say the same, wherever it was written."""

    __slots__ = ("_compiled", "_model", "_text", "shelf", "source_name")

    def __init__(self, model: GrammarModel) -> None:
        """Check a model and compile its starts. Raises `GrammarError`."""
        self._fill(model, "", model.source_name, None)

    def _fill(self, model: GrammarModel | None, text: str, source_name: str, shelf: Shelf | None) -> None:
        self._model = model  # None: not read yet
        self._text = text
        self.source_name = source_name
        self.shelf = shelf  # where what follows from the grammar is kept
        self._compiled = self._checked() if shelf is None else shelf.kept(self._checked)

    def _checked(self) -> _Compiled:
        """The grammar checked and compiled. Raises `GrammarError`."""
        model = self.model
        try:
            check_surface(model)
            check_rules(model)
            return _Compiled(model)
        except GrammarError as error:
            error.source = error.source or model.source_name
            raise

    @classmethod
    def parse(cls, text: str, *, source_name: str = "", cache: bool = True) -> Grammar:
        """Read a grammar from `.auf` text. Raises `GrammarError` with line, column and hint.

        What a long one compiles to is kept on disk for later processes (`aufbau.store`), unless `cache` is False.
        """
        store = default_store() if cache and len(text) >= _LONG else None
        if store is None:
            return cls(read_grammar(text, source_name))
        grammar = cls.__new__(cls)
        grammar._fill(None, text, source_name, store.shelf("grammar", source_name, text))
        return grammar

    @classmethod
    def load(cls, name: str | Path, *, cache: bool = True) -> Grammar:
        """Read a shipped grammar by its name, or an `.auf` file by its path.

        Raises `GrammarError` for a name that is neither, and for what is wrong in the file. For `cache` see `parse`.
        """
        text = str(name)
        if text in shipped():
            source = resources.files("aufbau.languages") / f"{text}.auf"
            return cls.parse(source.read_text(encoding="utf-8"), source_name=f"{text}.auf", cache=cache)
        path = Path(name)
        try:
            return cls.parse(path.read_text(encoding="utf-8"), source_name=text, cache=cache)
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

    @property
    def model(self) -> GrammarModel:
        """The grammar as data."""
        if self._model is None:
            self._model = read_grammar(self._text, self.source_name)
        return self._model

    @property
    def start(self) -> str:
        """The symbol that texts begin with."""
        return self._compiled.start

    @property
    def symbols(self) -> tuple[str, ...]:
        """All nonterminals."""
        return self._compiled.symbols

    def machine(self, symbol: str) -> Machine:
        """The grammar compiled for a start symbol (once)."""
        machines = self._compiled.machines
        found = machines.get(symbol)
        if found is None:
            found = machines.setdefault(symbol, compile_grammar(self.model, symbol))
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
        return f"Grammar({self.source_name or self.start!r})"
