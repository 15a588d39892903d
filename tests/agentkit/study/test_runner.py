"""Runs of a study with a random model: complete, repeatable, resumed without doing anything twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentkit.models import Generation, Message, Model, RandomModel, byte_vocabulary
from agentkit.models.reasoning import ReasoningFormat
from agentkit.modes import Mode
from agentkit.study import Record, read_records, run_model, study_tasks
from agentkit.study.config import StudyConfig
from agentkit.study.runner import Progress
from tests.agentkit.study.study_samples import sample_config

ALL = [mode.value for mode in Mode]


class Steady:
    """A random model whose generations depend on the seed alone, not on what was generated before."""

    name = "steady"
    vocabulary = byte_vocabulary()
    reasoning: ReasoningFormat | None = None

    def session(self) -> Steady:
        """One conversation is like another."""
        return self

    async def generate(self, messages: Sequence[Message], **settings: Any) -> Generation:
        """As a new conversation with a random model."""
        return await RandomModel(7).session().generate(messages, **settings)

    async def aclose(self) -> None:
        """Nothing is kept."""


def run(config: StudyConfig, folder: Path, *, limit_s: float | None = None, stop_after: int | None = None) -> int:
    """Make what is missing; the run is cut off after some attempts where asked."""
    made = 0

    def count(progress: Progress) -> None:
        nonlocal made
        made += 1
        if made == stop_after:
            raise KeyboardInterrupt

    async def main() -> int:
        tasks = study_tasks(config)
        return await run_model(config, "random", Steady, folder, tasks=tasks, limit_s=limit_s, on_record=count)

    return anyio.run(main)


def told(records: list[Record]) -> set[tuple[str, str, str, str, bool]]:
    """What must be equal in two runs: all but the times."""
    return {(one.task, one.mode, one.text, one.outcome, one.passed) for one in records}


def test_every_attempt_is_made_and_no_constrained_one_is_unfinished(tmp_path: Path) -> None:
    config = sample_config(tmp_path, *ALL)
    assert run(config, tmp_path / "r") == 10
    records = read_records(tmp_path / "r")
    assert {(one.task, one.mode) for one in records} == {(t, m) for t in ("number", "predicate") for m in ALL}
    for one in records:
        assert len(one.entropy) == len(one.rejected) == one.tokens
        assert one.covered and one.kind == "validity" and one.error is None
        assert bool(one.reasoning_tokens) == Mode(one.mode).reasons
        if Mode(one.mode).well_typed:
            # The covered grammar and the steered budget promise it, whatever the model prefers.
            assert one.outcome == "satisfied" and one.valid and one.passed


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    config = sample_config(tmp_path)
    run(config, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(config, tmp_path / "parts", stop_after=1)
    assert len(read_records(tmp_path / "parts")) == 1
    assert run(config, tmp_path / "parts") == 3
    assert run(config, tmp_path / "parts") == 0, "nothing is made twice"
    assert told(read_records(tmp_path / "parts")) == told(read_records(tmp_path / "whole"))


def test_no_task_is_begun_when_the_time_is_over(tmp_path: Path) -> None:
    assert run(sample_config(tmp_path), tmp_path / "r", limit_s=0.0) == 0


def test_other_settings_are_attempted_anew(tmp_path: Path) -> None:
    config = sample_config(tmp_path)
    assert run(config, tmp_path / "r") == run(replace(config, max_tokens=23), tmp_path / "r") == 4
    assert len({one.settings for one in read_records(tmp_path / "r")}) == 2


def test_a_finished_study_loads_no_model(tmp_path: Path) -> None:
    config = sample_config(tmp_path)
    run(config, tmp_path / "r")

    def load() -> Model:
        raise AssertionError("nothing is missing")

    async def main() -> int:
        return await run_model(config, "random", load, tmp_path / "r", tasks=study_tasks(config))

    assert anyio.run(main) == 0


def test_what_a_model_cannot_do_is_recorded(tmp_path: Path) -> None:
    config = replace(sample_config(tmp_path, "direct"), max_tokens=1)
    run(config, tmp_path / "r")
    [predicate] = [one for one in read_records(tmp_path / "r") if one.task == "predicate"]
    # One byte is no Bool: the budget is smaller than the distance to any end.
    assert (predicate.outcome, predicate.steering, predicate.passed) == ("live", "too_small", False)
