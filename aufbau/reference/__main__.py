"""`python -m aufbau.reference`: hold the engine against the reference on thousands of random prefixes."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from aufbau.grammar.grammar import shipped
from aufbau.reference.subjects import Subject
from aufbau.verdict import Verdict

_COLUMNS = ("grammar", "prefixes", "satisfied", "live", "lost", "ahead", "skipped", "differ")


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """What the comparison on one grammar met; verdicts are the engine's."""

    grammar: str
    prefixes: int  # on which both spoke
    satisfied: int
    live: int
    lost: int
    ahead: int  # that only the engine calls lost; no completion was found
    skipped: int  # that the reference gave up
    differences: tuple[str, ...]
    seconds: float

    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        numbers = (self.prefixes, self.satisfied, self.live, self.lost, self.ahead, self.skipped)
        return (self.grammar, *map(str, numbers), str(len(self.differences)))


def main() -> int:
    """Compare, print a line for each grammar and every difference; 1 when there is one."""
    parser = argparse.ArgumentParser(prog="python -m aufbau.reference", description=__doc__)
    parser.add_argument(
        "grammars",
        nargs="*",
        default=shipped(),
        metavar="GRAMMAR[=N]",
        help="shipped names, .auf files or case files, N prefixes of each (all that ship)",
    )
    parser.add_argument(
        "--prefixes", type=int, default=2000, help="prefixes in all where no N is given (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the random texts (default: %(default)s)")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write correspondence.json and .md there")
    options = parser.parse_args()
    print(_line(_COLUMNS))
    rows: list[Row] = []
    for entry in options.grammars:
        name, _, count = entry.partition("=")
        rows.append(_held(name, int(count) if count else options.prefixes // len(options.grammars), options.seed))
        print(f"{_line(rows[-1].cells())}   {rows[-1].seconds:.0f} s", flush=True)
        for difference in rows[-1].differences:
            print(f"  {difference}")
        if options.out:
            _write(rows, options.seed, options.out)  # each time, so that a run that is cut off leaves what it found
    return int(any(row.differences for row in rows))


def _line(cells: Sequence[str]) -> str:
    return f"{cells[0]:12}" + "".join(f"{cell:>10}" for cell in cells[1:])


def _held(name: str, prefixes: int, seed: int) -> Row:
    """Compare on one grammar."""
    subject, started = Subject.load(name), time.monotonic()
    comparisons = subject.comparisons()
    random = Random(seed)
    while sum(c.tally.compared for c in comparisons) < prefixes:
        comparison = random.choice(comparisons)
        for text in comparison.prefixes(random, subject.length):
            comparison.compare(text)
    tallies = [comparison.tally for comparison in comparisons]
    counts = {verdict: sum(tally.verdicts[verdict] for tally in tallies) for verdict in Verdict}
    return Row(
        grammar=subject.name,
        prefixes=sum(counts.values()),
        satisfied=counts[Verdict.SATISFIED],
        live=counts[Verdict.LIVE],
        lost=counts[Verdict.LOST],
        ahead=sum(tally.ahead for tally in tallies),
        skipped=sum(tally.skipped for tally in tallies),
        differences=tuple(str(difference) for tally in tallies for difference in tally.differences),
        seconds=round(time.monotonic() - started, 1),
    )


def _write(rows: Sequence[Row], seed: int, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    total = sum(row.prefixes for row in rows)
    different = [difference for row in rows for difference in row.differences]
    data = {"seed": seed, "prefixes": total, "differences": len(different), "grammars": [asdict(row) for row in rows]}
    text = json.dumps(data, ensure_ascii=False, indent=1) + "\n"
    (folder / "correspondence.json").write_text(text, encoding="utf-8")
    lines = [
        "# The engine against the reference evaluator",
        "",
        f"{total} random prefixes (seed {seed}), {len(different)} differences: verdict, types and names in scope.",
        "Ahead: only the engine calls the prefix lost, and the reference found no completion.",
        "Skipped: too much for the reference to enumerate; not counted among the prefixes.",
        "",
        "| " + " | ".join(_COLUMNS) + " |",
        "|---" * len(_COLUMNS) + "|",
        *("| " + " | ".join(row.cells()) + " |" for row in rows),
    ]
    if different:
        lines += ["", "## Differences", "", *(f"- `{difference}`" for difference in different)]
    (folder / "correspondence.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
