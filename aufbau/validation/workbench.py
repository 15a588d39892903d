"""Carries out one task of a run: judges a program, its twin and its mutants, and asks the compiler where needed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

from aufbau.errors import LimitError
from aufbau.grammar.grammar import Grammar
from aufbau.oracle import Oracle
from aufbau.validation.compilers import Compiler, Outcome, find_compiler
from aufbau.validation.corpora import FROM_CORPUS, Language, Program, ProgramSet
from aufbau.validation.generate import Generator
from aufbau.validation.mutate import Mutator
from aufbau.validation.prefixes import OutOfTime, judge, time_limit
from aufbau.validation.records import Record
from aufbau.validation.witnesses import Completion, completions, cuts
from aufbau.verdict import Verdict

_WORD = re.compile(rb"[\w']+|[^\w\s']+|\s+")
_AROUND = 24  # bytes shown on each side of the place where a text was lost


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What every task of a run has in common."""

    language: Language
    grammar: str  # a shipped name or a path
    seconds: float = 120.0  # time limit of one judgement
    seed: int = 0
    length: int = 40  # lexemes after which generated programs start to close
    mutants: int = 2  # of each generated program
    witnesses: int = 0  # prefixes of each accepted program at which a completion is looked for
    witnessed: int = 1  # of each set, only of every so many-th program
    recheck: bool = False  # ask the compiler again where a rejected corpus program fails (offsets on record may be off)


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """A unit of work: a program to judge, or the number of one to generate."""

    origin: ProgramSet
    index: int
    program: Program | None = None

    @property
    def key(self) -> str:
        """Names the task within a run."""
        return f"{self.origin}/{self.index}"


class Workbench:
    """The compiled grammar and the tools of one process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._oracle = Oracle(Grammar.load(settings.grammar))

    @cached_property
    def _compiler(self) -> Compiler:
        return find_compiler(self._settings.language)

    @cached_property
    def _generator(self) -> Generator:
        return Generator(self._oracle, length=self._settings.length)

    @cached_property
    def _mutator(self) -> Mutator:
        return Mutator(self._oracle)

    def carry_out(self, task: Task) -> list[Record]:
        """The records of a task."""
        if task.origin is ProgramSet.GENERATED:
            return self._generated(task)
        assert task.program is not None, "only generated programs come without a text"
        if task.origin is ProgramSet.MUTATED:
            return self._mutants(task.program, 1)
        return [self.judged(task.program)]

    def _generated(self, task: Task) -> list[Record]:
        seed = f"{self._settings.seed}/{task.index}"
        try:
            with time_limit(self._settings.seconds):
                text = self._generator.sample(seed)
        except (LimitError, OutOfTime):
            text = None
        if text is None:
            return []  # no draft came to an end; the report says how many tasks gave no program
        program = Program(origin=task.origin, index=task.index, name=f"seed {seed}", text=text)
        record = self.judged(program)
        # A mutant of what the compiler rejects anyway would tell the same fault once more.
        return [record, *(self._mutants(program, self._settings.mutants) if record.accepted else ())]

    def _mutants(self, program: Program, count: int) -> list[Record]:
        try:
            with time_limit(self._settings.seconds):
                found = self._mutator.mutants(program.text, count=count, seed=f"{self._settings.seed}/{program.name}")
        except (LimitError, OutOfTime):
            return []
        return [
            self.judged(
                Program(origin=program.origin, index=program.index, name=program.name, text=mutant.text),
                variant=mutant.mutation.value,
            )
            for mutant in found
        ]

    def judged(self, program: Program, variant: str = "") -> Record:
        """The record of one program; the compiler is asked when its word is not on record."""
        text, seconds = program.text, self._settings.seconds
        accepted, diagnostic, message, doubt = program.accepted, program.diagnostic, program.message, ""
        if accepted is None or (self._settings.recheck and not accepted):
            word = self._compiler.compile(text)
            if word.outcome is Outcome.UNKNOWN:
                doubt = f"compiler: {word.message}"
            elif accepted is not None and word.outcome is Outcome.ACCEPTED:
                doubt = "the corpus says that it is rejected, the compiler accepts it"
            accepted = accepted if doubt else word.outcome is Outcome.ACCEPTED
            diagnostic, message = word.offset, word.message
        semantic = judge(self._oracle, text, seconds=seconds)
        twin = judge(self._oracle.syntactic(), text, every_byte=False, seconds=seconds)
        ending: tuple[Completion, ...] = ()
        completed: tuple[Completion, ...] = ()
        if semantic.verdict is Verdict.LIVE and accepted is False:
            ending = self._completions(program, [len(text)])
        elif self._is_witnessed(program, variant) and accepted and semantic.verdict is Verdict.SATISFIED:
            seed = f"{self._settings.seed}/{program.origin}/{program.index}"
            completed = self._completions(program, cuts(len(text), self._settings.witnesses, seed))
        return Record(
            origin=program.origin.value,
            index=program.index,
            variant=variant,
            name=program.name,
            size=len(text),
            accepted=accepted,
            diagnostic=diagnostic,
            message=message,
            verdict=None if semantic.verdict is None else semantic.verdict.value,
            lost_at=semantic.lost_at,
            twin=None if twin.verdict is None else twin.verdict.value,
            twin_lost_at=twin.lost_at,
            seconds=round(semantic.seconds, 6),
            failure=semantic.failure or twin.failure or doubt,
            features=program.features,
            context=_around(text, semantic.lost_at),
            unread=_word(text, twin.lost_at),
            text=text.decode(errors="replace") if variant or program.origin in _OURS else "",
            ending=ending[0] if ending else None,
            completions=completed,
        )

    def _is_witnessed(self, program: Program, variant: str) -> bool:
        return not variant and program.index % self._settings.witnessed == 0

    def _completions(self, program: Program, places: list[int]) -> tuple[Completion, ...]:
        settings = self._settings
        asked = settings.recheck or settings.witnesses or program.origin not in FROM_CORPUS
        compiler = self._compiler if asked else None
        return tuple(completions(self._oracle, compiler, program.text, places, seconds=settings.seconds))


_OURS = (ProgramSet.GENERATED, ProgramSet.MUTATED, ProgramSet.RECURSION, ProgramSet.CORNERS)


def _around(text: bytes, place: int | None) -> str:
    """The text about a place, which ¦ marks."""
    if place is None:
        return ""
    left, right = text[max(place - _AROUND, 0) : place], text[place : place + _AROUND]
    return f"{left.decode(errors='replace')}¦{right.decode(errors='replace')}"


def _word(text: bytes, place: int | None) -> str:
    """The word, or the run of other signs, that holds a place."""
    if place is None:
        return ""
    words = (word for word in _WORD.finditer(text) if word.end() > place)
    found = next(words, None)
    return "" if found is None else found[0].decode(errors="replace")


@lru_cache(maxsize=1)
def _workbench(settings: Settings) -> Workbench:
    return Workbench(settings)


def carry_out(settings: Settings, task: Task) -> list[Record]:
    """Carry out a task in whatever process this is, on the workbench that it keeps."""
    return _workbench(settings).carry_out(task)
