"""Completions of prefixes: where texts are cut, and what is said of each."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from aufbau.validation import Language, completions, find_compiler
from aufbau.validation.compilers import Diagnosis, Outcome
from aufbau.validation.witnesses import cuts
from tests.validation.subjects import need_compiler, oracle


@pytest.mark.parametrize(("size", "count"), [(0, 3), (1, 0), (5, 2), (100, 7), (4, 4), (4, 9)])
def test_cuts(size: int, count: int) -> None:
    found = cuts(size, count, "seed")
    assert found == sorted(set(found)) and len(found) == min(size, count)
    assert all(0 <= place < size for place in found)
    assert found == cuts(size, count, "seed")


class Refusing:
    """A compiler that takes nothing."""

    def compile(self, text: bytes) -> Diagnosis:
        return Diagnosis(outcome=Outcome.REJECTED, offset=0, message=text.decode())

    def compile_all(self, texts: Sequence[bytes]) -> list[Diagnosis]:
        return [self.compile(text) for text in texts]


TEXT = b"let x : int = 1 + true"


def test_each_prefix_gets_its_answer() -> None:
    live, lost = completions(oracle(Language.ML), None, TEXT, [14, len(TEXT)], seconds=20)
    assert (live.at, live.outcome, live.satisfied, live.accepted) == (14, "found", True, None)
    assert (lost.at, lost.outcome, lost.text, lost.satisfied) == (len(TEXT), "none", "", None)
    assert "lost" in lost.message


def test_a_refusal_is_told_with_the_whole_text() -> None:
    (found,) = completions(oracle(Language.ML), Refusing(), TEXT, [14], seconds=20)
    assert found.refused and found.accepted is False
    assert found.message == "let x : int = " + found.text


def test_time_that_is_spent_is_no_answer() -> None:
    (found,) = completions(oracle(Language.ML), Refusing(), TEXT, [14], seconds=1e-6)
    assert (found.outcome, found.text, found.accepted) == ("unknown", "", None)
    assert "OutOfTime" in found.message


@pytest.mark.parametrize("language", Language)
def test_the_compiler_accepts_what_completes_any_prefix(language: Language) -> None:
    need_compiler(language)
    text = {
        Language.ML: b"let x : int = 1 let f : int -> int = fun (y : int) -> x",
        Language.C: b"int f(int x) { int y = x; }",
    }
    places = cuts(len(text[language]), 8, "some")
    found = completions(oracle(language), find_compiler(language), text[language], places, seconds=20)
    assert [completion.accepted for completion in found] == [True] * 8
