"""The witness harness: every case of every registry holds in every dialect, and there are cases of every kind."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from aufbau.witness import Outcome
from dialects import DIALECTS, by_name
from dialects.command import PAPER_CASES, main
from dialects.harness import Position, cases, judge
from registry import builtin
from tests.dialects.generate import registries


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_case_of_the_built_in_tools_holds(dialect: str, nested: bool) -> None:
    with builtin() as tools:
        lowered = by_name(dialect).lower(tools, nested=nested)
        judged = [judge(lowered, case) for case in cases(lowered)]
    assert [one.case for one in judged if not one.holds] == []
    assert {one.search for one in judged} == {Outcome.FOUND}
    found = Counter(one.case.position for one in judged)
    absent = {Position.FIELD, Position.DEMANDED} | (set() if nested else {Position.CALL})
    assert set(found) == set(Position) - absent
    assert found[Position.OPENED] == found[Position.KEYWORD] == found[Position.GIVEN] == len(tools)
    assert len(judged) * len(DIALECTS) > PAPER_CASES
    # Documents have no literal: with nothing bound, summarize and count can't be opened, nor documents returned.
    needy = {one.case.owner for one in judged if one.needed and one.case.position in (Position.OPENED, Position.RETURN)}
    assert needy == (set() if nested else {"summarize", "count", "docs"})


@pytest.mark.parametrize("nested", [False, True])
@given(data=st.data())
@settings(
    max_examples=3,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
def test_every_case_holds(nested: bool, data: st.DataObject) -> None:
    registry = data.draw(registries())
    lowered = by_name(data.draw(st.sampled_from(sorted(DIALECTS)))).lower(registry, nested=nested)
    judged = [judge(lowered, case) for case in cases(lowered)]
    assert [one.case for one in judged if not one.holds] == []
    demanded = Counter((one.case.owner, one.case.part) for one in judged if one.case.position is Position.KEYWORD)
    assert demanded == {(made.name, part.name): 1 for made in registry.values() for part in made.parameters}


def test_a_wrong_witness_does_not_hold() -> None:
    with builtin() as tools:
        lowered = by_name("c").lower(tools)
        case = next(case for case in cases(lowered) if case.position is Position.OPENED)
        assert not judge(lowered, dataclasses.replace(case, witness="3);")).holds
        assert not judge(lowered, dataclasses.replace(case, prefix="let fresh = fetch(")).holds


def test_the_command_counts_and_tells_what_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["harness", "registry:builtin", "--cases"]) == 0
    out = capsys.readouterr().out
    assert "| all | 29/29 | 29/29 | 29/29 |" in out and "87 cases" in out
    assert len(re.findall("^holds: ", out, re.MULTILINE)) == 87


@pytest.mark.parametrize(
    ("tools", "said"), [("odd", "module:attribute"), ("no_such:tools", "No module"), ("sys:path", "is a list")]
)
def test_wrong_tools_are_told_in_one_line(tools: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["harness", tools]) == 2
    told = capsys.readouterr().err
    assert said in told and told.count("\n") == 1
