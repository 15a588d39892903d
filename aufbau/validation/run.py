"""A validation run: lists its tasks, carries them out in several processes, keeps a journal, can be interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from aufbau.grammar.grammar import Grammar
from aufbau.validation.corpora import FROM_CORPUS, Language, Program, ProgramSet, read_corpus
from aufbau.validation.errors import ValidationError
from aufbau.validation.handmade import corners
from aufbau.validation.pool import in_processes
from aufbau.validation.records import Entry, Journal, Manifest
from aufbau.validation.recursion import probes
from aufbau.validation.workbench import Settings, Task


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What a run does."""

    settings: Settings
    sets: tuple[ProgramSet, ...]
    corpus: Path | None = None
    generated: int = 0  # programs to generate
    every: int = 1  # of each corpus set, only every so many-th program

    def manifest(self) -> Manifest:
        """What must be the same for a run to be gone on with; more sets or programs may come."""
        s = self.settings
        source = Grammar.load(s.grammar).source()
        return Manifest(
            language=s.language.value,
            grammar=sha256(source.encode()).hexdigest(),
            corpus="" if self.corpus is None else str(self.corpus.resolve()),
            options={
                "seed": s.seed,
                "length": s.length,
                "mutants": s.mutants,
                "seconds": str(s.seconds),
                "witnesses": s.witnesses,
                "witnessed": s.witnessed,
                "recheck": s.recheck,
            },
        )

    def tasks(self) -> list[Task]:
        """All tasks in a fixed order. Raises `CorpusError`, and `ValidationError` for a set that lacks its source."""
        return [task for origin in self.sets for task in self._tasks(origin)]

    def _tasks(self, origin: ProgramSet) -> Iterator[Task]:
        language = self.settings.language
        if origin is ProgramSet.GENERATED:
            yield from (Task(origin=origin, index=index) for index in range(self.generated))
        elif origin is ProgramSet.RECURSION:
            if language is not Language.ML:
                raise ValidationError("the recursion probe is written in ML; leave the set `recursion` out for C")
            for index, probe in enumerate(probes()):
                program = Program(origin=origin, index=index, name=probe.name, text=probe.text.encode())
                yield Task(origin=origin, index=index, program=program)
        elif origin is ProgramSet.CORNERS:
            for program in corners(language):
                yield Task(origin=origin, index=program.index, program=program)
        else:
            if self.corpus is None:
                raise ValidationError(f"the set {origin} is read from a corpus; name its folder with --corpus")
            source = origin if origin in FROM_CORPUS else ProgramSet.VALID
            for program in read_corpus(self.corpus, language, source, every=self.every):
                if origin is ProgramSet.MUTATED:
                    # The verdict on record is that of the program, not of its mutants.
                    program = replace(program, origin=origin, accepted=None, diagnostic=None)
                yield Task(origin=origin, index=program.index, program=program)


E = TypeVar("E", bound=Entry)


def execute(
    work: Callable[[Task], list[E]],
    tasks: Sequence[Task],
    journal: Journal[E],
    *,
    jobs: int,
    watch: Callable[[Task, Sequence[E]], None],
) -> bool:
    """Carry out what the journal lacks; False when interrupted (the journal then holds all that was finished)."""
    pending = (task for task in tasks if task.key not in journal.done)
    finished: Iterator[tuple[Task, list[E]]]
    finished = ((task, work(task)) for task in pending) if jobs == 1 else in_processes(work, pending, jobs)
    try:
        for task, records in finished:
            journal.add(task.key, records)
            watch(task, records)
    except KeyboardInterrupt:
        return False
    return True
