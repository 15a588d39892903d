"""The sum over walks: what counts as a fault with and without a proof, and what the page says of it."""

from __future__ import annotations

import pytest

from aufbau.validation.corpora import Language
from aufbau.validation.everywhere import Fate, Stray, Walk
from aufbau.validation.tally import Tally, markdown


def walked(fate: Fate, *, verdict: str = "lost", failure: str = "", index: int = 0) -> Walk:
    """A program of five prefixes, two of which have this fate."""
    strays = (Stray(prefix="ab|", fate=fate.value, prefixes=2, completion="c", message="why\nso"),)
    return Walk(
        origin="valid",
        index=index,
        name="some",
        size=9,
        verdict=None if failure else verdict,
        failure=failure,
        fates={} if failure else {"accepted": 3, fate.value: 2},
        endings=3,
        searches=3,
        compiled=2,
        seconds=1.5,
        strays=() if failure or fate is Fate.ACCEPTED else strays,
    )


def tally(*walks: Walk, covered: bool, tasks: int = 2) -> Tally:
    return Tally.of("core", Language.ML, covered=covered, steps=9, again=99, walks=walks, tasks={"valid": tasks})


# fate of two prefixes, verdict on the program, faults with a proof against dead ends and without
FAULTS = [
    (Fate.REFUSED, "satisfied", 2, 2),
    (Fate.OVERRULED, "lost", 2, 2),
    (Fate.UNKNOWN, "satisfied", 2, 0),
    (Fate.UNASKED, "satisfied", 2, 0),
    (Fate.DENIED, "lost", 2, 0),
    (Fate.DENIED, "satisfied", 2, 2),  # the program itself is a completion
]


@pytest.mark.parametrize(("fate", "verdict", "proved", "unproved"), FAULTS)
def test_faults(fate: Fate, verdict: str, proved: int, unproved: int) -> None:
    walk = walked(fate, verdict=verdict)
    assert tally(walk, covered=True).faults == proved
    assert tally(walk, covered=False).faults == unproved


def test_a_program_that_was_given_up_is_a_fault() -> None:
    found = tally(walked(Fate.ACCEPTED, failure="OutOfTime: | long"), covered=False)
    assert found.faults == 1 and found.groups[0].whole.count == 0
    assert "OutOfTime: \\| long" in markdown(found)


def test_a_stray_of_several_programs_is_told_once() -> None:
    found = tally(walked(Fate.UNKNOWN), walked(Fate.UNKNOWN, index=1), covered=False)
    assert [(stray.prefix, programs) for stray, programs in found.strays] == [("ab|", 2)]
    page = markdown(found)
    assert "| ab\\| | c | why | 2 |" in page and "## Prefixes: none found (1)" in page
    assert "drawn at random" not in page and "  - none found: 4" in page
