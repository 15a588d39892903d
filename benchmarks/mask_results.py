"""What the benchmark of masks found: cells and extras, kept in a JSON file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

Times = dict[str, float]  # steps, median, mean, p99, max: milliseconds over all steps of a pass

OURS = ("aufbau", "aufbau, compiled")
TWINS = ("aufbau, syntax only", "aufbau, compiled, syntax only")
PEERS = ("llguidance", "xgrammar")
ENGINES = (*OURS, *TWINS, *PEERS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One engine on one grammar and vocabulary."""

    key: str  # a digest of all that the figures depend on
    engine: str
    grammar: str
    vocabulary: str
    tokens: int
    import_s: float  # the engine's own modules
    first: dict[str, float]  # seconds of the stages up to the first mask, in a fresh process without caches
    cold: Times
    warm: Times
    unseen: Times
    accept: Times  # adding the token that follows, in the second pass
    cache_mb: float | None  # what the engine itself reports to keep
    held_mb: float  # growth of the process over what it had before grammar and vocabulary were loaded
    peak_mb: float  # likewise, at most
    facts: dict[str, str]
    first_cached: dict[str, float] | None = None  # as `first`, after an earlier process left its disk cache

    @property
    def first_s(self) -> float:
        """From nothing loaded to the first mask."""
        return sum(self.first.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class Extra:
    """A measurement of another shape than a cell's."""

    key: str
    kind: str  # a name in `benchmarks.mask_extras`
    about: dict[str, str]  # grammar, input, engine
    figures: dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Results:
    """All that was measured."""

    machine: dict[str, str] = field(default_factory=dict)
    cells: tuple[Cell, ...] = ()
    extras: tuple[Extra, ...] = ()

    def find(self, engine: str, grammar: str, vocabulary: str) -> Cell | None:
        """One cell, where it was measured."""
        for cell in self.cells:
            if (cell.engine, cell.grammar, cell.vocabulary) == (engine, grammar, vocabulary):
                return cell
        return None

    def grammars(self) -> list[str]:
        """Those measured."""
        return list(dict.fromkeys(cell.grammar for cell in self.cells))

    def vocabularies(self) -> list[str]:
        """Those measured, the smallest first."""
        sizes = {cell.vocabulary: cell.tokens for cell in self.cells}
        return sorted(sizes, key=lambda title: sizes[title])

    def rows(self) -> list[Cell]:
        """The cells in the order of the tables."""
        found = [
            self.find(engine, grammar, vocabulary)
            for grammar in self.grammars()
            for vocabulary in self.vocabularies()
            for engine in ENGINES
        ]
        return [cell for cell in found if cell is not None]


def read(folder: Path) -> Results:
    """What masks.json holds; nothing where there is no such file, or one of an older layout."""
    path = folder / "masks.json"
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if "extras" not in data:
        return Results()
    return Results(
        machine=data["machine"],
        cells=tuple(Cell(**cell) for cell in data["cells"]),
        extras=tuple(Extra(**extra) for extra in data["extras"]),
    )


def rounded(value: Any) -> Any:
    """The same data with four significant digits: the rest is noise, and would stand in every diff."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(part) for part in value]
    return value


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """A Markdown table; columns of figures are set right."""
    titles = list(head)
    words = {"grammar", "tokens", "engine", "input"}
    lines = ["| " + " | ".join(titles) + " |", "|" + "".join("---|" if t in words else "---:|" for t in titles)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def keep(results: Results, folder: Path) -> None:
    """Write masks.json."""
    data = json.dumps(rounded(asdict(results)), indent=1, ensure_ascii=False)
    (folder / "masks.json").write_text(data + "\n", encoding="utf-8")
