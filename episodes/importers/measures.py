"""What the command measures of a suite, as JSON-able records: counts, gold programs, corruptions and variations."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dialects import LoweredDialect, by_name
from episodes.importers.base import Case, Importer, Inexpressible
from episodes.importers.corruptions import Corruption, Refused, Variation, Varied, corrupt, places, vary
from episodes.importers.gold import Accepted, Lowerings, accept

Record = dict[str, Any]


def counts(importer: Importer, tasks: Sequence[Case | Inexpressible]) -> Record:
    """How many tasks there are, how many can be expressed, and why the others can't."""
    cases = [task for task in tasks if isinstance(task, Case)]
    others = [task for task in tasks if isinstance(task, Inexpressible)]
    tools = {tool for case in cases for tool in case.registry}
    return {
        "tasks": len(tasks),
        "expressible": len(cases),
        "programs": sum(len(case.programs) for case in cases),
        "steps": sum(len(program.steps) for case in cases for program in case.programs),
        "bridging_steps": sum(case.added for case in cases),
        "tools": len(tools),
        "most_tools_in_a_task": max((len(case.registry) for case in cases), default=0),
        "reasons": dict(sorted(Counter(str(task.reason) for task in others).items())),
        "inexpressible": {task.name: str(task.reason) for task in others},
        "notes": dict(sorted(importer.notes.items())),
    }


def executed(cases: Iterable[Case]) -> Record:
    """How the suite's own grader judges our execution of the gold programs, next to its own execution of its own."""
    passed, own, differing, failing = 0, 0, {}, {}
    for case in cases:
        ours, theirs = case.execute(case.programs), case.baseline()
        passed, own = passed + ours.passed, own + theirs.passed
        if ours.passed != theirs.passed:
            differing[case.name] = ours.why or "passes here only"
        elif not ours.passed:
            failing[case.name] = "the suite's own run of its gold fails its own grader too"
    return {"passed": passed, "passed_in_the_suite_itself": own, "differing": differing, "failing_in_both": failing}


@dataclass(slots=True)
class Dialectal:
    """What one dialect makes of a suite's cases, added up case by case."""

    dialect: str
    steps: int = 1  # of each case, to corrupt and vary
    seed: int = 0
    texts: list[tuple[str, Accepted]] = field(default_factory=list)
    wrong: list[Refused] = field(default_factory=list)
    other: list[Varied] = field(default_factory=list)

    def measure(self, cases: Iterable[Case], *, accepting: bool, corrupting: bool) -> None:
        """Feed each case's gold programs, and corrupt and vary some of its steps."""
        lowerings = Lowerings(by_name(self.dialect))
        for case in cases:
            lowered = lowerings.of(case)
            if accepting:
                self.texts += [(f"{case.name}#{turn}", found) for turn, found in enumerate(accept(case, lowered))]
            if corrupting:
                self._disturb(case, lowered)

    def _disturb(self, case: Case, lowered: LoweredDialect) -> None:
        found = list(places(case, lowered))
        chance = random.Random(f"{self.seed} {case.name}")  # the same steps in every dialect
        for place in chance.sample(found, min(self.steps, len(found))):
            self.wrong += corrupt(place, chance)
            self.other += vary(place, chance)

    def gold(self) -> Record:
        """How many gold programs are accepted at every byte, with the types that their tools state."""
        return {
            "tasks": len({name.partition("#")[0] for name, _ in self.texts}),
            "programs": len(self.texts),
            "accepted": sum(not found.fault for _, found in self.texts),
            "bytes": sum(len(found.text.encode()) for _, found in self.texts),
            "faults": {name: found.fault for name, found in self.texts if found.fault},
        }

    def corruptions(self) -> Record:
        """How many corruptions of each kind are refused, and how soon."""
        return {str(kind): _refusals([wrong for wrong in self.wrong if wrong.kind is kind]) for kind in Corruption}

    def variations(self) -> Record:
        """How many variations of each kind are accepted."""
        found = {kind: [other.accepted for other in self.other if other.kind is kind] for kind in Variation}
        return {str(kind): {"made": len(made), "accepted": sum(made)} for kind, made in found.items()}


def _refusals(found: Sequence[Refused]) -> Record:
    distances = sorted(wrong.distance for wrong in found if wrong.distance is not None)
    return {
        "made": len(found),
        "refused": sum(wrong.refused for wrong in found),
        "mean_bytes_to_lost": round(sum(distances) / len(distances), 2) if distances else None,
        "median_bytes_to_lost": distances[len(distances) // 2] if distances else None,
    }
