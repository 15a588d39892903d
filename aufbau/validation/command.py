"""`aufbau validate`: the sub-command that runs the harness and shows its progress."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from aufbau.validation.compilers import find_compiler
from aufbau.validation.corpora import FROM_CORPUS, Language, ProgramSet
from aufbau.validation.options import count, duration, positive, sets_named
from aufbau.validation.page import markdown
from aufbau.validation.records import Journal, Record
from aufbau.validation.report import Report
from aufbau.validation.run import Plan, execute
from aufbau.validation.sweep import add_witnesses_parser
from aufbau.validation.workbench import Settings, Task, carry_out

if TYPE_CHECKING:
    _Commands = argparse._SubParsersAction[argparse.ArgumentParser]

EXIT_FAULTS = 1
EXIT_INTERRUPTED = 130


def add_parser(commands: _Commands) -> None:
    """Add `validate` and `witnesses` to the sub-commands of `aufbau`."""
    add_witnesses_parser(commands)
    parser = commands.add_parser("validate", help="compare a grammar with its language's compiler, program by program")
    parser.add_argument("language", choices=[language.value for language in Language])
    parser.add_argument("--corpus", type=Path, metavar="FOLDER", help="outside programs, as LANGUAGE/SET.jsonl.gz")
    parser.add_argument(
        "--sets",
        metavar="SET,…",
        help=f"of {', '.join(origin.value for origin in ProgramSet)}; by default all that can be had, but `mutated`",
    )
    parser.add_argument("--generated", type=count, default=200, metavar="N", help="programs to generate (200)")
    parser.add_argument("--mutants", type=count, default=2, metavar="N", help="mutants of each of these (2)")
    parser.add_argument(
        "--length", type=positive, default=40, metavar="N", help="their greatest length in lexemes (40)"
    )
    parser.add_argument(
        "--witnesses",
        type=count,
        default=0,
        metavar="K",
        help="complete each accepted program from K places (none), from every byte if it has no more",
    )
    parser.add_argument(
        "--witnessed", type=positive, default=1, metavar="N", help="only every N-th program of each set (1)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of all that is drawn (0)")
    parser.add_argument("--sample", type=positive, default=1, metavar="K", help="only every K-th corpus program")
    parser.add_argument("--jobs", type=positive, default=os.cpu_count() or 1, metavar="N", help="processes (all cores)")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="for records and report (validation-LANGUAGE)")
    parser.add_argument("--resume", action="store_true", help="go on with the run whose records the folder holds")
    parser.add_argument(
        "--recorded", action="store_true", help="take a corpus's word on where its rejected programs fail"
    )
    parser.add_argument("--seconds", type=duration, default=120.0, metavar="S", help="time limit of one program (120)")
    parser.add_argument("--grammar", metavar="FILE", help="a grammar in place of the shipped one")
    parser.set_defaults(command=validate)


def validate(options: argparse.Namespace, console: Console) -> int:
    """Run the harness; 0 when there is no fault, 1 when there is one, 130 when interrupted."""
    plan = _plan(options)
    folder = options.out or Path(f"validation-{options.language}")
    tasks = plan.tasks()
    if plan.settings.recheck or plan.settings.witnesses or any(origin not in FROM_CORPUS for origin in plan.sets):
        find_compiler(plan.settings.language)  # before hours of work, not in the middle of them
    journal = Journal(folder, plan.manifest(), Record.from_line, resume=options.resume)
    try:
        whole = _run(plan, tasks, journal, options.jobs, console)
    finally:
        journal.close()
    report = _report(plan, tasks, journal)
    (folder / "report.json").write_text(
        json.dumps(report.to_json(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )
    (folder / "report.md").write_text(markdown(report), encoding="utf-8")
    _show(report, folder, console)
    if not whole:
        console.print("[yellow]interrupted[/]; go on with the same command and --resume")
        return EXIT_INTERRUPTED
    return EXIT_FAULTS if report.faults else 0


def _plan(options: argparse.Namespace) -> Plan:
    language = Language(options.language)
    if options.sets is None:
        sets: tuple[ProgramSet, ...] = FROM_CORPUS if options.corpus else ()
        sets += (ProgramSet.GENERATED,) if options.generated else ()
        sets += (ProgramSet.CORNERS,)
        sets += (ProgramSet.RECURSION,) if language is Language.ML else ()
    else:
        sets = sets_named(options.sets)
    return Plan(
        settings=Settings(
            language=language,
            grammar=options.grammar or language.value,
            seconds=options.seconds,
            seed=options.seed,
            length=options.length,
            mutants=options.mutants,
            witnesses=options.witnesses,
            witnessed=options.witnessed,
            recheck=not options.recorded,
        ),
        sets=sets,
        corpus=options.corpus,
        generated=options.generated,
        every=options.sample,
    )


def _run(plan: Plan, tasks: Sequence[Task], journal: Journal[Record], jobs: int, console: Console) -> bool:
    faults = sum(record.faults for record in journal.records)
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("[red]{task.fields[faults]} faults"),
        console=console,
    )
    done = sum(task.key in journal.done for task in tasks)
    with progress:
        bar = progress.add_task(f"validate {plan.settings.language}", total=len(tasks), completed=done, faults=faults)

        def watch(task: Task, records: Sequence[Record]) -> None:
            nonlocal faults
            faults += sum(record.faults for record in records)
            progress.update(bar, advance=1, faults=faults, description=f"{plan.settings.language} {task.origin}")

        return execute(partial(carry_out, plan.settings), tasks, journal, jobs=jobs, watch=watch)


def _report(plan: Plan, tasks: Sequence[Task], journal: Journal[Record]) -> Report:
    """The report on this plan; the journal may hold more from earlier runs."""
    keys = {task.key for task in tasks}
    records = [record for record in journal.records if f"{record.origin}/{record.index}" in keys]
    done = keys & journal.done
    fruitful = {f"{record.origin}/{record.index}" for record in records}
    barren = sum(key.startswith(f"{ProgramSet.GENERATED}/") for key in done - fruitful)
    # Processes finish in any order; the report must not depend on it.
    order = {origin.value: place for place, origin in enumerate(plan.sets)}
    records.sort(key=lambda record: (order[record.origin], record.index, record.variant, record.text))
    return Report.of(plan.settings.language.value, records, tasks=len(tasks), done=len(done), barren=barren)


def _show(report: Report, folder: Path, console: Console) -> None:
    for summary in report.summaries:
        counts = ", ".join(f"{finding.value} {count}" for finding, count in summary.findings.items())
        console.print(f"[bold]{escape(summary.name)}[/] {summary.programs}: {escape(counts)}")
        if summary.satisfied.total:
            console.print(f"  false prunes {summary.false_prunes}", markup=False)
        console.print(f"  agreement {summary.agreement}", markup=False)
        if summary.witnesses.total:
            console.print(f"  completions accepted {summary.witnesses.accepted}", markup=False)
        if summary.semantic.lost.total:
            twin = f"twin {summary.twin.lost}"
            console.print(f"  LOST before the end {summary.semantic.lost}; {twin}", markup=False)
            console.print(f"  without completion {summary.semantic.doomed}", markup=False)
            console.print(f"  LOST minus diagnostic {summary.semantic.lead}; twin {summary.twin.lead}", markup=False)
    style = "bold red" if report.faults else "bold green"
    console.print(f"[{style}]{report.faults} faults[/]; report in {escape(str(folder / 'report.md'))}")
