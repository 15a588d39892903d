"""Findings, and the journal that a run is taken up from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from aufbau.validation import Completion, Finding, Journal, Manifest, Record, ResumeError

MANIFEST = Manifest(language="ml", grammar="0", corpus="")
PLAIN = Record(
    origin="valid", index=0, name="a", size=9, accepted=True, verdict="satisfied", twin="satisfied", seconds=0.1
)

# origin, variant, accepted, verdict, lost at, twin, twin lost at, diagnostic, what is found
FINDINGS = [
    ("valid", "", True, "satisfied", None, "satisfied", None, None, Finding.AGREES),
    ("valid", "", True, "lost", 3, "satisfied", None, None, Finding.FALSE_PRUNE),
    ("valid", "", True, "lost", 3, "lost", 3, None, Finding.UNREAD),
    ("valid", "", True, "live", None, "satisfied", None, None, Finding.REFUSED),
    ("valid", "", True, "live", None, "live", None, None, Finding.UNREAD),
    ("recursion", "", True, "lost", 3, "lost", 3, None, Finding.UNREAD),
    ("beyond_valid", "", True, "lost", 3, "lost", 7, None, Finding.OUTSIDE),
    ("beyond_valid", "", True, "lost", 3, "satisfied", None, None, Finding.FALSE_PRUNE),
    ("generated", "shadowing", True, "lost", 3, "lost", 3, None, Finding.OUTSIDE),
    ("generated", "shadowing", True, "lost", 3, "satisfied", None, None, Finding.FALSE_PRUNE),
    ("invalid", "", False, "satisfied", None, "satisfied", None, 4, Finding.UNSOUND),
    ("invalid", "", False, "lost", 3, "satisfied", None, 4, Finding.AGREES),
    ("invalid", "", False, "lost", 5, "lost", 5, 4, Finding.AGREES),
    ("invalid", "", False, "lost", 3, "lost", 3, 4, Finding.OUTSIDE),
    ("invalid", "", False, "live", None, "satisfied", None, 4, Finding.OPEN),
    ("invalid", "", False, None, None, "satisfied", None, 4, Finding.UNJUDGED),
    ("generated", "", None, "satisfied", None, "satisfied", None, None, Finding.UNJUDGED),
]


@pytest.mark.parametrize("case", FINDINGS)
def test_findings(case: tuple[object, ...]) -> None:
    names = ("origin", "variant", "accepted", "verdict", "lost_at", "twin", "twin_lost_at", "diagnostic")
    changed = dict(zip(names, case[:-1], strict=True))
    record = Record.from_line(json.dumps(json.loads(PLAIN.to_line()) | changed))
    assert record.finding is case[-1]


def test_a_failure_is_no_judgement() -> None:
    assert replace(PLAIN, failure="LimitError: …").finding is Finding.UNJUDGED


# outcome, the oracle's word on the whole, the compiler's, whether a rejected text is completable, faults at a prefix
COMPLETIONS = [
    ("found", True, True, True, 0),
    ("found", True, None, True, 0),
    ("found", True, False, False, 1),
    ("found", False, True, False, 1),
    ("none", None, None, False, 1),
    ("unknown", None, None, False, 0),
]


@pytest.mark.parametrize(("outcome", "satisfied", "accepted", "completable", "faults"), COMPLETIONS)
def test_completions(
    outcome: str, satisfied: bool | None, accepted: bool | None, completable: bool, faults: int
) -> None:
    completion = Completion(at=3, outcome=outcome, satisfied=satisfied, accepted=accepted)
    rejected = replace(PLAIN, accepted=False, verdict="live", ending=completion)
    assert (rejected.completable, rejected.finding, rejected.faults) == (completable, Finding.OPEN, 0)
    assert replace(PLAIN, completions=(completion,)).faults == faults


def test_records_come_back(tmp_path: Path) -> None:
    first = Journal(tmp_path, MANIFEST, Record.from_line, resume=False)
    ending = Completion(at=9, outcome="found", text=";", satisfied=True, accepted=False)
    more = replace(PLAIN, variant="x", features=("ä",), ending=ending, completions=(ending, replace(ending, at=1)))
    first.add("valid/0", [PLAIN, more])
    first.add("valid/1", [])
    first.close()
    second = Journal(tmp_path, MANIFEST, Record.from_line, resume=True)
    second.close()
    assert second.records == first.records
    assert second.done == {"valid/0", "valid/1"}


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_run_cut_off_anywhere_loses_only_the_last_task(tmp_path: Path, cut: int) -> None:
    journal = Journal(tmp_path, MANIFEST, Record.from_line, resume=False)
    journal.add("valid/0", [PLAIN])
    journal.add("valid/1", [replace(PLAIN, index=1)])
    journal.close()
    path = tmp_path / Journal.RECORDS
    path.write_bytes(path.read_bytes()[:-cut])
    again = Journal(tmp_path, MANIFEST, Record.from_line, resume=True)
    assert again.done == {"valid/0"} and again.records == [PLAIN]
    again.add("valid/1", [replace(PLAIN, index=1)])
    again.close()
    whole = Journal(tmp_path, MANIFEST, Record.from_line, resume=True)
    whole.close()
    assert whole.records == journal.records


def test_runs_do_not_mix(tmp_path: Path) -> None:
    Journal(tmp_path, MANIFEST, Record.from_line, resume=False).close()
    with pytest.raises(ResumeError, match="--resume"):
        Journal(tmp_path, MANIFEST, Record.from_line, resume=False)
    with pytest.raises(ResumeError, match="another grammar"):
        Journal(tmp_path, replace(MANIFEST, grammar="1"), Record.from_line, resume=True)
    (tmp_path / Journal.RECORDS).write_text('{"no": "record"}\n')
    with pytest.raises(ResumeError, match="not a record"):
        Journal(tmp_path, MANIFEST, Record.from_line, resume=True)
