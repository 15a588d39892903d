"""Worker processes for a run: one task each at a time, ended at once when the run is interrupted.

A pool of `concurrent.futures` was seen to hang on exit after an interruption, and can't say which task killed a worker;
this one has no threads and no shared queue, only a pipe to each worker.
"""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Final, Generic, TypeVar, final

from aufbau.validation.errors import ValidationError
from aufbau.validation.workbench import Task

E = TypeVar("E")
_PATIENCE = 5.0  # seconds for a worker to end before it is killed


@final
class _Worker(Generic[E]):
    """A process and this side's end of its pipe."""

    __slots__ = ("connection", "process", "task")

    def __init__(self, work: Callable[[Task], list[E]]) -> None:
        # Spawned, not forked: the progress display runs a thread, and a fork would copy its locks.
        context = multiprocessing.get_context("spawn")
        self.connection, far = context.Pipe()
        self.process: Final[BaseProcess] = context.Process(target=_serve, args=(work, far), daemon=True)
        self.process.start()
        far.close()  # or the end of the process would not end the pipe
        self.task: Task | None = None

    def give(self, task: Task) -> None:
        """Hand a task out."""
        self.task = task
        try:
            self.connection.send(task)
        except ConnectionError as error:
            raise self._died(task) from error

    def take(self) -> tuple[Task, list[E]]:
        """The task and its records. Raises `ValidationError` when the task failed or the worker died."""
        task, self.task = self.task, None
        assert task is not None, "only a worker with a task answers"
        try:
            found: list[E] | str = self.connection.recv()
        except (EOFError, ConnectionError) as error:
            raise self._died(task) from error
        if isinstance(found, str):
            raise ValidationError(f"{task.key} failed in a worker process:\n{found}")
        return task, found

    @staticmethod
    def _died(task: Task) -> ValidationError:
        return ValidationError(
            f"a worker process died at {task.key} (out of memory?); what was finished is kept: "
            "go on with --resume and fewer --jobs"
        )

    def end(self) -> None:
        """Stop the process, whatever it does."""
        self.process.terminate()
        self.process.join(_PATIENCE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.connection.close()


def in_processes(work: Callable[[Task], list[E]], tasks: Iterator[Task], jobs: int) -> Iterator[tuple[Task, list[E]]]:
    """Carry out tasks in several processes, which `work` is sent to; the finished ones come in any order."""
    workers: list[_Worker[E]] = []
    try:
        for task in tasks:
            if len(workers) < jobs:
                workers.append(_Worker(work))
                workers[-1].give(task)
                continue
            worker = _ready(workers)
            yield worker.take()
            worker.give(task)
        while any(worker.task is not None for worker in workers):
            yield _ready(workers).take()
    finally:
        for worker in workers:
            worker.end()


def _ready(workers: list[_Worker[E]]) -> _Worker[E]:
    """A worker that has answered, or died."""
    busy = {worker.connection: worker for worker in workers if worker.task is not None}
    first = wait(list(busy))[0]
    return next(worker for connection, worker in busy.items() if connection is first)


def _serve(work: Callable[[Task], list[E]], connection: Connection) -> None:
    """A worker's life: it answers tasks until the pipe or the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent alone answers to ctrl-C
    while True:
        try:
            task = connection.recv()
        except (EOFError, ConnectionError):
            return
        try:
            connection.send(work(task))
        except Exception:
            connection.send(traceback.format_exc())  # as text: not every exception can be pickled
