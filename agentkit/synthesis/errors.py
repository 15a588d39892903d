"""The errors of synthesis and grading, one tree under `AgentError`.

SynthesisError (an AgentError)
├── CompilerMissing  a compiler that a grade needs is not installed
├── TermError        a term or type of the lambda calculi that can't be read, or has no type
├── FuelSpent        a term whose normal form is not reached within the budget
├── TestsError       unit tests, a goal or a reference that can't be used, whatever the program
└── SandboxError     a process could not be put into its sandbox
"""

from __future__ import annotations

from agentkit.root import AgentError


class SynthesisError(AgentError):
    """The root of what synthesis and its graders raise."""


class CompilerMissing(SynthesisError):
    """A compiler that is not on PATH. `.program` names it, the message what to install."""

    def __init__(self, program: str, remedy: str) -> None:
        super().__init__(f"{program} is not on PATH, so no compiler has judged the program; install it: {remedy}")
        self.program = program


class TermError(SynthesisError):
    """A text that is no well-typed term or no type."""


class FuelSpent(SynthesisError):
    """A term that takes more steps, or is nested deeper, than the budget allows."""


class TestsError(SynthesisError):
    """Unit tests, a goal or a reference that no program could be graded by."""

    __test__ = False  # not a class of tests


class SandboxError(SynthesisError):
    """The sandbox itself failed; nothing is known of the program."""
