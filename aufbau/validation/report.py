"""Sums up the records of a run: shares with intervals, lead times, exceptions; as JSON and as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from aufbau.validation.corpora import ProgramSet
from aufbau.validation.records import FAULTS, Finding, Record
from aufbau.validation.statistics import Share, Spread

_LISTED = 40  # exceptions of a kind that the Markdown shows; the JSON has all


@dataclass(frozen=True, kw_only=True, slots=True)
class Pruning:
    """What one oracle, semantic or twin, did to rejected programs."""

    lost: Share  # called LOST at some byte of the text
    lead: Spread | None  # byte of LOST minus start of the diagnostic; negative is earlier

    @classmethod
    def of(cls, rejected: Sequence[Record], twin: bool) -> Pruning:
        """Over rejected programs."""
        places = [(r.twin_lost_at if twin else r.lost_at, r.diagnostic) for r in rejected]
        leads = [float(lost - start) for lost, start in places if lost is not None and start is not None]
        lost = sum(place is not None for place, _ in places)
        return cls(lost=Share(count=lost, total=len(rejected)), lead=Spread.of(leads))

    def to_json(self) -> dict[str, object]:
        """Shares and spreads as plain data."""
        return {"lost": self.lost.to_json(), "lead": None if self.lead is None else self.lead.to_json()}


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """One set of programs, its mutants apart."""

    name: str
    programs: int
    findings: dict[Finding, int]
    satisfied: Share  # of the accepted programs that the surface reads
    false_prunes: Share  # of the same
    agreement: Share  # satisfied if and only if accepted, of all judged that the surface reads
    semantic: Pruning
    twin: Pruning
    seconds: float
    bytes: int
    slowest: float
    variants: dict[str, dict[str, int]]  # mutation -> finding -> count

    @classmethod
    def of(cls, name: str, records: Sequence[Record]) -> Summary:
        """Over the records of one set."""
        judged = [r for r in records if r.finding is not Finding.UNJUDGED]
        read = [r for r in judged if r.finding is not Finding.OUTSIDE]
        accepted = [r for r in read if r.accepted]
        rejected = [r for r in read if not r.accepted]
        agreeing = sum((r.verdict == "satisfied") == r.accepted for r in read)
        satisfied = sum(r.verdict == "satisfied" for r in accepted)
        pruned = sum(r.verdict == "lost" for r in accepted)
        variants: dict[str, Counter[str]] = {}
        for record in records:
            if record.variant:
                variants.setdefault(record.variant, Counter())[record.finding.value] += 1
        return cls(
            name=name,
            programs=len(records),
            findings=dict(Counter(r.finding for r in records)),
            satisfied=Share(count=satisfied, total=len(accepted)),
            false_prunes=Share(count=pruned, total=len(accepted)),
            agreement=Share(count=agreeing, total=len(read)),
            semantic=Pruning.of(rejected, twin=False),
            twin=Pruning.of(rejected, twin=True),
            seconds=sum(r.seconds for r in judged),
            # A lost text is not read to its end.
            bytes=sum(r.size if r.lost_at is None else r.lost_at + 1 for r in judged),
            slowest=max((r.seconds for r in records), default=0.0),
            variants={variant: dict(counts) for variant, counts in sorted(variants.items())},
        )

    def to_json(self) -> dict[str, object]:
        """The summary as plain data."""
        return {
            "programs": self.programs,
            "findings": {finding.value: count for finding, count in self.findings.items()},
            "satisfied": self.satisfied.to_json(),
            "false_prunes": self.false_prunes.to_json(),
            "agreement": self.agreement.to_json(),
            "semantic": self.semantic.to_json(),
            "twin": self.twin.to_json(),
            "seconds": round(self.seconds, 3),
            "bytes": self.bytes,
            "slowest": round(self.slowest, 3),
            "variants": self.variants,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """The outcome of a run."""

    language: str
    summaries: tuple[Summary, ...]
    exceptions: dict[Finding, tuple[Record, ...]]
    unread: tuple[tuple[str, int], ...]  # the words at which surfaces end, and how many programs each stops
    features: tuple[tuple[str, Share], ...]  # features, with the share of the programs with them that are satisfied
    tasks: int
    done: int
    barren: int  # generator seeds that gave no program

    @classmethod
    def of(cls, language: str, records: Sequence[Record], *, tasks: int, done: int, barren: int = 0) -> Report:
        """Sum up the records of a run of which `done` of `tasks` tasks are finished."""
        groups: dict[str, list[Record]] = {}
        for record in records:
            mutants = record.variant and record.origin != ProgramSet.MUTATED.value
            groups.setdefault(record.origin + (", mutants" if mutants else ""), []).append(record)
        listed = [finding for finding in Finding if finding is not Finding.AGREES]
        return cls(
            language=language,
            summaries=tuple(Summary.of(name, group) for name, group in groups.items()),
            exceptions={f: tuple(r for r in records if r.finding is f) for f in listed},
            unread=_unread(records),
            features=_features(records),
            tasks=tasks,
            done=done,
            barren=barren,
        )

    @property
    def faults(self) -> int:
        """How many programs show a fault of the grammar or the engine."""
        return sum(len(self.exceptions[finding]) for finding in FAULTS)

    def to_json(self) -> dict[str, object]:
        """Everything, with every exception."""
        return {
            "language": self.language,
            "complete": self.done == self.tasks,
            "tasks": self.tasks,
            "done": self.done,
            "barren": self.barren,
            "faults": self.faults,
            "sets": {summary.name: summary.to_json() for summary in self.summaries},
            "unread": dict(self.unread),
            "features": {name: share.to_json() for name, share in self.features},
            "exceptions": {f.value: [asdict(r) for r in found] for f, found in self.exceptions.items() if found},
        }

    def to_markdown(self) -> str:
        """The report for readers."""
        lines = [f"# {self.language}: the oracle against its compiler", ""]
        if self.done < self.tasks:
            lines += [f"**Not complete: {self.done} of {self.tasks} tasks are done.**", ""]
        lines += [f"Faults: **{self.faults}**. Shares with 95% Wilson intervals; positions in bytes.", ""]
        for summary in self.summaries:
            lines += _section(summary)
        if self.barren:
            lines += [f"{self.barren} seeds of the generator gave no program.", ""]
        if self.unread:
            lines += [
                "## Where the surface ends",
                "",
                "Programs that the compiler reads further than the twin, by word.",
            ]
            lines += ["", "| word | programs |", "|---|---|"]
            lines += [f"| {_cell(word)} | {count} |" for word, count in self.unread[:_LISTED]] + [""]
        if self.features:
            lines += [
                "## Features beyond the basic fragment",
                "",
                "| feature | programs that are satisfied |",
                "|---|---|",
            ]
            lines += [f"| {name} | {share} |" for name, share in self.features] + [""]
        for finding, found in self.exceptions.items():
            if found:
                lines += _listing(finding, found)
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
            if pruning.lead is not None:
                lines.append(f"  - LOST minus start of the diagnostic: {pruning.lead}")
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


def _listing(finding: Finding, found: Sequence[Record]) -> list[str]:
    lines = [f"## Exceptions: {finding.value} ({len(found)})", ""]
    if len(found) > _LISTED:
        lines += [f"The first {_LISTED}; the JSON has all.", ""]
    lines += ["| program | lost at | context | diagnostic | message |", "|---|---|---|---|---|"]
    for record in found[:_LISTED]:
        name = f"{record.origin} {record.index}: {record.name}" + (f", {record.variant}" if record.variant else "")
        cells = [name, _shown(record.lost_at), record.context, _shown(record.diagnostic)]
        cells.append(record.failure or record.message.split("\n")[0])
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    return [*lines, ""]


def _shown(number: int | None) -> str:
    return "" if number is None else str(number)


def _cell(text: str) -> str:
    """Text for a table: one line, no cell borders, at most 100 characters."""
    for plain, shown in (("\n", "⏎"), ("\r", "␍"), ("\t", "␉"), ("|", "\\|"), ("`", "'")):
        text = text.replace(plain, shown)
    return text if len(text) <= 100 else text[:99] + "…"


def _unread(records: Iterable[Record]) -> tuple[tuple[str, int], ...]:
    stopped = (r for r in records if r.finding in (Finding.OUTSIDE, Finding.UNREAD))
    return tuple(Counter(r.unread or "(the end)" for r in stopped).most_common())


def _features(records: Iterable[Record]) -> tuple[tuple[str, Share], ...]:
    """Features of accepted programs, the most frequent first."""
    total: Counter[str] = Counter()
    satisfied: Counter[str] = Counter()
    for record in records:
        if record.accepted and record.finding is not Finding.UNJUDGED:
            total.update(record.features)
            if record.verdict == "satisfied":
                satisfied.update(record.features)
    return tuple((name, Share(count=satisfied[name], total=count)) for name, count in total.most_common())
