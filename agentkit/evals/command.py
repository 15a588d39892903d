"""The command `agentkit eval SUITE`: attempt all episodes, show pass rates with intervals and failures by kind."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import anyio
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from agentkit.arguments import count
from agentkit.evals.errors import EvalError
from agentkit.evals.plan import EvalPlan, EvalSettings, load_tasks
from agentkit.evals.records import EvalRecord
from agentkit.evals.runner import run_plan
from agentkit.evals.summary import EvalReport
from agentkit.limits import UsageLimits
from agentkit.models import StopPolicy
from agentkit.modes import Mode
from agentkit.resident import resident_model
from aufbau.validation.statistics import Share
from dialects import DIALECTS
from registry import builtin

# Characters of an error message in a table.
_SHOWN = 100


def add_parser(commands: Any) -> None:
    """Add the command to a parser's subcommands."""
    parser = commands.add_parser(
        "eval",
        help="evaluate a suite of episodes: models, modes, repetitions; resumed where it stopped",
        description="Exit status: 0 every attempt passed (or --at-least of them), 1 some did not, 2 the input is "
        "wrong, 130 interrupted: the same command goes on from there.",
    )
    parser.add_argument("suite", type=Path, metavar="FOLDER|EPISODE.toml")
    parser.add_argument(
        "--model", action="append", metavar="SPEC", help="may be given several times (default: default)"
    )
    parser.add_argument(
        "--mode", action="append", choices=[one.value for one in Mode], help="may be given several times"
    )
    parser.add_argument("--repeat", type=count, default=1, metavar="N", help="attempts at each episode (default: 1)")
    parser.add_argument("--concurrency", type=count, default=1, metavar="N", help="attempts at once (default: 1)")
    parser.add_argument("--records", type=Path, metavar="FILE.jsonl", help="default: NAME.eval.jsonl in this folder")
    parser.add_argument("--temperature", type=float, default=0.0, metavar="T", help="0, the default, is greedy")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of the first attempt; others have the next ones"
    )
    parser.add_argument("--max-turns", type=count, metavar="N", help="turns of one run (default: 20)")
    parser.add_argument("--run-timeout", type=float, metavar="S", help="seconds of one run (default: no limit)")
    parser.add_argument("--dialect", choices=list(DIALECTS), default="c")
    parser.add_argument("--stop-policy", choices=[one.value for one in StopPolicy], default=StopPolicy.STRICT.value)
    parser.add_argument("--at-least", type=_share, default=1.0, metavar="SHARE", help="what must pass for status 0")
    parser.add_argument("--json", action="store_true", help="print the report as JSON, and nothing else")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    console = Console(stderr=True, highlight=False)
    with builtin() as registry:
        name, tasks = load_tasks(options.suite, registry)
        plan = EvalPlan(
            suite=name,
            tasks=tasks,
            models=tuple(dict.fromkeys(options.model or ["default"])),
            modes=tuple(dict.fromkeys(Mode(one) for one in options.mode or [Mode.DIRECT.value])),
            repeat=options.repeat,
            settings=_settings(options),
        )
        if plan.repeat > 1 and options.temperature == 0:
            print("agentkit: at temperature 0 repetitions are alike; give --temperature", file=sys.stderr)
        path = options.records or Path(f"{name}.eval.jsonl")

        with _Progress(console, plan.size) as progress:

            async def main() -> list[EvalRecord]:
                return await run_plan(
                    plan,
                    registry,
                    path,
                    load=resident_model,
                    max_concurrency=options.concurrency,
                    on_record=progress.count,
                )

            records = anyio.run(main)
    report = EvalReport.of(plan, records)
    if options.json:
        print(json.dumps({**report.to_data(), "records": str(path)}, ensure_ascii=False, indent=2, allow_nan=False))
    else:
        show_report(Console(highlight=False), report, path)
    passed = sum(record.passed for record in records)
    # A quotient is rounded as the option was; a product would be once more.
    return 0 if passed / len(records) >= options.at_least else 1


def _settings(options: argparse.Namespace) -> EvalSettings:
    given = {"turn_limit": options.max_turns, "run_timeout": options.run_timeout}
    if options.seed < 0:
        raise EvalError(f"--seed {options.seed}: a seed is a whole number from 0 on")
    settings = EvalSettings(
        temperature=options.temperature,
        seed=options.seed,
        stop_policy=StopPolicy(options.stop_policy),
        dialect=options.dialect,
        limits=UsageLimits(**{name: value for name, value in given.items() if value is not None}),
    )
    settings.sampling(0)  # refuses a temperature that is none, before anything is loaded
    return settings


def show_report(console: Console, report: EvalReport, path: Path) -> None:
    """The tables of an evaluation."""
    console.print(_rates(report))
    failed = _failures(report)
    if failed.row_count:
        console.print(failed)
    if report.plan.repeat > 1:
        console.print(_episodes(report))
    console.print(Text(f"records: {path}", style="dim"))


def _table(title: str, *headings: str, right: tuple[str, ...] = ()) -> Table:
    table = Table(title=title, box=SIMPLE_HEAD, pad_edge=False, title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="right" if heading in right else "left")
    return table


def _rates(report: EvalReport) -> Table:
    numbers = ("passed", "rate", "95%", "well typed", "turns", "tokens", "seconds")
    table = _table(f"Suite {report.plan.suite}", "model", "mode", *numbers, right=numbers)
    for row in report.rows:
        means = (f"{row.mean(name):.1f}" for name in ("turns", "tokens", "seconds"))
        well_typed = _rate(row.well_typed)[1]
        table.add_row(Text(row.model), row.mode, *_rate(row.passed), well_typed, *means)
    return table


def _rate(share: Share) -> tuple[str, str, str]:
    """A share as count, rate and interval, short enough for a terminal."""
    low, high = share.interval
    rate = f"{share.value:.0%}" if share.total else "-"
    return f"{share.count}/{share.total}", rate, f"{100 * low:.0f}-{100 * high:.0f}"


def _failures(report: EvalReport) -> Table:
    table = _table("Failures", "model", "mode", "kind", "number", "episodes", "for instance", right=("number",))
    for row in report.rows:
        for group, records in row.failures.items():
            names = sorted({record.episode for record in records})
            shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            message = " ".join(records[0].message.split())
            cut = message if len(message) <= _SHOWN else message[: _SHOWN - 1] + "…"
            table.add_row(Text(row.model), row.mode, group, str(len(records)), Text(shown), Text(_safe(cut)))
    return table


def _episodes(report: EvalReport) -> Table:
    table = _table("Episodes", "episode", *(f"{row.model} {row.mode}" for row in report.rows))
    for task in report.plan.tasks:
        name = task.episode.name
        table.add_row(Text(name), *(_rate(row.by_episode[name])[0] for row in report.rows))
    return table


def _safe(text: str) -> str:
    """Without control characters, which could steer the terminal."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


class _Progress:
    """The bar on standard error; it says how many passed, were there before, and are left."""

    def __init__(self, console: Console, total: int) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        self._bar = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, transient=True)
        self._task = self._bar.add_task("passed 0", total=total)
        self._passed = self._known = 0

    def __enter__(self) -> _Progress:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()
        if self._known:
            self._bar.console.print(f"{self._known} attempts were recorded already and not made again")

    def count(self, record: EvalRecord, is_new: bool) -> None:
        """Enter a record."""
        self._passed += record.passed
        self._known += not is_new
        self._bar.update(self._task, advance=1, description=f"passed {self._passed}")


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is no share; 0.8 is four of five")
    return value
