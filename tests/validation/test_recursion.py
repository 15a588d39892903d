"""The recursion probe: its size, its names, and that the compiler takes some of every shape and refuses every fault."""

from __future__ import annotations

import pytest

from aufbau.validation import Language, Outcome, find_compiler, probes
from tests.validation.subjects import need_compiler

PROBES = list(probes())
# what stands in a probe's name, and the compiler's word on it (of the first shape)
WORDS = {
    "factorial/right/parameters/top": Outcome.ACCEPTED,
    "factorial/right/functions/local": Outcome.ACCEPTED,
    "factorial/right/without rec/top": Outcome.REJECTED,
    "append/too few arguments/parameters/top": Outcome.REJECTED,
    "split/too many arguments/functions/top": Outcome.REJECTED,
    "power/argument of another type/parameters/top": Outcome.REJECTED,
    "every/result compared/parameters/top": Outcome.ACCEPTED,
    "factorial/earlier function without rec": Outcome.ACCEPTED,
    "length/earlier value without rec": Outcome.REJECTED,
    "even/used before its definition": Outcome.REJECTED,
    "even/called by a later function": Outcome.ACCEPTED,
    "split/local and out of scope": Outcome.REJECTED,
}


def test_there_are_enough_and_all_differ() -> None:
    assert len(PROBES) >= 200
    assert len({probe.name for probe in PROBES}) == len({probe.text for probe in PROBES}) == len(PROBES)


@pytest.mark.parametrize(("name", "outcome"), WORDS.items())
def test_the_compiler_on_probes(name: str, outcome: Outcome) -> None:
    need_compiler(Language.ML)
    (probe,) = (probe for probe in PROBES if probe.name == name)
    found = find_compiler(Language.ML).compile(probe.text.encode())
    assert found.outcome is outcome, f"{probe.text}\n{found.message}"
