"""The benchmark of large registries measures steps that the dialects accept."""

from __future__ import annotations

from aufbau import Verdict
from benchmarks.tools import bindings, made_up, steps
from dialects import DIALECTS


def test_its_steps_are_accepted_and_its_tools_are_always_the_same() -> None:
    tools = made_up(12, seed=3)
    assert [str(made) for made in made_up(12, seed=3).values()] == [str(made) for made in tools.values()]
    for dialect in DIALECTS.values():
        lowered = dialect.lower(tools)
        context = bindings(lowered, 20)
        assert len(context) == 20
        for text in steps(lowered, context, 6, seed=1):
            assert lowered.start(context).feed(text).verdict is Verdict.SATISFIED, text
