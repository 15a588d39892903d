"""Evaluations of whole suites: models, modes and repetitions, recorded one by one, resumed where they stopped."""

from agentkit.evals.errors import EvalError
from agentkit.evals.plan import Cell, EvalPlan, EvalSettings, EvalTask, load_tasks
from agentkit.evals.records import EvalRecord, RecordFile, read_records
from agentkit.evals.runner import run_plan
from agentkit.evals.summary import EvalReport, EvalRow

__all__ = [
    "Cell",
    "EvalError",
    "EvalPlan",
    "EvalRecord",
    "EvalReport",
    "EvalRow",
    "EvalSettings",
    "EvalTask",
    "RecordFile",
    "load_tasks",
    "read_records",
    "run_plan",
]
