"""One attempt: a program or an episode in one mode, from the prompt to a graded record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter

from agentkit.agent import Agent
from agentkit.evaluation import Outcome, run_to_end
from agentkit.limits import UsageLimits
from agentkit.models import Model, Sampling, Session, TokenRecord
from agentkit.modes import Mode
from agentkit.result import StopReason
from agentkit.root import AgentError
from agentkit.study.closing import ClosingSession
from agentkit.study.config import StudyConfig
from agentkit.study.plan import EpisodeTask
from agentkit.study.records import Record
from agentkit.study.task import Resolution, Task
from agentkit.synthesis.graders import GradeKind, Judgement, behaves, compiles, equivalent
from agentkit.synthesis.languages import Language
from agentkit.synthesis.single import Synthesis, synthesize
from aufbau import Verdict

# Decimals of an entropy that are kept: a thousandth of a nat.
_DECIMALS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """What all attempts of a run have in common."""

    config: StudyConfig
    model: Model
    # The model's name in records.
    name: str


async def attempt(bench: Bench, session: Session, task: Task | EpisodeTask, mode: Mode, seed: int) -> Record:
    """Make one attempt and grade it. What goes wrong with the model is part of the record, not raised."""
    if isinstance(task, EpisodeTask):
        return await _episode(bench, session, task, mode, seed)
    try:
        return await _program(bench, session, task, mode, seed)
    except AgentError as error:
        return _record(bench, task, mode, seed, error=f"{type(error).__name__}: {error}")


async def _program(bench: Bench, session: Session, task: Task, mode: Mode, seed: int) -> Record:
    config = bench.config
    # A program of definitions has no type of its own in core ML: there the goal is for the model and the grader only.
    told = task.language is Language.CORE_ML
    made = await synthesize(
        task.language,
        f"{task.prompt}\nType: {task.goal}" if told else task.prompt,
        bench.model,
        goal=None if told else task.goal,
        mode=mode,
        prefix=task.prefix,
        context=dict(task.context) or None,
        sampling=Sampling(temperature=config.temperature, seed=seed),
        stop_policy=config.stop_policy,
        max_tokens=config.max_tokens,
        reasoning_tokens=config.reasoning_tokens,
        session=ClosingSession(session),
        compile=False,
    )
    begun = perf_counter()
    valid, judged = await grade(task, made.text)
    return _made(bench, task, mode, seed, made, valid=valid, judged=judged, grading_s=perf_counter() - begun)


async def grade(task: Task, program: str) -> tuple[bool, Judgement]:
    """Is the program valid at all, and did it pass? The second includes the first."""
    context = dict(task.context) or None
    valid = await compiles(task.language, program, task.goal, context)
    match task.resolution:
        case Resolution.COMPILE | Resolution.TYPED:
            return valid.passed, valid
        case _ if not valid.passed:
            return False, Judgement(passed=False, kind=task.kind, why=valid.why)
        case Resolution.EQUIVALENT:
            return True, equivalent(task.language, program, task.reference, task.goal, context)
        case Resolution.BEHAVIOUR:
            return True, await behaves(task.language, program, task.tests)


def _made(
    bench: Bench,
    task: Task,
    mode: Mode,
    seed: int,
    made: Synthesis,
    *,
    valid: bool,
    judged: Judgement,
    grading_s: float,
) -> Record:
    block = made.block
    thought = block.thought
    timing = block.generation.timing if thought is None else block.generation.timing + thought.timing
    return _record(
        bench,
        task,
        mode,
        seed,
        outcome=block.verdict,
        # The word of the grader alone: a free answer may pass by means that the grammar does not know.
        passed=judged.passed,
        valid=valid,
        why=judged.why,
        finish=block.generation.finish.value,
        prompt_tokens=(thought or block.generation).usage.prompt_tokens,
        reasoning_tokens=len(thought.tokens) if thought is not None else 0,
        taken_back=block.generation.usage.generated_tokens - len(block.generation.tokens),
        tokens=block.generation.tokens,
        steered=block.steered,
        steering=block.steering.value,
        model_s=timing.model_s,
        oracle_s=timing.oracle_s + block.oracle_s,
        grading_s=grading_s,
        text=made.text,
        reasoning=block.reasoning,
    )


async def _episode(bench: Bench, session: Session, task: EpisodeTask, mode: Mode, seed: int) -> Record:
    config = bench.config
    agent = Agent(
        bench.model,
        dialect=task.dialect,
        mode=mode,
        usage_limits=UsageLimits(
            turn_limit=config.turn_limit,
            tokens_per_step=config.max_tokens,
            reasoning_tokens=config.reasoning_tokens,
        ),
        sampling=Sampling(temperature=config.temperature, seed=seed),
        stop_policy=config.stop_policy,
    )
    outcome = await run_to_end(agent, task.episode, session=session)
    result = outcome.result
    returned = result.stop_reason is StopReason.RETURNED
    grade = result.grade
    return _record(
        bench,
        task,
        mode,
        seed,
        outcome=_ending(outcome),
        passed=outcome.passed,
        valid=returned,
        why="" if outcome.passed else outcome.error or (grade.reason if grade else ""),
        finish=result.stop_reason.value,
        prompt_tokens=result.usage.prompt_tokens,
        reasoning_tokens=sum(len(one.reasoning) for one in result.telemetry),
        taken_back=result.usage.generated_tokens
        - sum(len(one.tokens) + len(one.reasoning) for one in result.telemetry),
        tokens=tuple(token for one in result.telemetry for token in one.tokens),
        steered=sum(token.steered for one in result.telemetry for token in one.tokens),
        model_s=result.timing.model_s,
        oracle_s=result.timing.oracle_s,
        text="\n".join(turn.text for turn in result.turns),
        reasoning="\n".join(turn.thought for turn in result.turns if turn.thought),
        turns=len(result.turns),
    )


def _ending(outcome: Outcome) -> Verdict:
    """The verdict on an episode: it returned, its last text was no step, or it was under way."""
    result = outcome.result
    if result.stop_reason is StopReason.RETURNED:
        return Verdict.SATISFIED
    refused = bool(result.turns) and result.turns[-1].step is None
    return Verdict.LOST if refused else Verdict.LIVE


def _record(
    bench: Bench,
    task: Task | EpisodeTask,
    mode: Mode,
    seed: int,
    *,
    outcome: Verdict = Verdict.LIVE,
    passed: bool = False,
    valid: bool = False,
    why: str = "",
    finish: str = "error",
    prompt_tokens: int = 0,
    reasoning_tokens: int = 0,
    taken_back: int = 0,
    tokens: Iterable[TokenRecord] = (),
    steered: int = 0,
    steering: str = "",
    model_s: float = 0.0,
    oracle_s: float = 0.0,
    grading_s: float = 0.0,
    text: str = "",
    reasoning: str = "",
    turns: int = 1,
    error: str | None = None,
) -> Record:
    program = task if isinstance(task, Task) else None
    chosen = list(tokens)
    return Record(
        settings=bench.config.digest,
        task_digest=task.digest,
        model=bench.name,
        suite=task.suite,
        task=task.name,
        language=program.language.value if program else "tool",
        family=program.family if program else "tool",
        covered=program.covered if program else False,
        resolution=program.resolution.value if program else "value",
        kind=(program.kind if program else GradeKind.BEHAVIOUR).value,
        mode=mode.value,
        seed=seed,
        outcome=outcome.value,
        passed=passed,
        valid=valid,
        why=why,
        finish=finish,
        tokens=len(chosen),
        reasoning_tokens=reasoning_tokens,
        prompt_tokens=prompt_tokens,
        taken_back=taken_back,
        entropy=tuple(round(token.entropy, _DECIMALS) for token in chosen),
        rejected=tuple(token.rejected for token in chosen),
        steered=steered,
        steering=steering,
        model_s=round(model_s, 4),
        oracle_s=round(oracle_s, 4),
        grading_s=round(grading_s, 4),
        text=text,
        reasoning=reasoning,
        turns=turns,
        error=error,
    )
