"""The example episodes: each one's reference program is well typed, runs on the real tools, and passes its grader."""

from __future__ import annotations

from pathlib import Path

import pytest

from aufbau import Verdict
from dialects import CLikeDialect, Program, Return, Root
from episodes import Bound, Environment, Episode, Returned, Suite, execute_step
from registry import builtin

FOLDER = Path(__file__).parents[2] / "examples" / "episodes"
FILES = sorted(FOLDER.glob("*.toml"))


def read_reference(episode: Episode) -> Program:
    """The reference program, read through the oracle."""
    assert episode.registry is not None
    tools = episode.registry_for(episode.registry)
    extra = [*episode.bindings.types().values(), *([episode.output_type] if episode.output_type else [])]
    lowered = CLikeDialect().lower(tools, types=extra)
    prefix = lowered.start(episode.bindings.types(), episode.output_type, Root.PROGRAM).feed(episode.reference.strip())
    tree = prefix.tree()
    assert prefix.verdict is Verdict.SATISFIED and tree is not None, str(prefix.explain())
    return lowered.read_program(tree)


def test_there_are_enough_and_some_are_long() -> None:
    suite = Suite.load(FOLDER)
    programs = [read_reference(episode) for episode in suite]
    assert len(suite) >= 8
    assert sum(len(program.steps) > 2 for program in programs) >= 3
    assert any(not episode.reference.isascii() for episode in suite)


@pytest.mark.anyio
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
async def test_the_reference_reaches_the_expected_value(path: Path) -> None:
    with builtin() as tools:
        episode = Episode.from_toml(path, tools)
        assert episode.output_type is not None, "an example says what it returns"
        bindings = episode.bindings
        for step in read_reference(episode).steps:
            outcome = await execute_step(
                step, bindings, episode.registry_for(tools), output_type=episode.output_type, timeout=10
            )
            if isinstance(outcome, Bound):
                bindings = bindings.bind(outcome.binding)
        assert isinstance(step, Return) and isinstance(outcome, Returned)
        grade = episode.grade(outcome.value, Environment(before=episode.bindings, after=bindings))
        assert grade is not None and grade.passed, grade
        wrong = episode.grade(0 if outcome.value != 0 else 1, Environment())
        assert wrong is not None and not wrong.passed, "the grader passes anything"
