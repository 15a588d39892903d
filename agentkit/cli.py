"""The command line: `agentkit run EPISODE.toml|FOLDER…`, `demo`, `synthesize`, `trace`, `serve-mcp`.

Exit status: 0 every episode passed, 1 some did not, 2 the input is wrong (said in one line).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from importlib.resources import as_file, files
from pathlib import Path

import anyio
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from agentkit.agent import Agent
from agentkit.arguments import count
from agentkit.connect.mcp_server import add_parser as add_serving
from agentkit.errors import RunError
from agentkit.evals import command as evaluate_suite
from agentkit.evaluation import Outcome, Summary, evaluate
from agentkit.limits import UsageLimits
from agentkit.models import Model, ModelError, Sampling, StopPolicy
from agentkit.modes import Mode
from agentkit.report import outcome_table, show_episode, show_outcome, show_turn, summary_table
from agentkit.resident import resident_model
from agentkit.root import AgentError
from agentkit.study import command as study
from agentkit.synthesis import command as synthesize
from agentkit.trace import TraceRecorder
from agentkit.trace import command as trace
from dialects import DIALECTS, DialectError
from episodes import Episode, EpisodeError, Suite
from registry import RegistryError, builtin

WRONG_INPUT = 2
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and say how it went, as an exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        command: Callable[[argparse.Namespace], int] = options.command
        return command(options)
    except (AgentError, ModelError, EpisodeError, RegistryError, DialectError, ValueError) as error:
        print(f"agentkit: {' '.join(str(error).split())}", file=sys.stderr)
        return WRONG_INPUT
    except KeyboardInterrupt:
        print("agentkit: interrupted", file=sys.stderr)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="agentkit", description="Run episodes: a model solves a task by typed tool steps."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="run episodes from TOML files or folders of them")
    run.add_argument("paths", nargs="+", metavar="EPISODE.toml|FOLDER")
    run.set_defaults(command=_run)
    demo = commands.add_parser("demo", help="run the bundled example episode")
    demo.set_defaults(command=_demo)
    for one in (run, demo):
        _add_options(one)
    run.add_argument(
        "--dialect",
        choices=list(DIALECTS),
        default="c",
        help="what steps look like in episodes that name no dialect themselves (default: c)",
    )
    demo.set_defaults(dialect="c")
    evaluate_suite.add_parser(commands)
    synthesize.add_parser(commands)
    study.add_parser(commands)
    trace.add_parser(commands)
    add_serving(commands)
    return parser


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        default="default",
        metavar="SPEC",
        help="'default' (SmolLM2-135M-Instruct), a Hugging Face id, a folder, a GGUF file or http://HOST/v1#MODEL",
    )
    parser.add_argument(
        "--mode",
        action="append",
        choices=[mode.value for mode in Mode],
        help="how steps are decoded (default: direct); may be given several times, to compare",
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON, and nothing else")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="write the run down, as .html or .json")
    parser.add_argument("--max-turns", type=count, metavar="N", help="turns of one run (default: 20)")
    parser.add_argument(
        "--reasoning-tokens", type=count, metavar="N", help="before each step, in modes that reason (default: 128)"
    )
    parser.add_argument(
        "--stop-policy",
        choices=[policy.value for policy in StopPolicy],
        default=StopPolicy.STRICT.value,
        help="'paper' lets a model abandon a step; 'strict', the default, ends it within its budget",
    )
    parser.add_argument("--temperature", type=float, default=0.0, metavar="T", help="0, the default, is greedy")
    parser.add_argument("--seed", type=int, metavar="N", help="makes sampling repeatable")


def _run(options: argparse.Namespace) -> int:
    registry = builtin()
    episodes: list[Episode] = []
    for text in options.paths:
        path = Path(text)
        episodes += Suite.load(path, registry) if path.is_dir() else [Episode.from_toml(path, registry)]
    return _run_all(options, episodes)


def _demo(options: argparse.Namespace) -> int:
    with as_file(files("agentkit") / "data" / "demo.toml") as path:
        episode = Episode.from_toml(path)
    return _run_all(options, [episode])


def _run_all(options: argparse.Namespace, episodes: list[Episode]) -> int:
    modes = dict.fromkeys(Mode(name) for name in options.mode or [Mode.DIRECT.value])
    if options.trace is not None:
        if len(episodes) * len(modes) > 1:
            raise ValueError("--trace writes one run down; name one episode, and one --mode")
        trace.check_target(options.trace)
    model = resident_model(options.model)
    console = Console(quiet=options.json, highlight=False)
    outcomes = {mode: _run_mode(console, _agent(options, model, mode), episodes, options.trace) for mode in modes}
    summaries = [Summary.of(mode, done) for mode, done in outcomes.items()]
    if options.json:
        print(json.dumps(_to_data(outcomes, summaries), ensure_ascii=False, indent=2, allow_nan=False))
    elif len(episodes) > 1 or len(outcomes) > 1:
        console.print(summary_table(summaries))
    return 0 if all(outcome.passed for done in outcomes.values() for outcome in done) else 1


def _agent(options: argparse.Namespace, model: Model, mode: Mode) -> Agent:
    given = {"turn_limit": options.max_turns, "reasoning_tokens": options.reasoning_tokens}
    limits = UsageLimits(**{name: value for name, value in given.items() if value is not None})
    sampling = Sampling(temperature=options.temperature, seed=options.seed)
    policy = StopPolicy(options.stop_policy)
    return Agent(model, dialect=options.dialect, mode=mode, usage_limits=limits, sampling=sampling, stop_policy=policy)


def _run_mode(console: Console, agent: Agent, episodes: list[Episode], traced: Path | None) -> list[Outcome]:
    if len(episodes) == 1:
        with TraceRecorder() as recorder:
            try:
                return [anyio.run(_show_run, console, agent, episodes[0], recorder)]
            finally:
                if traced is not None:
                    trace.write_trace(recorder.trace, traced)
    outcomes = _with_progress(console, agent, episodes)
    console.print(outcome_table(outcomes))
    return outcomes


async def _show_run(console: Console, agent: Agent, episode: Episode, recorder: TraceRecorder) -> Outcome:
    """Run one episode and print every turn as it ends."""
    show_episode(console, episode)
    async with agent.iter(episode, on_event=recorder) as run:
        shown = 0
        try:
            async for turn in run:
                show_turn(console, turn, run.result.bindings)
                shown = turn.number
            outcome = Outcome(result=run.result)
        except RunError as error:
            # The turn that ended the run was recorded, but never handed out.
            for turn in error.result.turns[shown:]:
                show_turn(console, turn, error.result.bindings)
            outcome = Outcome(result=error.result, error=str(error))
    show_outcome(console, outcome)
    return outcome


def _with_progress(console: Console, agent: Agent, episodes: list[Episode]) -> list[Outcome]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(agent.mode.value, total=len(episodes))

        async def main() -> list[Outcome]:
            return await evaluate(agent, episodes, on_outcome=lambda _: progress.advance(task))

        return anyio.run(main)


def _to_data(outcomes: dict[Mode, list[Outcome]], summaries: list[Summary]) -> object:
    """One result for one run; for several, the runs by mode and their figures."""
    runs = [outcome for done in outcomes.values() for outcome in done]
    if len(runs) == 1:
        return runs[0].to_data()
    return {
        "runs": {mode.value: [outcome.to_data() for outcome in done] for mode, done in outcomes.items()},
        "summaries": [summary.to_data() for summary in summaries],
    }
