"""The Markdown page of the suites' results, made from their JSON records alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Record = Mapping[str, Any]


def page(records: Mapping[str, Record]) -> str:
    """Tables of every suite that has been measured."""
    lines = [
        "# Outside suites: their gold programs under our types",
        "",
        "Made by `python -m episodes.importers page` from the JSON files beside it; `docs/suites.md` says what is "
        "measured and how to run it again.",
        "",
        "## What can be expressed",
        "",
        *_table(
            ["suite", "tasks", "expressible", "programs", "steps", "bridging steps", "tools", "why not"],
            [
                [
                    name,
                    record["counts"]["tasks"],
                    _share(record["counts"]["expressible"], record["counts"]["tasks"]),
                    record["counts"]["programs"],
                    record["counts"]["steps"],
                    record["counts"]["bridging_steps"],
                    record["counts"]["tools"],
                    "; ".join(f"{number}: {reason}" for reason, number in record["counts"]["reasons"].items()) or "–",
                ]
                for name, record in records.items()
            ],
        ),
        "",
        "## Gold programs: accepted at every byte, and executed",
        "",
        "*Passed* is the word of the suite's own grader on our execution; *own* is its word on its own execution of "
        "its own gold; *differing* counts tasks on which the two disagree.",
        "",
        *_table(
            ["suite", "dialect", "tasks fed", "programs", "accepted", "bytes", "passed", "own", "differing"],
            [row for name, record in records.items() for row in _gold_rows(name, record)],
        ),
        "",
        "## Corruptions: one fault in a gold step",
        "",
        "The distance is in bytes from the first byte that departs from the gold step to the one at which the text is "
        "lost; what stops in the middle is refused by not being a step.",
        "",
        *_table(
            ["suite", "dialect", "corruption", "made", "refused", "mean distance", "median"],
            [row for name, record in records.items() for row in _corruption_rows(name, record)],
        ),
        "",
        "## Variations: the same step, written otherwise",
        "",
        *_table(
            ["suite", "dialect", "variation", "made", "accepted"],
            [
                [name, dialect, kind, found["made"], found["accepted"]]
                for name, record in records.items()
                for dialect, kinds in record.get("variations", {}).items()
                for kind, found in kinds.items()
            ],
        ),
        "",
        "## What has no stated type, or another than stated",
        "",
    ]
    for name, record in records.items():
        lines += [f"### {name}", "", *(f"- `{place}`: {note}" for place, note in record["counts"]["notes"].items()), ""]
    return "\n".join(lines).rstrip() + "\n"


def _gold_rows(name: str, record: Record) -> Iterable[list[object]]:
    ran = record.get("executed", {})
    for dialect, found in record.get("gold", {}).items():
        yield [
            name,
            dialect,
            found["tasks"],
            found["programs"],
            _share(found["accepted"], found["programs"]),
            found["bytes"],
            ran.get("passed", "–"),
            ran.get("passed_in_the_suite_itself", "–"),
            len(ran.get("differing", {})),
        ]


def _corruption_rows(name: str, record: Record) -> Iterable[list[object]]:
    for dialect, kinds in record.get("corruptions", {}).items():
        for kind, found in ((kind, found) for kind, found in kinds.items() if found["made"]):
            distance = found["mean_bytes_to_lost"]
            yield [
                name,
                dialect,
                kind,
                found["made"],
                _share(found["refused"], found["made"]),
                "–" if distance is None else distance,
                "–" if distance is None else found["median_bytes_to_lost"],
            ]


def _share(part: int, whole: int) -> str:
    return f"{part} ({part / whole:.1%})" if whole else "0"


def _table(head: list[str], rows: Iterable[Iterable[object]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    return lines + [f"| {' | '.join(map(str, row))} |" for row in rows]
