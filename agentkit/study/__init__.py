"""The generation study: tasks, attempts in five modes, records, statistics and the report."""

from agentkit.study.config import ModelSource, StudyConfig
from agentkit.study.errors import ConfigError, RecordError, StudyError, TaskError
from agentkit.study.records import Record, read_records
from agentkit.study.runner import run_model, study_tasks
from agentkit.study.task import Resolution, Task, load_tasks

__all__ = [
    "ConfigError",
    "ModelSource",
    "Record",
    "RecordError",
    "Resolution",
    "StudyConfig",
    "StudyError",
    "Task",
    "TaskError",
    "load_tasks",
    "read_records",
    "run_model",
    "study_tasks",
]
