"""The command `python -m episodes.importers`: measure a suite and keep the results as JSON, or print their page."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dialects import DIALECTS, DialectError
from episodes.errors import EpisodeError
from episodes.importers.base import Case
from episodes.importers.measures import Dialectal, counts, executed
from episodes.importers.page import page
from episodes.importers.suites import SUITES, importer

FOLDER = Path("benchmarks/results/suites")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is 1 when something was not as it must be, 2 when it could not be run."""
    options = _parser().parse_args(arguments)
    try:
        return _write_page(options.out) if options.what == "page" else _measure(options)
    except (EpisodeError, DialectError) as error:
        print(error, file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m episodes.importers", description=__doc__)
    parser.add_argument(
        "what",
        choices=["counts", "gold", "corrupt", "all", "page"],
        help="what to measure (all: gold and corrupt), or page",
    )
    parser.add_argument("suite", nargs="*", metavar="SUITE", help=f"one or more of {', '.join(SUITES)}")
    parser.add_argument("--dialects", default=",".join(DIALECTS), help="names, separated by commas")
    parser.add_argument(
        "--every", type=int, default=1, help="feed, corrupt and vary every n-th task only; all are executed"
    )
    parser.add_argument("--steps", type=int, default=1, help="steps of each task to corrupt and vary")
    parser.add_argument("--seed", type=int, default=0, help="chooses the steps and the corruptions")
    parser.add_argument("--out", type=Path, default=FOLDER, help=f"folder of the results, {FOLDER} unless given")
    return parser


def _measure(options: argparse.Namespace) -> int:
    if not options.suite:
        print(f"name a suite: {', '.join(SUITES)}", file=sys.stderr)
        return 2
    status = 0
    for name in options.suite:
        reader = importer(name)
        tasks = list(reader.cases())
        cases = [task for task in tasks if isinstance(task, Case)]
        record: dict[str, Any] = _load(options.out / f"{name}.json")
        record["counts"] = counts(reader, tasks)
        _say(name, "counts", {key: record["counts"][key] for key in ("tasks", "expressible", "reasons")})
        accepting, corrupting = options.what in ("gold", "all"), options.what in ("corrupt", "all")
        if accepting:
            record["executed"] = executed(cases)
            # What graders find while tools run may add to the notes.
            record["counts"]["notes"] = dict(sorted(reader.notes.items()))
            _say(name, "executed", record["executed"])
            status |= bool(record["executed"]["differing"])
        for dialect in options.dialects.split(",") if accepting or corrupting else ():
            found = Dialectal(dialect, options.steps, options.seed)
            found.measure(cases[:: options.every], accepting=accepting, corrupting=corrupting)
            parts = {"gold": found.gold()} if accepting else {}
            parts |= {"corruptions": found.corruptions(), "variations": found.variations()} if corrupting else {}
            for part, result in parts.items():
                record.setdefault(part, {})[dialect] = result
                _say(name, f"{part}, {dialect}", result)
            _save(options.out / f"{name}.json", record)
            status |= _faulty(parts)
        _save(options.out / f"{name}.json", record)
    return int(status)


def _faulty(parts: dict[str, dict[str, Any]]) -> bool:
    """Whether a gold program or a variation was refused, or a corruption was not."""
    gold = parts.get("gold", {"accepted": 0, "programs": 0})
    kinds = [*parts.get("corruptions", {}).values(), *parts.get("variations", {}).values()]
    return gold["accepted"] != gold["programs"] or any(
        kind["made"] != kind.get("refused", kind.get("accepted")) for kind in kinds
    )


def _write_page(folder: Path) -> int:
    records = {name: record for name in SUITES if (record := _load(folder / f"{name}.json"))}
    (folder / "suites.md").write_text(page(records), encoding="utf-8")
    print(folder / "suites.md")
    return 0


def _load(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def _save(path: Path, record: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


def _say(name: str, part: str, found: object) -> None:
    print(f"{name} {part}: {json.dumps(found, ensure_ascii=False)}", flush=True)
