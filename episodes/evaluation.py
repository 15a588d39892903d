"""Attempts at episodes, several at once: none disturbs another, and failures are told apart by kind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum
from time import perf_counter
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

import anyio
from anyio.abc import TaskGroup

from episodes.grading import Grade
from episodes.plain import plain
from episodes.spec import Episode
from episodes.transcript import Transcript

if TYPE_CHECKING:
    from aufbau.validation.statistics import Share

Job = TypeVar("Job")


@runtime_checkable
class Ran(Protocol):
    """What is read of a run's result; `agentkit.RunResult` has it."""

    @property
    def output(self) -> object:
        """What was returned."""
        ...

    @property
    def grade(self) -> Grade | None:
        """The grader's judgement; None where there is no grader, or no output."""
        ...

    @property
    def transcript(self) -> Transcript:
        """The turns."""
        ...


class Runner(Protocol):
    """What attempts episodes; `agentkit.Agent` does."""

    async def run(self, episode: Episode, /) -> Ran:
        """The result of a run that ended well; others raise, with the result so far as `.result` where there is one."""
        ...


class FailureKind(Enum):
    """Why an attempt did not pass."""

    WRONG_OUTPUT = "wrong output"
    """It returned, and the grader was not content."""

    LIMIT = "limit"
    """A limit ended it; the failure's name is the limit."""

    REFUSED_STEPS = "refused steps"
    """A limit ended it when its last text was no well-typed step; the failure's name is the limit."""

    DEFERRED = "deferred"
    """A call waits for approval, so the run may still pass; the failure's name is the tool."""

    ERROR = "error"
    """Anything else was raised; the failure's name is the class of the error."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """One failure: its kind, the name within it, and what was said."""

    kind: FailureKind
    name: str
    message: str

    @property
    def group(self) -> str:
        """What failures of the same sort have in common."""
        return self.kind.value if not self.name else f"{self.kind.value}: {self.name}"


class Attempted(Protocol):
    """What figures are worked out from: an `Attempt`, or a record of one."""

    @property
    def episode(self) -> str:
        """The episode's name."""
        ...

    @property
    def failure(self) -> Failure | None:
        """Why it did not pass."""
        ...


Some = TypeVar("Some", bound=Attempted)


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """One run of an episode, however it ended."""

    episode: str
    number: int = 0
    """Which of several attempts at the episode it is, counted from 0."""

    failure: Failure | None
    """None: it passed, which without a grader means that it returned."""

    output: object = None
    """What was returned, as plain data."""

    turns: int = 0
    refused: int = 0
    """Turns whose text was no well-typed step."""

    seconds: float
    result: Ran | None = None
    """Of the run, as far as it came."""

    error: Exception | None = None
    """What ended it before its time."""

    @property
    def passed(self) -> bool:
        """Returned, and judged well by the grader where there is one."""
        return self.failure is None

    def to_data(self) -> dict[str, object]:
        """The attempt as JSON-able data, without the whole result."""
        failure = self.failure
        return {
            "episode": self.episode,
            "number": self.number,
            "passed": self.passed,
            "failure": failure and {"kind": failure.kind.value, "name": failure.name, "message": failure.message},
            "output": self.output,
            "turns": self.turns,
            "refused": self.refused,
            "seconds": self.seconds,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """All attempts at the episodes of a suite, in the order of the episodes."""

    suite: str
    attempts: tuple[Attempt, ...]

    @property
    def passed(self) -> Share:
        """How many attempts passed, with the interval of Wilson: `str()` of it reads well."""
        return share(self.attempts)

    @property
    def by_episode(self) -> Mapping[str, Share]:
        """The same for each episode."""
        return shares_by_episode(self.attempts)

    @property
    def failures(self) -> Mapping[str, tuple[Attempt, ...]]:
        """The attempts that did not pass by the group of their failure, the largest group first."""
        return grouped_failures(self.attempts)

    def to_data(self) -> dict[str, object]:
        """The figures and the attempts as JSON-able data."""
        return {
            "suite": self.suite,
            "passed": self.passed.to_json(),
            "episodes": {name: one.to_json() for name, one in self.by_episode.items()},
            "failures": {group: len(attempts) for group, attempts in self.failures.items()},
            "attempts": [attempt.to_data() for attempt in self.attempts],
        }


def share(attempts: Iterable[Attempted]) -> Share:
    """How many of the attempts passed."""
    # Here, since what it comes with takes half as long to import as all of this package.
    from aufbau.validation.statistics import Share

    passed = [attempt.failure is None for attempt in attempts]
    return Share(count=sum(passed), total=len(passed))


def shares_by_episode(attempts: Sequence[Attempted]) -> dict[str, Share]:
    """How many attempts at each episode passed, in the order in which the episodes come."""
    found: dict[str, list[Attempted]] = {}
    for attempt in attempts:
        found.setdefault(attempt.episode, []).append(attempt)
    return {name: share(own) for name, own in found.items()}


def grouped_failures(attempts: Iterable[Some]) -> dict[str, tuple[Some, ...]]:
    """The attempts that did not pass by the group of their failure, the largest group first."""
    groups: dict[str, list[Some]] = {}
    for attempt in attempts:
        if attempt.failure is not None:
            groups.setdefault(attempt.failure.group, []).append(attempt)
    return {group: tuple(found) for group, found in sorted(groups.items(), key=lambda group: -len(group[1]))}


async def attempt_episode(runner: Runner, episode: Episode, number: int = 0) -> Attempt:
    """Run an episode; whatever it raises is the attempt's failure. Being cancelled is none and passes through."""
    begun = perf_counter()
    result: Ran | None = None
    error: Exception | None = None
    try:
        result = await runner.run(episode)
    except Exception as raised:
        error = raised
        so_far = getattr(raised, "result", None)
        result = so_far if isinstance(so_far, Ran) else None
    turns = result.transcript.turns if result is not None else ()
    return Attempt(
        episode=episode.name,
        number=number,
        failure=failure_of(result, error),
        output=plain(result.output) if result is not None else None,
        turns=len(turns),
        refused=sum(turn.step is None for turn in turns),
        seconds=perf_counter() - begun,
        result=result,
        error=error,
    )


def failure_of(result: Ran | None, error: Exception | None) -> Failure | None:
    """Why a run with this end did not pass; None if it did."""
    if error is None:
        grade = result.grade if result is not None else None
        if grade is None or grade.passed:
            return None
        return Failure(kind=FailureKind.WRONG_OUTPUT, name="", message=grade.reason)
    deferred, limit = getattr(error, "deferred", None), getattr(error, "limit", None)
    if isinstance(deferred, str):
        return Failure(kind=FailureKind.DEFERRED, name=deferred, message=str(error))
    if not isinstance(limit, str):
        return Failure(kind=FailureKind.ERROR, name=type(error).__name__, message=str(error))
    last = result.transcript.turns[-1:] if result is not None else ()
    refused = any(turn.step is None for turn in last)
    return Failure(kind=FailureKind.REFUSED_STEPS if refused else FailureKind.LIMIT, name=limit, message=str(error))


async def work_through(
    jobs: Iterable[Job], work: Callable[[Job], Awaitable[None]], *, max_concurrency: int = 1
) -> None:
    """Do `work` for every job, at most `max_concurrency` of them at once; the first error ends them all."""
    if max_concurrency < 1:
        raise ValueError(f"max_concurrency must be 1 or more, not {max_concurrency}")
    waiting = iter(jobs)

    async def worker() -> None:
        for job in waiting:
            await work(job)

    async with _tasks() as group:
        for _ in range(max_concurrency):
            group.start_soon(worker)


@asynccontextmanager
async def _tasks() -> AsyncIterator[TaskGroup]:
    """A task group whose only error is raised as itself."""
    try:
        async with anyio.create_task_group() as group:
            yield group
    except BaseExceptionGroup as errors:
        if len(errors.exceptions) == 1:
            raise errors.exceptions[0] from None
        raise
