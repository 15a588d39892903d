"""The corners: how many there are, and that both compilers find some of them right and some wrong."""

from __future__ import annotations

import pytest

from aufbau.validation import Language, Outcome, ProgramSet, corners, find_compiler
from tests.validation.subjects import need_compiler


@pytest.mark.parametrize("language", Language)
def test_there_are_many_and_none_twice(language: Language) -> None:
    found = corners(language)
    assert len(found) >= 60
    assert len({program.name for program in found}) == len({program.text for program in found}) == len(found)
    assert [program.index for program in found] == list(range(len(found)))
    assert all(program.origin is ProgramSet.CORNERS and program.accepted is None for program in found)


@pytest.mark.parametrize("language", Language)
def test_some_are_right_and_some_are_wrong(language: Language) -> None:
    need_compiler(language)
    compiler = find_compiler(language)
    outcomes = [compiler.compile(program.text).outcome for program in corners(language)[::4]]
    assert outcomes.count(Outcome.ACCEPTED) >= 8 and outcomes.count(Outcome.REJECTED) >= 8
    assert Outcome.UNKNOWN not in outcomes
