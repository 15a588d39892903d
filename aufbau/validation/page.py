"""Lays out the report of a run as Markdown, for readers."""

from __future__ import annotations

from collections.abc import Sequence

from aufbau.validation.records import Finding, Record
from aufbau.validation.report import Report, Summary, Witnesses

LISTED = 40  # exceptions of a kind that are shown; the JSON has all


def markdown(report: Report) -> str:
    """The report for readers."""
    lines = [f"# {report.language}: the oracle against its compiler", ""]
    if report.done < report.tasks:
        lines += [f"**Not complete: {report.done} of {report.tasks} tasks are done.**", ""]
    lines += [f"Faults: **{report.faults}**. Shares with 95% Wilson intervals; positions in bytes.", ""]
    for summary in report.summaries:
        lines += _section(summary)
    if report.barren:
        lines += [f"{report.barren} seeds of the generator gave no program.", ""]
    if report.unread:
        lines += [
            "## Where the surface ends",
            "",
            "Programs that the compiler reads further than the twin, by word.",
        ]
        lines += ["", "| word | programs |", "|---|---|"]
        lines += [f"| {cell(word)} | {count} |" for word, count in report.unread[:LISTED]] + [""]
    if report.features:
        lines += [
            "## Features beyond the basic fragment",
            "",
            "| feature | programs that are satisfied |",
            "|---|---|",
        ]
        lines += [f"| {name} | {share} |" for name, share in report.features] + [""]
    for finding, found in report.exceptions.items():
        if found:
            lines += _open(found) if finding is Finding.OPEN else _listing(finding, found)
    if report.strays:
        lines += _strays(report.strays)
    return "\n".join(lines)


def _section(summary: Summary) -> list[str]:
    lines = [f"## {summary.name}: {summary.programs} programs", ""]
    lines += [f"- {finding.value}: {summary.findings[finding]}" for finding in Finding if finding in summary.findings]
    lines.append(f"- agreement on whole programs, both directions: {summary.agreement}")
    if summary.satisfied.total:
        lines.append(f"- false prunes, over every byte prefix of accepted programs: {summary.false_prunes}")
        lines.append(f"- accepted programs that are satisfied: {summary.satisfied}")
    if summary.semantic.lost.total:
        for name, pruning in (("semantic", summary.semantic), ("syntactic twin", summary.twin)):
            lines.append(f"- rejected programs LOST before their end, {name}: {pruning.lost}")
            lines.append(f"  - of those that were not found to have a completion: {pruning.doomed}")
            if pruning.lead is not None:
                lines.append(f"  - LOST minus start of the diagnostic: {pruning.lead}")
    if summary.endings.total:
        lines.append(f"- completions at the end of rejected programs that are LIVE there: {_counts(summary.endings)}")
    if summary.witnesses.total:
        lines.append(f"- completions at prefixes of accepted programs: {_counts(summary.witnesses)}")
    if summary.bytes:
        per_byte = 1e6 * summary.seconds / summary.bytes
        lines.append(
            f"- oracle: {summary.bytes} bytes in {summary.seconds:.1f} s, {per_byte:.0f} µs a byte; "
            f"slowest program {summary.slowest:.2f} s"
        )
    if summary.variants:
        lines += ["", "| mutation | " + " | ".join(f.value for f in Finding) + " |", "|---" * (len(Finding) + 1) + "|"]
        for variant, counts in summary.variants.items():
            lines.append(f"| {variant} | " + " | ".join(str(counts.get(f.value, 0)) for f in Finding) + " |")
    return [*lines, ""]


def _counts(witnesses: Witnesses) -> str:
    shown = ", ".join(f"{outcome} {count}" for outcome, count in sorted(witnesses.outcomes.items()))
    return f"{shown}; refused {witnesses.refused}; accepted by the compiler {witnesses.accepted}"


def _open(found: Sequence[Record]) -> list[str]:
    """Rejected programs that are LIVE at their end although no completion of theirs is known."""
    rest = [record for record in found if not record.completable]
    lines = [f"## Rejected, not lost, and without a known completion ({len(rest)})", ""]
    lines += [f"{len(found) - len(rest)} more have one: the program goes on to one that is accepted.", ""]
    if rest:
        lines += ["| program | diagnostic | message | completion | word on it |", "|---|---|---|---|---|"]
    for record in rest[:LISTED]:
        ending = record.ending
        found_text = "" if ending is None else f"{ending.outcome} {ending.text}"
        cells = [record.title, _shown(record.diagnostic), record.message.split("\n")[0], found_text]
        cells.append("" if ending is None else ending.message)
        lines.append("| " + " | ".join(cell(text) for text in cells) + " |")
    return [*lines, ""]


def _strays(found: Sequence[Record]) -> list[str]:
    lines = ["## Completions of accepted programs' prefixes that are refused or denied", ""]
    lines += ["| program | at | outcome | completion | satisfied | message |", "|---|---|---|---|---|---|"]
    for record in found[:LISTED]:
        for stray in record.strays:
            cells = [record.title, str(stray.at), stray.outcome, stray.text, str(stray.satisfied), stray.message]
            lines.append("| " + " | ".join(cell(text) for text in cells) + " |")
    return [*lines, ""]


def _listing(finding: Finding, found: Sequence[Record]) -> list[str]:
    lines = [f"## Exceptions: {finding.value} ({len(found)})", ""]
    if len(found) > LISTED:
        lines += [f"The first {LISTED}; the JSON has all.", ""]
    lines += ["| program | lost at | context | diagnostic | message |", "|---|---|---|---|---|"]
    for record in found[:LISTED]:
        cells = [record.title, _shown(record.lost_at), record.context, _shown(record.diagnostic)]
        cells.append(record.failure or record.message.split("\n")[0])
        lines.append("| " + " | ".join(cell(text) for text in cells) + " |")
    return [*lines, ""]


def _shown(number: int | None) -> str:
    return "" if number is None else str(number)


def cell(text: str) -> str:
    """Text for a table: one line, no cell borders, at most 100 characters."""
    for plain, shown in (("\n", "⏎"), ("\r", "␍"), ("\t", "␉"), ("|", "\\|"), ("`", "'")):
        text = text.replace(plain, shown)
    return text if len(text) <= 100 else text[:99] + "…"
