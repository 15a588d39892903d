"""Runs the attempts of a study: what is recorded is skipped, the rest is made and recorded one by one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final, final

import anyio

from agentkit.models import Model, Session
from agentkit.modes import Mode
from agentkit.study.attempt import Bench, attempt
from agentkit.study.config import StudyConfig
from agentkit.study.errors import ConfigError
from agentkit.study.plan import EpisodeTask, Group, groups
from agentkit.study.records import Record, RecordFile, read_records, record_file
from agentkit.study.task import Task
from episodes import Suite


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """How far a run has come."""

    done: int
    total: int
    record: Record


def study_tasks(config: StudyConfig) -> list[Task | EpisodeTask]:
    """All tasks of a study: programs, and the episodes of its folders. Raises `EpisodeError`."""
    tasks: list[Task | EpisodeTask] = list(config.tasks)
    for folder in config.episodes:
        suite = Suite.load(folder)
        digests = {path.stem: _file_digest(path) for path in folder.glob("*.toml")}
        everything = hashlib.sha256("".join(sorted(digests.values())).encode()).hexdigest()[:12]
        tasks += [
            EpisodeTask(suite=suite.name, episode=one, dialect="c", digest=digests.get(one.name, everything))
            for one in suite
        ]
    names = [task.id for task in tasks]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"two tasks of the study are called {name!r}; rename a file or a task")
    return tasks


def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def missing(
    config: StudyConfig, name: str, plan: Iterable[Group], known: Sequence[Record]
) -> list[tuple[Group, tuple[Mode, ...]]]:
    """The attempts of a model that no record tells of, task by task."""
    done = {record.key for record in known}
    rest = []
    for group in plan:
        task = group.task
        modes = tuple(
            mode
            for mode in config.modes
            if (config.digest, task.digest, name, task.id, mode.value, group.seed) not in done
        )
        if modes:
            rest.append((group, modes))
    return rest


@final
class Sessions:
    """A session for each language and kind of prompt, so that the examples that prompts share are read once."""

    def __init__(self, model: Model) -> None:
        self._model: Final = model
        self._open: Final[dict[tuple[str, bool], Session]] = {}

    def of(self, task: Task | EpisodeTask, mode: Mode) -> Session:
        """The session for an attempt; what it has read changes no answer."""
        key = (task.language.value if isinstance(task, Task) else task.dialect, mode.reasons)
        if key not in self._open:
            self._open[key] = self._model.session()
        return self._open[key]

    async def aclose(self) -> None:
        """Close all of them."""
        for session in self._open.values():
            await session.aclose()
        self._open.clear()


async def run_model(
    config: StudyConfig,
    name: str,
    load: Callable[[], Model],
    folder: Path,
    *,
    tasks: Sequence[Task | EpisodeTask],
    suites: Collection[str] = (),
    shard: tuple[int, int] = (1, 1),
    limit_s: float | None = None,
    on_record: Callable[[Progress], None] = lambda progress: None,
) -> int:
    """Attempt what is missing of one model, and return how many attempts were recorded.

    `load` is called once, when something is missing. With `suites` only tasks of these are attempted. After `limit_s`
    seconds no further task is begun; the modes of one task are always finished, so that the pairs of the report are
    whole. Cancelled, everything recorded stays.
    """
    begun = monotonic()
    plan = [one for one in groups(tasks, config.seeds, shard=shard) if not suites or one.task.suite in suites]
    with RecordFile(record_file(folder, name, shard)) as file:
        rest = missing(config, name, plan, read_records(folder))
        total = len(plan) * len(config.modes)
        done = total - sum(len(modes) for _, modes in rest)
        made = 0
        if not rest:
            return 0
        bench = Bench(config=config, model=load(), name=name)
        sessions = Sessions(bench.model)
        try:
            for group, modes in rest:
                if limit_s is not None and monotonic() - begun >= limit_s:
                    break
                for mode in modes:
                    record = await attempt(bench, sessions.of(group.task, mode), group.task, mode, group.seed)
                    file.append(record)
                    made += 1
                    on_record(Progress(done=done + made, total=total, record=record))
        finally:
            with anyio.CancelScope(shield=True):
                await sessions.aclose()
    return made
