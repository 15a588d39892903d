"""Single-shot synthesis of programs, and graders of what they are and do."""

from agentkit.synthesis.errors import CompilerMissing, FuelSpent, SandboxError, SynthesisError, TermError, TestsError
from agentkit.synthesis.graders import GradeKind, Judgement, behaves, compiles, equivalent
from agentkit.synthesis.harness import UnitTest
from agentkit.synthesis.languages import Language
from agentkit.synthesis.sandbox import SandboxLimits
from agentkit.synthesis.single import Synthesis, synthesize

__all__ = [
    "CompilerMissing",
    "FuelSpent",
    "GradeKind",
    "Judgement",
    "Language",
    "SandboxError",
    "SandboxLimits",
    "Synthesis",
    "SynthesisError",
    "TermError",
    "TestsError",
    "UnitTest",
    "behaves",
    "compiles",
    "equivalent",
    "synthesize",
]
