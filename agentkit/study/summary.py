"""Sums up records: rates, paired differences, outcomes, uncertainty, cost; nothing but records is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import log, nan
from statistics import median

from agentkit.modes import Mode
from agentkit.study.errors import RecordError
from agentkit.study.records import Record
from agentkit.study.statistics import Paired, Share
from agentkit.synthesis import GradeKind

# The order of languages in tables; `Record.family` has these.
FAMILIES = ("stlc", "fun", "ml", "c", "tool")
# The modes whose block obeys the typed oracle.
CONSTRAINED = (Mode.DIRECT.value, Mode.MIXED.value)
# The name of the group that holds every model.
ALL = "all models"
MODES = tuple(mode.value for mode in Mode)


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """What is never added up: attempts of one model at one language under one meaning of passing."""

    model: str
    family: str
    kind: str

    @property
    def name(self) -> str:
        """The language with what a pass says."""
        return f"{self.family}, {self.kind}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """How many attempts of a mode passed, were valid, and were satisfied."""

    group: Group
    mode: str
    passed: Share
    # A compiler or an independent checker accepts the program at the required type; an episode returned a value.
    valid: Share
    # Passed and SATISFIED: what the paper counts, which asks the oracle too.
    both: Share


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """Two modes on the same tasks."""

    group: Group
    first: str
    second: str
    # What is compared: "passed" or "valid".
    of: str
    paired: Paired


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcomes:
    """The final states of a mode's attempts, as in the paper's figure 5."""

    model: str
    mode: str
    passed: int
    failed: int
    # The oracle's verdict is LIVE, or LOST; some of these pass by means that the grammar lacks.
    live: int
    lost: int
    passed_outside: int

    @property
    def total(self) -> int:
        """All attempts."""
        return self.passed + self.failed + self.live + self.lost


@dataclass(frozen=True, kw_only=True, slots=True)
class Uncertainty:
    """Entropy before the mask, where the model's first choice was admitted and where it was refused, in bits."""

    model: str
    mode: str
    accepted: int
    rejected: int
    # Means; not a number where there is no such token.
    accepted_bits: float
    rejected_bits: float
    # Candidates refused, over all tokens.
    retries: int

    @property
    def share(self) -> float:
        """Tokens whose first choice was refused, of all."""
        total = self.accepted + self.rejected
        return self.rejected / total if total else nan


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What attempts of a mode cost on average."""

    model: str
    mode: str
    attempts: int
    # Tokens of the answer, of the reasoning before it, and those that were given up again.
    tokens: float
    reasoning: float
    taken_back: float
    model_s: float
    oracle_s: float
    grading_s: float
    # Of single attempts, so that a few long searches don't decide it.
    median_overhead: float
    # Tokens that the budget chose, and attempts in which it chose any.
    steered: int
    steered_attempts: int

    @property
    def overhead(self) -> float:
        """Time of the oracle over time of the model."""
        return self.oracle_s / self.model_s if self.model_s else nan

    @property
    def generated(self) -> float:
        """Tokens that the model made for an attempt, on average."""
        return self.tokens + self.reasoning + self.taken_back


@dataclass(frozen=True, kw_only=True, slots=True)
class Promise:
    """Masked attempts on grammars without dead ends: none may end LIVE or LOST."""

    model: str
    mode: str
    attempts: int
    unfinished: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """All figures of a study's report that come from records."""

    models: tuple[str, ...]
    modes: tuple[str, ...]
    families: tuple[str, ...]
    attempts: int
    # Tasks of each model that were attempted in every mode, and attempts that the model could not make.
    tasks: dict[str, int]
    errors: tuple[str, ...]
    # Records of other settings, which are left out.
    others: int
    rates: tuple[Rate, ...]
    differences: tuple[Difference, ...]
    outcomes: tuple[Outcomes, ...]
    uncertainty: tuple[Uncertainty, ...]
    costs: tuple[Cost, ...]
    promises: tuple[Promise, ...]

    @classmethod
    def of(cls, records: Sequence[Record]) -> Summary:
        """Sum up the records of one study. Raises `RecordError` where there is none."""
        if not records:
            raise RecordError("there is no record to report on; make some with: agentkit study run CONFIG.toml")
        counted = Counter(record.settings for record in records)
        settings = counted.most_common(1)[0][0]
        kept = [record for record in records if record.settings == settings]
        models = tuple(dict.fromkeys(record.model for record in kept))
        modes = tuple(mode for mode in MODES if any(record.mode == mode for record in kept))
        cells = [(model, mode) for model in models for mode in modes]
        by_cell = {cell: [record for record in kept if (record.model, record.mode) == cell] for cell in cells}
        return cls(
            models=models,
            modes=modes,
            families=tuple(family for family in FAMILIES if any(record.family == family for record in kept)),
            attempts=len(kept),
            tasks={model: _whole_tasks(kept, model, modes) for model in models},
            errors=tuple(f"{one.model}, {one.suite}/{one.task}, {one.mode}: {one.error}" for one in kept if one.error),
            others=len(records) - len(kept),
            rates=tuple(_rates(kept, models, modes)),
            differences=tuple(_differences(kept, models, modes)),
            outcomes=tuple(_outcomes(*cell, by_cell[cell]) for cell in cells if by_cell[cell]),
            uncertainty=tuple(
                _uncertainty(*cell, by_cell[cell])
                for cell in cells
                if by_cell[cell] and cell[1] in (*CONSTRAINED, Mode.SYNTACTIC.value)
            ),
            costs=tuple(_cost(*cell, by_cell[cell]) for cell in cells if by_cell[cell]),
            promises=tuple(_promises(by_cell)),
        )


def groups(records: Iterable[Record], models: Sequence[str]) -> list[Group]:
    """The groups that have records, in the order of tables."""
    found = {(record.model, record.family, record.kind) for record in records}
    return [
        Group(model=model, family=family, kind=kind.value)
        for family in FAMILIES
        for kind in GradeKind
        for model in models
        if (model, family, kind.value) in found
    ]


def _pooled(records: Iterable[Record], models: Sequence[str]) -> list[Group]:
    """The same groups over all models, where there are several."""
    found = dict.fromkeys((group.family, group.kind) for group in groups(records, models))
    return [Group(model=ALL, family=family, kind=kind) for family, kind in found] if len(models) > 1 else []


def _in(group: Group, record: Record) -> bool:
    return (record.family, record.kind) == (group.family, group.kind) and group.model in (ALL, record.model)


def _share(records: Sequence[Record], is_so: Callable[[Record], bool]) -> Share:
    return Share(count=sum(map(is_so, records)), total=len(records))


def _rates(records: Sequence[Record], models: Sequence[str], modes: Sequence[str]) -> Iterator[Rate]:
    for group in groups(records, models):
        for mode in modes:
            own = [record for record in records if _in(group, record) and record.mode == mode]
            if own:
                yield Rate(
                    group=group,
                    mode=mode,
                    passed=_share(own, lambda one: one.passed),
                    valid=_share(own, lambda one: one.valid),
                    both=_share(own, lambda one: one.passed and one.outcome == "satisfied"),
                )


# What is compared with what; the first pair is the paper's ablation.
PAIRS = (
    (Mode.DIRECT, Mode.SYNTACTIC),
    (Mode.DIRECT, Mode.UNCONSTRAINED),
    (Mode.MIXED, Mode.THINKING),
    (Mode.MIXED, Mode.DIRECT),
)


def _differences(records: Sequence[Record], models: Sequence[str], modes: Sequence[str]) -> Iterator[Difference]:
    for one, two in PAIRS:
        if one.value not in modes or two.value not in modes:
            continue
        for group in [*groups(records, models), *_pooled(records, models)]:
            own = [record for record in records if _in(group, record)]
            for of in ("passed",) if group.kind == GradeKind.VALIDITY.value else ("passed", "valid"):
                pairs = list(_matched(own, one.value, two.value, of))
                if pairs:
                    yield Difference(group=group, first=one.value, second=two.value, of=of, paired=Paired.of(pairs))


def _matched(records: Sequence[Record], first: str, second: str, of: str) -> Iterator[tuple[bool, bool]]:
    """The outcomes of tasks that were attempted both ways under the same seed."""
    by_mode: dict[str, dict[tuple[str, str, str, str, int], bool]] = {first: {}, second: {}}
    for record in records:
        if record.mode in by_mode:
            key = (record.model, record.suite, record.task, record.task_digest, record.seed)
            by_mode[record.mode][key] = record.passed if of == "passed" else record.valid
    for key, one in by_mode[first].items():
        if key in by_mode[second]:
            yield one, by_mode[second][key]


def _outcomes(model: str, mode: str, records: Sequence[Record]) -> Outcomes:
    satisfied = [record for record in records if record.outcome == "satisfied"]
    rest = [record for record in records if record.outcome != "satisfied"]
    passed = sum(record.passed for record in satisfied)
    return Outcomes(
        model=model,
        mode=mode,
        passed=passed,
        failed=len(satisfied) - passed,
        live=sum(record.outcome == "live" for record in rest),
        lost=sum(record.outcome == "lost" for record in rest),
        passed_outside=sum(record.passed for record in rest),
    )


def _uncertainty(model: str, mode: str, records: Sequence[Record]) -> Uncertainty:
    accepted: list[float] = []
    rejected: list[float] = []
    for record in records:
        for entropy, refused in zip(record.entropy, record.rejected, strict=True):
            (rejected if refused else accepted).append(entropy / log(2))
    return Uncertainty(
        model=model,
        mode=mode,
        accepted=len(accepted),
        rejected=len(rejected),
        accepted_bits=_mean(accepted),
        rejected_bits=_mean(rejected),
        retries=sum(sum(record.rejected) for record in records),
    )


def _cost(model: str, mode: str, records: Sequence[Record]) -> Cost:
    return Cost(
        model=model,
        mode=mode,
        attempts=len(records),
        tokens=_mean([record.tokens for record in records]),
        reasoning=_mean([record.reasoning_tokens for record in records]),
        taken_back=_mean([record.taken_back for record in records]),
        model_s=sum(record.model_s for record in records),
        oracle_s=sum(record.oracle_s for record in records),
        grading_s=sum(record.grading_s for record in records),
        median_overhead=median([one.oracle_s / one.model_s for one in records if one.model_s] or [nan]),
        steered=sum(record.steered for record in records),
        steered_attempts=sum(record.steered > 0 for record in records),
    )


def _promises(by_cell: dict[tuple[str, str], list[Record]]) -> Iterator[Promise]:
    for (model, mode), records in by_cell.items():
        covered = [record for record in records if record.covered]
        if covered and mode in CONSTRAINED:
            yield Promise(
                model=model,
                mode=mode,
                attempts=len(covered),
                unfinished=sum(record.outcome != "satisfied" for record in covered),
            )


def _whole_tasks(records: Sequence[Record], model: str, modes: Sequence[str]) -> int:
    """Tasks of a model under a seed that every mode has a record of."""
    counted = Counter((one.suite, one.task, one.task_digest, one.seed) for one in records if one.model == model)
    return sum(count == len(modes) for count in counted.values())


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else nan
