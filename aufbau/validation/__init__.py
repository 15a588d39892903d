"""The validation harness: a grammar against the compiler of its language, at every byte prefix."""

from aufbau.validation.compilers import CommandCompiler, Compiler, Diagnosis, Outcome, find_compiler
from aufbau.validation.corpora import Language, Program, ProgramSet, read_corpus
from aufbau.validation.errors import CompilerMissing, CorpusError, ResumeError, ValidationError
from aufbau.validation.everywhere import Ending, Fate, Stray, Walk, Walker
from aufbau.validation.generate import Generator
from aufbau.validation.handmade import corners
from aufbau.validation.mutate import Mutant, Mutation, Mutator
from aufbau.validation.page import markdown
from aufbau.validation.prefixes import Judgement, judge
from aufbau.validation.records import Finding, Journal, Manifest, Record
from aufbau.validation.recursion import Probe, probes
from aufbau.validation.report import Report
from aufbau.validation.run import Plan, execute
from aufbau.validation.statistics import Share, Spread
from aufbau.validation.sweep import Sweep
from aufbau.validation.tally import Tally
from aufbau.validation.witnesses import Completion, completions
from aufbau.validation.workbench import Settings, Task, Workbench

__all__ = [
    "CommandCompiler",
    "Compiler",
    "CompilerMissing",
    "Completion",
    "CorpusError",
    "Diagnosis",
    "Ending",
    "Fate",
    "Finding",
    "Generator",
    "Journal",
    "Judgement",
    "Language",
    "Manifest",
    "Mutant",
    "Mutation",
    "Mutator",
    "Outcome",
    "Plan",
    "Probe",
    "Program",
    "ProgramSet",
    "Record",
    "Report",
    "ResumeError",
    "Settings",
    "Share",
    "Spread",
    "Stray",
    "Sweep",
    "Tally",
    "Task",
    "ValidationError",
    "Walk",
    "Walker",
    "Workbench",
    "completions",
    "corners",
    "execute",
    "find_compiler",
    "judge",
    "markdown",
    "probes",
    "read_corpus",
]
