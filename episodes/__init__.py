"""Episodes: what they are, Γ with values, how a step is executed, recorded and judged."""

from episodes.context import Binding, Bindings
from episodes.errors import (
    BoundNameError,
    EpisodeError,
    FieldError,
    ProgramError,
    SpecError,
    StepError,
    SuiteError,
    TranscriptError,
    UnboundNameError,
)
from episodes.execute import execute_step, known_arguments
from episodes.grading import Environment, Grade, Grader, approx, contains, equals, one_of, predicate
from episodes.limits import EpisodeLimits
from episodes.outcome import Bound, Returned, StepOutcome
from episodes.plain import plain, short
from episodes.programs import ProgramOutcome, ProgramRun, execute_program, read_program, run_program
from episodes.spec import Episode
from episodes.suite import Suite
from episodes.transcript import Result, Transcript, Turn

__all__ = [
    "Binding",
    "Bindings",
    "Bound",
    "BoundNameError",
    "Environment",
    "Episode",
    "EpisodeError",
    "EpisodeLimits",
    "FieldError",
    "Grade",
    "Grader",
    "ProgramError",
    "ProgramOutcome",
    "ProgramRun",
    "Result",
    "Returned",
    "SpecError",
    "StepError",
    "StepOutcome",
    "Suite",
    "SuiteError",
    "Transcript",
    "TranscriptError",
    "Turn",
    "UnboundNameError",
    "approx",
    "contains",
    "equals",
    "execute_program",
    "execute_step",
    "known_arguments",
    "one_of",
    "plain",
    "predicate",
    "read_program",
    "run_program",
    "short",
]
