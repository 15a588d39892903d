"""Errors of the validation harness; programs that fail are records, only misuse of the harness is an exception.

AufbauError
└── ValidationError
    ├── CorpusError      a corpus folder or a record in it that can't be read
    ├── CompilerMissing  the reference compiler is not installed
    └── ResumeError      earlier records that the present run can't go on from
"""

from __future__ import annotations

from aufbau.errors import AufbauError


class ValidationError(AufbauError):
    """The root of the harness's errors."""


class CorpusError(ValidationError):
    """A corpus can't be read; the message names file, line and remedy."""


class CompilerMissing(ValidationError):
    """The compiler that a language is compared with is not installed."""


class ResumeError(ValidationError):
    """The output folder holds records of another run."""
