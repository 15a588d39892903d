"""Whole programs: several bindings and one return, read by the oracle and executed with the executor of steps."""

from __future__ import annotations

from dataclasses import dataclass

from aufbau import Verdict
from dialects import LoweredDialect, Program, Root
from episodes.context import Bindings
from episodes.errors import ProgramError
from episodes.execute import execute_step
from episodes.grading import Environment, Grade
from episodes.outcome import Bound, Returned
from episodes.spec import Episode
from registry import Registry
from registry.types import ToolType


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramOutcome:
    """What a program did: Γ after its bindings, what each of them bound, and what it returned."""

    bindings: Bindings
    bound: tuple[Bound, ...]
    returned: Returned


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramRun:
    """A program that was executed for an episode, with the judgement of its value (None: the episode has no grader)."""

    program: Program
    outcome: ProgramOutcome
    grade: Grade | None


def read_program(
    lowered: LoweredDialect, text: str, bindings: Bindings | None = None, *, output_type: ToolType | None = None
) -> Program:
    """The program that a text is, under Γ. Raises `ProgramError`, which says where it is lost or that it stops."""
    start = lowered.start((bindings or Bindings()).types(), output_type, Root.PROGRAM)
    prefix = start.feed(text)
    tree = prefix.tree() if prefix.verdict is Verdict.SATISFIED else None
    if tree is not None:
        return lowered.read_program(tree)
    if prefix.verdict is Verdict.LOST:
        raise ProgramError(f"not a program of the {lowered.name} dialect: {prefix.explain()}")
    raise ProgramError(f"the program stops after {len(text):,} characters; it needs a return")


async def execute_program(
    program: Program,
    bindings: Bindings,
    registry: Registry,
    *,
    output_type: ToolType | None = None,
    timeout: float | None = None,
) -> ProgramOutcome:
    """Execute the steps of a program in turn; `timeout` is in seconds for each tool call.

    Raises what `execute_step` raises, with a note that names the step; Γ, being immutable, is untouched.
    """
    bound: list[Bound] = []
    for number, step in enumerate(program.steps, 1):
        try:
            outcome = await execute_step(step, bindings, registry, output_type=output_type, timeout=timeout)
        except Exception as error:
            error.add_note(f"in step {number} of {len(program.steps)}")
            raise
        if isinstance(outcome, Returned):
            return ProgramOutcome(bindings=bindings, bound=tuple(bound), returned=outcome)
        bound.append(outcome)
        bindings = bindings.bind(outcome.binding)
    raise ProgramError("the program has no return; its last step is one")


async def run_program(
    episode: Episode, text: str, lowered: LoweredDialect, *, timeout: float | None = None
) -> ProgramRun:
    """Read a program for an episode, execute it with the tools of the lowered registry, and grade what it returns."""
    program = read_program(lowered, text, episode.bindings, output_type=episode.output_type)
    outcome = await execute_program(
        program,
        episode.bindings,
        episode.registry_for(lowered.registry),
        output_type=episode.output_type,
        timeout=timeout,
    )
    environment = Environment(before=episode.bindings, after=outcome.bindings)
    return ProgramRun(program=program, outcome=outcome, grade=episode.grade(outcome.returned.value, environment))
