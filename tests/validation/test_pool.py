"""Worker processes: every task once, failures and deaths told by their task, nothing left running."""

from __future__ import annotations

import multiprocessing
from functools import partial

import pytest

from aufbau.validation import Language, Program, ProgramSet, Settings, Task, ValidationError
from aufbau.validation.pool import _Worker, in_processes
from aufbau.validation.workbench import carry_out
from tests.validation.subjects import FILES

WORK = partial(carry_out, Settings(language=Language.ML, grammar=str(FILES[Language.ML])))


def task(index: int) -> Task:
    """A program whose verdict is on record."""
    text = f"let x : int = {index}".encode()
    program = Program(origin=ProgramSet.VALID, index=index, name=str(index), text=text, accepted=True)
    return Task(origin=ProgramSet.VALID, index=index, program=program)


def test_every_task_is_done_once_and_the_workers_end() -> None:
    tasks = [task(index) for index in range(7)]
    found = list(in_processes(WORK, iter(tasks), 2))
    assert sorted(done.index for done, _ in found) == list(range(7))
    assert all([record.index for record in records] == [done.index] for done, records in found)
    assert not multiprocessing.active_children()


def test_leaving_early_ends_the_workers() -> None:
    running = in_processes(WORK, (task(index) for index in range(1000)), 2)
    next(running)
    running.close()  # type: ignore[attr-defined]
    assert not multiprocessing.active_children()


def test_a_failure_tells_its_task() -> None:
    wrong = Settings(language=Language.ML, grammar="nonsense")
    with pytest.raises(ValidationError, match=r"valid/3 failed(.|\n)*there is no grammar 'nonsense'"):
        list(in_processes(partial(carry_out, wrong), iter([task(3)]), 1))
    assert not multiprocessing.active_children()


def test_a_death_tells_its_task() -> None:
    worker = _Worker(WORK)
    try:
        worker.process.kill()
        worker.process.join()
        with pytest.raises(ValidationError, match=r"died at valid/5 .*--resume"):
            worker.give(task(5))
            worker.take()
    finally:
        worker.end()
