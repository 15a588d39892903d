"""Sums up the records of a run: shares with intervals, lead times, completions, exceptions; as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from aufbau.validation.corpora import ProgramSet
from aufbau.validation.records import FAULTS, Finding, Record
from aufbau.validation.statistics import Share, Spread
from aufbau.validation.witnesses import Completion


@dataclass(frozen=True, kw_only=True, slots=True)
class Pruning:
    """What one oracle, semantic or twin, did to rejected programs."""

    lost: Share  # called LOST at some byte of the text
    doomed: Share  # the same, of those that were not found to have a completion
    lead: Spread | None  # byte of LOST minus start of the diagnostic; negative is earlier

    @classmethod
    def of(cls, rejected: Sequence[Record], twin: bool) -> Pruning:
        """Over rejected programs."""
        places = [(r.twin_lost_at if twin else r.lost_at, r.diagnostic) for r in rejected]
        leads = [float(lost - start) for lost, start in places if lost is not None and start is not None]
        lost = sum(place is not None for place, _ in places)
        doomed = [place for record, (place, _) in zip(rejected, places, strict=True) if not record.completable]
        return cls(
            lost=Share(count=lost, total=len(rejected)),
            doomed=Share(count=sum(place is not None for place in doomed), total=len(doomed)),
            lead=Spread.of(leads),
        )

    def to_json(self) -> dict[str, object]:
        """Shares and spreads as plain data."""
        lead = None if self.lead is None else self.lead.to_json()
        return {"lost": self.lost.to_json(), "without_completion": self.doomed.to_json(), "lead": lead}


@dataclass(frozen=True, kw_only=True, slots=True)
class Witnesses:
    """What searches for completions ended with."""

    outcomes: dict[str, int]
    refused: int  # completions that the oracle found, but that the compiler or a fresh start refuses
    accepted: Share  # of those found and given to the compiler

    @classmethod
    def of(cls, completions: Iterable[Completion]) -> Witnesses:
        """Over some searches."""
        found = list(completions)
        words = [completion.accepted for completion in found if completion.accepted is not None]
        return cls(
            outcomes=dict(Counter(completion.outcome for completion in found)),
            refused=sum(completion.refused for completion in found),
            accepted=Share(count=sum(words), total=len(words)),
        )

    @property
    def total(self) -> int:
        """How many searches there were."""
        return sum(self.outcomes.values())

    def to_json(self) -> dict[str, object]:
        """The counts as plain data."""
        return {"outcomes": self.outcomes, "refused": self.refused, "accepted": self.accepted.to_json()}


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
    endings: Witnesses  # at the ends of rejected programs that are LIVE there
    witnesses: Witnesses  # at prefixes of accepted programs
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
            endings=Witnesses.of(r.ending for r in rejected if r.ending is not None),
            witnesses=Witnesses.of(completion for r in records for completion in r.completions),
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
            "endings": self.endings.to_json(),
            "witnesses": self.witnesses.to_json(),
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
    strays: tuple[Record, ...]  # with completions that are refused, or proved not to exist where one does
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
        if len(groups) > 1:
            groups["all sets"] = list(records)
        listed = [finding for finding in Finding if finding is not Finding.AGREES]
        return cls(
            language=language,
            summaries=tuple(Summary.of(name, group) for name, group in groups.items()),
            exceptions={f: tuple(r for r in records if r.finding is f) for f in listed},
            strays=tuple(r for r in records if r.strays),
            unread=_unread(records),
            features=_features(records),
            tasks=tasks,
            done=done,
            barren=barren,
        )

    @property
    def faults(self) -> int:
        """How many programs show a fault of the grammar or the engine."""
        return sum(len(self.exceptions[finding]) for finding in FAULTS) + sum(len(r.strays) for r in self.strays)

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
            "exceptions": {f.value: [_plain(r) for r in found] for f, found in self.exceptions.items() if found},
            "strays": [{"program": r.title, **asdict(stray)} for r in self.strays for stray in r.strays],
        }


def _plain(record: Record) -> dict[str, object]:
    """The record as plain data without what is empty; how prefixes were completed is listed apart."""
    data = asdict(record) | {"completions": (), "message": record.message.split("\n")[0]}
    return {name: value for name, value in data.items() if value not in (None, "", ())}


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
