"""The errors of the study, one tree under `AgentError`.

StudyError (an AgentError)
├── TaskError     a task file that can't be used; the message names file, task and key
├── ConfigError   a study's settings that can't be used, or a model that has no source
└── RecordError   records that are damaged, held by another process, or too few for what is asked
"""

from __future__ import annotations

from agentkit.root import AgentError


class StudyError(AgentError):
    """The root of what the study raises."""


class TaskError(StudyError):
    """A file of tasks that can't be used."""


class ConfigError(StudyError):
    """Settings of a study that can't be used."""


class RecordError(StudyError):
    """Records that can't be read, written or summed up."""
