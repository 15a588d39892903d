"""Records and settings that several tests of the study share."""

from __future__ import annotations

from pathlib import Path

from agentkit.study import Record, StudyConfig

SETTINGS = """
name = "sample"
modes = [{modes}]
suites = ["few.toml"]
max_tokens = 24
reasoning_tokens = 8

[[model]]
name = "random"
source = "default"
"""
FEW = """
language = "fun"
resolution = "typed"

[[task]]
name = "number"
prompt = "Any number."
goal = "Int"
reference = "1"

[[task]]
name = "predicate"
prompt = "Any predicate."
goal = "Int -> Bool"
prefix = "(x: Int) =>"
reference = "(x: Int) => true"
"""


def sample_config(folder: Path, *modes: str) -> StudyConfig:
    """A study of two small tasks in finite lambda, whose files are written to a folder."""
    (folder / "few.toml").write_text(FEW, encoding="utf-8")
    text = SETTINGS.format(modes=", ".join(f'"{mode}"' for mode in modes or ("direct", "syntactic")))
    (folder / "study.toml").write_text(text, encoding="utf-8")
    return StudyConfig.load(folder / "study.toml")


def record(
    task: str = "t",
    mode: str = "direct",
    *,
    model: str = "m",
    family: str = "ml",
    kind: str = "behaviour",
    passed: bool = False,
    valid: bool = False,
    outcome: str = "satisfied",
    covered: bool = True,
    tokens: int = 4,
    reasoning: int = 0,
    entropy: tuple[float, ...] = (),
    rejected: tuple[int, ...] = (),
    text: str = "text",
    error: str | None = None,
    settings: str = "s",
) -> Record:
    """A record in which only what a test is about stands out."""
    return Record(
        settings=settings,
        task_digest=f"digest of {task}",
        model=model,
        suite="suite",
        task=task,
        language=family,
        family=family,
        covered=covered,
        resolution="behaviour",
        kind=kind,
        mode=mode,
        seed=0,
        outcome=outcome,
        passed=passed,
        valid=valid,
        why="",
        finish="stop",
        tokens=tokens,
        reasoning_tokens=reasoning,
        prompt_tokens=10,
        taken_back=0,
        entropy=entropy,
        rejected=rejected,
        steered=0,
        steering="not_needed",
        model_s=1.0,
        oracle_s=0.1,
        grading_s=0.0,
        text=text,
        error=error,
    )
