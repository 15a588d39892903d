"""Runs a model in each dialect, constrained and unconstrained, over the same tasks; `scripts/bench dialects`.

Every attempt is a line of `benchmarks/results/dialects.jsonl`, and what is there already is not run again.
`dialects.json` and `dialects.md` say what came of all of them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import monotonic, perf_counter
from typing import Final

import anyio

from agentkit.agent import Agent
from agentkit.block import Block, BlockRequest, decode_block
from agentkit.errors import RunError
from agentkit.events import Event, TurnStarted
from agentkit.limits import UsageLimits
from agentkit.models import Message, Model, Sampling, Session, resolve_model
from agentkit.modes import Mode
from agentkit.synthesis.prompts import program_in
from agentkit.worked import worked_examples
from aufbau import Prefix, Verdict
from benchmarks.dialects_parts import Part, Task, gather
from benchmarks.dialects_report import Attempt, Settings, page, summary
from dialects import DIALECTS, LoweredDialect, Root
from episodes import Episode, EpisodeError, Grade
from episodes.programs import run_program
from registry import RegistryError

RESULTS: Final = Path(__file__).parent / "results"
MODES: Final = (Mode.DIRECT, Mode.UNCONSTRAINED)
WORKED: Final = 4
# Where a free program ends, beside the model's own end: at the close of a fence, or at an empty line.
FREE_STOP: Final = ("\n```", "\n\n")


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """A model with the limits of all attempts."""

    model: Model
    session: Session
    settings: Settings

    async def attempt(self, task: Task, dialect: str, mode: Mode) -> Attempt:
        """One task in one dialect and mode."""
        begun = perf_counter()
        one = self._program if task.part is Part.PROGRAMS else self._episode
        made = await one(task, dialect, mode)
        return replace(made, seconds=round(perf_counter() - begun, 2))

    async def _episode(self, task: Task, dialect: str, mode: Mode) -> Attempt:
        limits = UsageLimits(turn_limit=self.settings.turns, tokens_per_step=self.settings.step_tokens)
        agent = Agent(self.model, dialect=dialect, mode=mode, usage_limits=limits, tool_errors="observe")
        starts: dict[int, Prefix] = {}

        def note(event: Event) -> None:
            if isinstance(event, TurnStarted):
                starts[event.turn] = event.start

        error = ""
        try:
            result = await agent.run(task.episode(), session=self.session, on_event=note)
        except RunError as raised:
            result, error = raised.result, f"{type(raised).__name__}: {raised}"
        return Attempt(
            part=task.part.value,
            task=task.name,
            dialect=dialect,
            mode=mode.value,
            outcome=result.stop_reason.value,
            finished=result.grade is not None,
            passed=result.grade is not None and result.grade.passed,
            verdicts=tuple(judged(starts[turn.number], turn.text).value for turn in result.turns),
            executed=len(result.steps),
            tokens=result.usage.generated_tokens,
            model_s=round(result.timing.model_s, 3),
            oracle_s=round(result.timing.oracle_s, 3),
            error=error,
            texts=tuple(turn.text for turn in result.turns),
        )

    async def _program(self, task: Task, dialect: str, mode: Mode) -> Attempt:
        episode = task.episode()
        lowered = lowered_for(episode, dialect)
        start = lowered.start({}, episode.output_type, Root.PROGRAM)
        request = BlockRequest(
            messages=program_messages(episode, lowered),
            start=start,
            mode=mode,
            sampling=Sampling(),
            max_tokens=self.settings.program_tokens,
            free_stop=FREE_STOP,
            extract=program_in,
        )
        block = await decode_block(self.session, request)
        grade, executed, error = await _executed(episode, lowered, block)
        timing = block.generation.timing
        return Attempt(
            part=task.part.value,
            task=task.name,
            dialect=dialect,
            mode=mode.value,
            outcome="returned" if grade is not None else "error",
            finished=grade is not None,
            passed=grade is not None and grade.passed,
            verdicts=(judged(start, block.text).value,),
            executed=executed,
            tokens=block.tokens,
            model_s=round(timing.model_s, 3),
            oracle_s=round(timing.oracle_s + block.oracle_s, 3),
            error=error,
            texts=(block.text,),
        )


async def _executed(episode: Episode, lowered: LoweredDialect, block: Block) -> tuple[Grade | None, int, str]:
    """The judgement of a program's value, how many steps were executed, and the error instead of a value."""
    try:
        run = await run_program(episode, block.text, lowered, timeout=10)
    except (EpisodeError, RegistryError) as error:
        return None, 0, f"{type(error).__name__}: {error}"
    return run.grade, len(run.program.steps), ""


def judged(start: Prefix, text: str) -> Verdict:
    """The oracle's verdict of a text, byte by byte from its start, whatever the decoder made of it."""
    begun = start.text.decode()
    return start.feed(text[len(begun) :] if text.startswith(begun) else text).verdict


def lowered_for(episode: Episode, dialect: str) -> LoweredDialect:
    """The dialect over the tools of an episode that brings its own."""
    if episode.registry is None:
        raise ValueError(f"episode {episode.name!r} has no registry of its own; give it one")
    types = [] if episode.output_type is None else [episode.output_type]
    return DIALECTS[dialect].lower(episode.registry, types=types)


def program_messages(episode: Episode, lowered: LoweredDialect) -> tuple[Message, ...]:
    """The request for a whole program: the rules, the tools, worked examples, the task."""
    lines = [
        "Solve the task by a program of tool calls. Each line of it binds a new name to the result of a tool, and the "
        "last line returns the answer. Write the program and nothing else.",
        "",
        "Tools:",
        *(f"{one.signature}  {one.description}".rstrip() for one in lowered.registry.values()),
    ]
    messages = [Message(role="system", content="\n".join(lines))]
    for example in worked_examples(lowered, WORKED):
        messages.append(Message(role="user", content=f"Task: {example.task}\nAnswer: {example.answer}"))
        messages.append(Message(role="assistant", content="\n".join(step.text for step in example.steps)))
    answer = "" if episode.output_type is None else f"\nAnswer: {episode.output_type.name}"
    return (*messages, Message(role="user", content=f"Task: {episode.prompt}{answer}"))


class Log:
    """The attempts on disk: a line with the settings, then a line for each attempt."""

    def __init__(self, path: Path, settings: Settings) -> None:
        """Take up what is there. Raises ValueError where it was made under other settings."""
        self.path = path
        self.attempts: list[Attempt] = []
        if path.exists():
            there, self.attempts = read(path)
            if there != settings:
                raise ValueError(f"{path} holds attempts under {there}, not {settings}; move it away, or write --out")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(asdict(settings)) + "\n", encoding="utf-8")

    def add(self, attempt: Attempt) -> None:
        """Write an attempt down at once."""
        self.attempts.append(attempt)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(attempt), ensure_ascii=False) + "\n")


def read(path: Path) -> tuple[Settings, list[Attempt]]:
    """The settings and the attempts of a file."""
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    return Settings(**json.loads(head)), [Attempt.parse(line) for line in lines]


async def measure(model: Model, log: Log, settings: Settings, tasks: Sequence[Task], seconds: float) -> None:
    """Attempt the tasks one after the other, each in all dialects and modes, until all are done or time is up."""
    done = {attempt.key for attempt in log.attempts}
    until = monotonic() + seconds
    session = model.session()
    bench = Bench(model=model, session=session, settings=settings)
    try:
        for task in tasks:
            for dialect in DIALECTS:
                for mode in MODES:
                    if monotonic() > until:
                        return
                    if (task.part.value, task.name, dialect, mode.value) not in done:
                        attempt = await bench.attempt(task, dialect, mode)
                        log.add(attempt)
                        print(*attempt.key, attempt.outcome, attempt.passed, attempt.seconds, file=sys.stderr)
    finally:
        with anyio.CancelScope(shield=True):
            await session.aclose()


def write_report(folder: Path, skipped: Mapping[str, str]) -> str:
    """Write the figures of the attempts in a folder, and their page, which it returns."""
    settings, attempts = read(folder / "dialects.jsonl")
    figures = summary(settings, attempts, skipped)
    text = json.dumps(figures, ensure_ascii=False, indent=1)
    (folder / "dialects.json").write_text(text + "\n", encoding="utf-8")
    told = page(figures)
    (folder / "dialects.md").write_text(told, encoding="utf-8")
    return told


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the command line asks for, and write the report."""
    parser = argparse.ArgumentParser(prog="scripts/bench dialects", description=__doc__)
    parser.add_argument("--model", default="default", help="as `agentkit run --model`: a name, a folder, a GGUF file")
    parser.add_argument("--part", action="append", choices=[str(part) for part in Part])
    parser.add_argument("--minutes", type=float, default=60.0, help="for the attempts of this call")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--step-tokens", type=int, default=64)
    parser.add_argument("--program-tokens", type=int, default=96)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--report", action="store_true", help="attempt nothing, report what is there")
    options = parser.parse_args(arguments)
    skipped: dict[str, str] = {}
    if not options.report:
        gathered = gather([Part(name) for name in options.part or Part])
        skipped = {part.value: why for part, why in gathered.skipped.items()}
        for part, why in skipped.items():
            print(f"{part} is skipped: {why}", file=sys.stderr)
        model = resolve_model(options.model)
        settings = Settings(
            model=model.name,
            turns=options.turns,
            step_tokens=options.step_tokens,
            program_tokens=options.program_tokens,
        )
        log = Log(options.out / "dialects.jsonl", settings)
        anyio.run(measure, model, log, settings, gathered.tasks, options.minutes * 60)
    print(write_report(options.out, skipped))
    return 0


if __name__ == "__main__":
    sys.exit(main())
