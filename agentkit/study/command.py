"""The command `agentkit study`: run a study, report on its records, measure branching."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import anyio
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from agentkit.resident import resident_model
from agentkit.study.branching import DEFAULT_PROGRAMS, measure_corpora
from agentkit.study.config import StudyConfig
from agentkit.study.errors import ConfigError, RecordError
from agentkit.study.plan import EpisodeTask
from agentkit.study.publish import publish
from agentkit.study.records import compress, read_records
from agentkit.study.runner import Progress as Step
from agentkit.study.runner import run_model, study_tasks
from agentkit.study.task import Task

# Where the records stand in the folder of a study.
RECORDS = "records"


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `study`, with its own commands, to a command line."""
    study = commands.add_parser("study", help="compare decoding modes on many tasks: run, report, branching")
    parts = study.add_subparsers(required=True, metavar="PART")
    _add_run(parts.add_parser("run", help="make the attempts that are not recorded yet"))
    report = parts.add_parser("report", help="tables, plots and a page, worked out from the records")
    report.add_argument("folder", type=Path, metavar="FOLDER", help="the folder that `study run -o` wrote to")
    report.add_argument("-o", "--output", type=Path, metavar="OUT", help="where the report goes (default: FOLDER)")
    report.add_argument("--no-plots", action="store_true", help="tables alone; plots need matplotlib")
    report.set_defaults(command=_report)
    _add_branching(parts.add_parser("branching", help="how many tokens each position of valid programs admits"))
    pack = parts.add_parser("pack", help="compress the records of a finished run, to keep them")
    pack.add_argument("folder", type=Path, metavar="FOLDER")
    pack.set_defaults(command=_pack)


def _add_run(run: argparse.ArgumentParser) -> None:
    run.add_argument("config", type=Path, metavar="CONFIG.toml")
    run.add_argument("-o", "--output", type=Path, default=Path("study"), metavar="FOLDER", help="default: study")
    run.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="NAME=SPEC",
        help="what a model of the study is loaded from: a folder, a GGUF file or an id; may be given several times",
    )
    run.add_argument("--only", action="append", metavar="NAME", help="attempt with this model of the study alone")
    run.add_argument("--suite", action="append", default=[], metavar="NAME", help="attempt tasks of this suite alone")
    run.add_argument("--shard", type=_shard, default=(1, 1), metavar="I/N", help="every N-th task, from the I-th on")
    run.add_argument("--limit-hours", type=_hours, metavar="H", help="begin no task after this time")
    run.set_defaults(command=_run)


def _add_branching(branching: argparse.ArgumentParser) -> None:
    branching.add_argument("corpora", type=Path, metavar="CORPORA", help="the folder that holds ml/ and c/")
    branching.add_argument("-o", "--output", type=Path, default=Path("study"), metavar="FOLDER", help="default: study")
    branching.add_argument("--programs", type=int, default=DEFAULT_PROGRAMS, metavar="N", help="of each language")
    branching.add_argument("--seed", type=int, default=0, metavar="N", help="of the draw of programs")
    branching.set_defaults(command=_branching)


def _shard(text: str) -> tuple[int, int]:
    part, slash, parts = text.partition("/")
    if not slash or not part.isdigit() or not parts.isdigit() or not 1 <= int(part) <= int(parts):
        raise argparse.ArgumentTypeError(f"{text!r} is no shard; 1/2 is the first of two")
    return int(part), int(parts)


def _hours(text: str) -> float:
    hours = float(text)
    if not hours > 0:
        raise argparse.ArgumentTypeError(f"{text} hours leave no time")
    return hours


def _run(options: argparse.Namespace) -> int:
    config = StudyConfig.load(options.config)
    given = _sources(config, options.model)
    names = options.only or [model.name for model in config.models]
    sources = {name: config.model(name, given) for name in names}
    tasks = study_tasks(config)
    suites = dict.fromkeys(task.suite for task in tasks)
    for suite in options.suite:
        if suite not in suites:
            raise ConfigError(f"--suite {suite}: the study has no such suite; it has {', '.join(suites)}")
    limit_s = None if options.limit_hours is None else 3600 * options.limit_hours / len(names)
    for name, source in sources.items():
        _run_model(options, config, name, source, tasks, limit_s)
    return 0


def _run_model(
    options: argparse.Namespace,
    config: StudyConfig,
    name: str,
    source: str,
    tasks: Sequence[Task | EpisodeTask],
    limit_s: float | None,
) -> None:
    """Attempt what is missing of one model, with a bar that counts the recorded attempts too."""
    console = Console(stderr=True, highlight=False)
    folder = options.output / RECORDS
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console) as bar:
        shown = bar.add_task(name, total=None)

        def show(step: Step) -> None:
            bar.update(shown, completed=step.done, total=step.total)

        async def main() -> int:
            return await run_model(
                config,
                name,
                lambda: resident_model(source),
                folder,
                tasks=tasks,
                suites=options.suite,
                shard=options.shard,
                limit_s=limit_s,
                on_record=show,
            )

        made = anyio.run(main)
    console.print(f"{name}: {made} attempts recorded in {folder}")


def _sources(config: StudyConfig, given: list[str]) -> dict[str, str]:
    """What `--model NAME=SPEC` says, by name."""
    sources = {}
    known = [model.name for model in config.models]
    for text in given:
        name, equals, source = text.partition("=")
        if not equals or not source or name not in known:
            raise ConfigError(f"--model {text!r}: give NAME=SPEC, with a NAME of the study: {', '.join(known)}")
        sources[name] = source
    return sources


def _report(options: argparse.Namespace) -> int:
    output = options.output or options.folder
    written = publish(options.folder, options.folder / RECORDS, output, plots=not options.no_plots)
    for path in written:
        print(path)
    return 0


def _branching(options: argparse.Namespace) -> int:
    console = Console(stderr=True)
    path = measure_corpora(
        options.corpora,
        options.output,
        programs=options.programs,
        seed=options.seed,
        say=lambda text: console.print(text, highlight=False),
    )
    print(path)
    return 0


def _pack(options: argparse.Namespace) -> int:
    folder = options.folder / RECORDS
    if not folder.is_dir():
        raise RecordError(f"there is no folder {folder}; `agentkit study run -o` makes it")
    for path in sorted(folder.glob("*.jsonl")):
        print(compress(path))
    print(f"{len(read_records(folder))} records")
    return 0
