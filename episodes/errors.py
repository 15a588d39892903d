"""The tree of errors that episodes raise; what a tool raises stays the registry's error.

EpisodeError
├── SpecError          an episode or suite that cannot be used; says the file, the place, what was expected
├── StepError          a step that cannot be executed as it stands
│   ├── UnboundNameError   it refers to a name that Γ lacks
│   ├── BoundNameError     it binds a name that Γ has
│   └── FieldError         it reads a field that the value lacks
├── ProgramError       a text that is no program, or a program without a return
├── SuiteError         an outside suite that is not installed, or of which something is not as expected
├── InexpressibleError    (episodes.importers.base) a gold program that leaves the types of its source
└── TranscriptError    JSON that is not a transcript
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class EpisodeError(Exception):
    """The root of every error of this package."""


class SpecError(EpisodeError):
    """An episode or suite cannot be used; the message says where, what was expected and how to mend it."""


class StepError(EpisodeError):
    """A step cannot be executed; nothing was bound."""


class UnboundNameError(StepError, KeyError):
    """A step refers to a name that Γ lacks."""

    # KeyError, which makes Γ a proper Mapping, would show the message in quotes.
    __str__ = Exception.__str__


class BoundNameError(StepError):
    """A step binds a name that Γ has already."""


class FieldError(StepError):
    """A step reads a field that the value lacks."""


class ProgramError(EpisodeError):
    """A text is no program of the dialect, or a program has no return; nothing was executed after the fault."""


class SuiteError(EpisodeError):
    """An outside suite can't be used; the message names the package and how to install it."""


class TranscriptError(EpisodeError):
    """JSON that is not a transcript; the message says which part."""


def near_miss(word: str, known: Iterable[str]) -> str:
    """A sentence that names the nearest known word, or all of them when none is near."""
    known = sorted(known)
    near = get_close_matches(word, known, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known: {', '.join(known)}" if known else "there is none yet"
