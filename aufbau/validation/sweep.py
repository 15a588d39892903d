"""`aufbau witnesses`: the sub-command that completes every byte prefix of a corpus's programs."""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from aufbau.grammar.grammar import Grammar
from aufbau.oracle import Oracle
from aufbau.validation.compilers import find_compiler
from aufbau.validation.corpora import FROM_CORPUS, Language, ProgramSet, read_corpus
from aufbau.validation.everywhere import Walk, Walker
from aufbau.validation.options import duration, positive, sets_named
from aufbau.validation.records import Journal, Manifest
from aufbau.validation.run import execute
from aufbau.validation.tally import Tally, markdown
from aufbau.validation.workbench import Task

if TYPE_CHECKING:
    _Commands = argparse._SubParsersAction[argparse.ArgumentParser]

EXIT_FAULTS = 1
EXIT_INTERRUPTED = 130


@dataclass(frozen=True, kw_only=True, slots=True)
class Sweep:
    """What a run does, but for the programs."""

    language: Language
    grammar: str  # a shipped name or a path
    steps: int  # of a first search
    again: int  # of a second one, where the first finds nothing
    seconds: float  # time limit of the searches at one prefix


def add_witnesses_parser(commands: _Commands) -> None:
    """Add `witnesses` to the sub-commands of `aufbau`."""
    parser = commands.add_parser(
        "witnesses", help="complete every byte prefix of a corpus's programs, and ask the compiler of what completes it"
    )
    parser.add_argument("language", choices=[language.value for language in Language])
    parser.add_argument(
        "--corpus", type=Path, required=True, metavar="FOLDER", help="outside programs, as LANGUAGE/SET.jsonl.gz"
    )
    known = ", ".join(origin.value for origin in FROM_CORPUS)
    parser.add_argument("--sets", default="valid", metavar="SET,…", help=f"of {known} (valid)")
    parser.add_argument("--grammar", metavar="FILE", help="a grammar in place of the language's full one, say core_ml")
    parser.add_argument("--steps", type=positive, default=4_000, metavar="N", help="bound of a first search (4000)")
    parser.add_argument(
        "--again",
        type=positive,
        default=400_000,
        metavar="N",
        help="and of a second, where that finds nothing (400000)",
    )
    parser.add_argument("--seconds", type=duration, default=120.0, metavar="S", help="time limit of both (120)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the order of each set (0)")
    parser.add_argument("--jobs", type=positive, default=os.cpu_count() or 1, metavar="N", help="processes (all cores)")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="for walks and report (validation-GRAMMAR-prefixes)")
    parser.add_argument("--resume", action="store_true", help="go on with the run whose walks the folder holds")
    parser.set_defaults(command=witnesses)


def witnesses(options: argparse.Namespace, console: Console) -> int:
    """Go over the programs in random order; 0 when there is no fault, 1 when there is one, 130 when interrupted."""
    language = Language(options.language)
    sweep = Sweep(
        language=language,
        grammar=options.grammar or language.value,
        steps=options.steps,
        again=options.again,
        seconds=options.seconds,
    )
    grammar = Grammar.load(sweep.grammar)
    find_compiler(language)
    sets = sets_named(options.sets, FROM_CORPUS)
    tasks = [task for origin in sets for task in _tasks(options.corpus, language, origin, options.seed)]
    folder = options.out or Path(f"validation-{Path(sweep.grammar).stem}-prefixes")
    manifest = Manifest(
        language=language.value,
        grammar=sha256(grammar.source().encode()).hexdigest(),
        corpus=str(options.corpus.resolve()),
        options={"steps": sweep.steps, "again": sweep.again, "seconds": str(sweep.seconds), "seed": options.seed},
    )
    journal = Journal(folder, manifest, Walk.from_line, resume=options.resume)
    try:
        ended = _run(sweep, tasks, journal, options.jobs, console)
    finally:
        journal.close()
    tally = _tally(sweep, grammar, tasks, journal)
    _publish(tally, folder, console)
    if not ended:
        console.print("[yellow]interrupted[/]; go on with the same command and --resume")
        return EXIT_INTERRUPTED
    return EXIT_FAULTS if tally.faults else 0


def _publish(tally: Tally, folder: Path, console: Console) -> None:
    """Write the report and show what it comes to."""
    (folder / "report.json").write_text(
        json.dumps(tally.to_json(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )
    (folder / "report.md").write_text(markdown(tally), encoding="utf-8")
    for group in tally.groups:
        counts = ", ".join(f"{fate.value} {count}" for fate, count in group.fates.items())
        console.print(f"[bold]{escape(group.name)}[/] {group.walks} of {group.tasks} programs: {escape(counts)}")
    style = "bold red" if tally.faults else "bold green"
    console.print(f"[{style}]{tally.faults} faults[/]; report in {escape(str(folder / 'report.md'))}")


def _tasks(corpus: Path, language: Language, origin: ProgramSet, seed: int) -> list[Task]:
    """The programs of a set in random order, so that a run that is cut off is a fair sample."""
    programs = list(read_corpus(corpus, language, origin))
    Random(f"{seed}/{origin}").shuffle(programs)
    return [Task(origin=origin, index=program.index, program=program) for program in programs]


def _run(sweep: Sweep, tasks: Sequence[Task], journal: Journal[Walk], jobs: int, console: Console) -> bool:
    strays = sum(len(walk.strays) for walk in journal.records)
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("[yellow]{task.fields[strays]} searches without an accepted completion"),
        console=console,
    )
    done = sum(task.key in journal.done for task in tasks)
    with progress:
        bar = progress.add_task(f"witnesses {sweep.language}", total=len(tasks), completed=done, strays=strays)

        def watch(task: Task, walks: Sequence[Walk]) -> None:
            nonlocal strays
            strays += sum(len(walk.strays) for walk in walks)
            progress.update(bar, advance=1, strays=strays, description=f"{sweep.language} {task.origin}")

        return execute(partial(walk_along, sweep), tasks, journal, jobs=jobs, watch=watch)


def walk_along(sweep: Sweep, task: Task) -> list[Walk]:
    """Carry out a task in whatever process this is, with the walker that it keeps."""
    assert task.program is not None, "programs of a corpus come with their text"
    return [_walker(sweep).walk(task.program)]


@lru_cache(maxsize=1)
def _walker(sweep: Sweep) -> Walker:
    oracle = Oracle(Grammar.load(sweep.grammar))
    return Walker(oracle, find_compiler(sweep.language), steps=sweep.steps, again=sweep.again, seconds=sweep.seconds)


def _tally(sweep: Sweep, grammar: Grammar, tasks: Sequence[Task], journal: Journal[Walk]) -> Tally:
    """The tally of these programs; the journal may hold more from earlier runs."""
    places = {task.key: place for place, task in enumerate(tasks)}
    walks = {f"{walk.origin}/{walk.index}": walk for walk in journal.records}
    return Tally.of(
        Path(sweep.grammar).stem,
        sweep.language,
        covered=grammar.check().dead_end_free is True,
        steps=sweep.steps,
        again=sweep.again,
        # Processes finish in any order; the report must not depend on it.
        walks=[walks[key] for key in sorted(walks.keys() & places.keys(), key=places.__getitem__)],
        tasks=Counter(task.origin.value for task in tasks),
    )
