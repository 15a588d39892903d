"""Writes the report of a study from its records: Markdown, plots as PNG and SVG, and one HTML page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from agentkit.study.errors import RecordError
from agentkit.study.page import page
from agentkit.study.plots import draw
from agentkit.study.records import read_records
from agentkit.study.summary import ALL, Summary
from agentkit.study.tables import points, tables

TITLE = "Five decoding modes on small models"
# Attempts that gave no answer which the report names; the records have all.
LISTED = 20


def publish(folder: Path, records: Path, output: Path, *, plots: bool = True) -> list[Path]:
    """Sum up the records, with the branching measured in `folder` where it was, and write all files to `output`.

    Nothing but the records decides what the report says, so it can be made anew at any time. Raises `RecordError`,
    and `StudyError` where plots are wanted and matplotlib is missing.
    """
    summary = Summary.of(read_records(records))
    branching = read_branching(folder / "branching.json")
    found = tables(summary, branching)
    output.mkdir(parents=True, exist_ok=True)
    figures = draw(summary, branching, output / "figures") if plots else []
    lines = [f"# {TITLE}", ""]
    for paragraph in opening(summary):
        lines += [paragraph, ""]
    for name, caption in figures:
        lines += [f"![{caption}](figures/{name}.svg)", ""]
    for table in found:
        lines += table.markdown()
    markdown = output / "report.md"
    markdown.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    drawn = [
        (name, caption, (output / "figures" / f"{name}.svg").read_text(encoding="utf-8")) for name, caption in figures
    ]
    html = output / "report.html"
    html.write_text(page(TITLE, opening(summary), found, drawn), encoding="utf-8")
    pictures = [output / "figures" / f"{name}.{suffix}" for name, _ in figures for suffix in ("png", "svg")]
    return [markdown, html, *pictures]


def opening(summary: Summary) -> list[str]:
    """What was attempted, and what of it is missing."""
    whole = ", ".join(f"{model}: {count} tasks in all modes" for model, count in summary.tasks.items())
    paragraphs = [
        f"{summary.attempts} attempts in the modes {', '.join(summary.modes)} ({whole}). Every figure is worked out "
        "from the records; differences compare the same tasks under the same prompt, seed and beginning.",
        "A pass is one of three things that are never added up: **validity** (accepted at the required type), "
        "**behaviour** (does what was asked, by running it) and **equivalence** (is the term that was asked for).",
    ]
    paragraphs += findings(summary)
    if summary.others:
        paragraphs.append(f"{summary.others} records of other settings are left out.")
    if summary.errors:
        shown = "; ".join(summary.errors[:LISTED])
        more = f"; and {len(summary.errors) - LISTED} more" if len(summary.errors) > LISTED else ""
        paragraphs.append(f"{len(summary.errors)} attempts gave no answer and count as failed: {shown}{more}.")
    return paragraphs


def findings(summary: Summary) -> list[str]:
    """A sentence for each pair of modes, over all models: every difference, whatever its sign."""
    whole = ALL if len(summary.models) > 1 else summary.models[0]
    told: dict[tuple[str, str], list[str]] = {}
    for one in summary.differences:
        if one.group.model == whole:
            what = one.group.name if one.of == "passed" else f"{one.group.family}, valid"
            text = f"{what} {points(one.paired.difference)} ({one.paired.total} pairs, p {one.paired.p:.3f})"
            told.setdefault((one.first, one.second), []).append(text)
    scope = "over all models" if whole == ALL else f"of {whole}"
    return [
        f"**{first.capitalize()} minus {second}**, in points {scope}: {'; '.join(parts)}."
        for (first, second), parts in told.items()
    ]


def read_branching(path: Path) -> Sequence[Mapping[str, object]]:
    """What `study branching` measured; nothing where it was not. Raises `RecordError` for a file of another kind."""
    if not path.exists():
        return []
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["branching"]
    except (ValueError, KeyError, TypeError) as error:
        raise RecordError(f"{path}: is not what `agentkit study branching` writes ({error}); measure anew") from error
    if not isinstance(found, list):
        raise RecordError(f"{path}: `branching` is no list; measure anew")
    return found
