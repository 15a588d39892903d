"""The figures of an evaluation: pass rates with intervals, and failures grouped by kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentkit.evals.plan import EvalPlan
from agentkit.evals.records import EvalRecord
from aufbau.validation.statistics import Share
from episodes.evaluation import grouped_failures, share, shares_by_episode


@dataclass(frozen=True, kw_only=True, slots=True)
class EvalRow:
    """One model in one mode."""

    model: str
    mode: str
    records: tuple[EvalRecord, ...]

    @property
    def passed(self) -> Share:
        """Attempts that passed."""
        return share(self.records)

    @property
    def well_typed(self) -> Share:
        """Turns whose text was a well-typed step."""
        turns, refused = sum(one.turns for one in self.records), sum(one.refused for one in self.records)
        return Share(count=turns - refused, total=turns)

    @property
    def failures(self) -> Mapping[str, tuple[EvalRecord, ...]]:
        """Attempts that did not pass, by the group of their failure, the largest group first."""
        return grouped_failures(self.records)

    @property
    def by_episode(self) -> Mapping[str, Share]:
        """The attempts that passed of each episode."""
        return shares_by_episode(self.records)

    def mean(self, figure: str) -> float:
        """The mean of a figure over the attempts."""
        return float(sum(getattr(record, figure) for record in self.records)) / len(self.records)

    def to_data(self) -> dict[str, object]:
        """The row as JSON-able data."""
        return {
            "model": self.model,
            "mode": self.mode,
            "passed": self.passed.to_json(),
            "well_typed": self.well_typed.to_json(),
            "mean": {name: self.mean(name) for name in ("turns", "tokens", "seconds", "model_s", "oracle_s")},
            "episodes": {name: one.to_json() for name, one in self.by_episode.items()},
            "failures": [
                {
                    "group": group,
                    "count": len(records),
                    "episodes": sorted({record.episode for record in records}),
                    "message": records[0].message,
                }
                for group, records in self.failures.items()
            ],
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class EvalReport:
    """A whole evaluation."""

    plan: EvalPlan
    rows: tuple[EvalRow, ...]

    @classmethod
    def of(cls, plan: EvalPlan, records: Sequence[EvalRecord]) -> EvalReport:
        """The report on the records of a plan."""
        rows = (
            EvalRow(
                model=model,
                mode=mode.value,
                records=tuple(one for one in records if (one.model, one.mode) == (model, mode.value)),
            )
            for model in plan.models
            for mode in plan.modes
        )
        return cls(plan=plan, rows=tuple(row for row in rows if row.records))

    def to_data(self) -> dict[str, object]:
        """The report as JSON-able data."""
        return {
            "suite": self.plan.suite,
            "attempts": sum(len(row.records) for row in self.rows),
            "planned": self.plan.size,
            "repeat": self.plan.repeat,
            "settings": self.plan.settings.to_data(),
            "rows": [row.to_data() for row in self.rows],
        }
