"""The tree of errors that registries and tools raise, and the one exception that tools raise themselves.

RegistryError
├── SignatureError        a function cannot become a tool: a hint, a default or a name is of no use
├── SchemaError           a JSON Schema that means no type here: the JSON pointer and the keyword are named
├── DuplicateToolError    two tools, or two different types, would share one name
├── UnknownToolError      no tool of that name; also a KeyError, because a registry is a mapping
├── UnknownTypeError      no type of that spelling
├── MismatchError         a value is not of a type
├── ArgumentError         a call's argument is missing, unknown, or not of its parameter's type
├── ResultError           a tool returned something that is not of its declared type
├── ToolTimeoutError      a call took longer than it was given
├── ToolExecutionError    a tool raised; the original exception is the `__cause__`
└── CorpusError           a document collection cannot be read or searched

ModelRetry                raised by a tool to ask the caller for another try; it passes through untouched
"""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable

_SHOWN = reprlib.Repr()
_SHOWN.maxstring = _SHOWN.maxother = 80


def shown(value: object) -> str:
    """A value as messages show it: its representation, cut where it is long, and its class."""
    try:
        text = _SHOWN.repr(value)
    except Exception as error:  # a value whose own repr is broken must not hide the message it belongs to
        text = f"<unprintable: its repr raised {type(error).__name__}>"
    return f"{text} ({type(value).__name__})"


def near_misses(name: str, known: Iterable[str]) -> str:
    """The known names that resemble one that is not known, as the end of a message."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=3)
    if close:
        return "did you mean " + " or ".join(repr(other) for other in close) + "?"
    return "there is " + (", ".join(repr(other) for other in names) if names else "none")


class RegistryError(Exception):
    """The root of every error of this package."""


class SignatureError(RegistryError):
    """A function cannot become a tool; the message names the tool, the parameter and the remedy."""


class SchemaError(RegistryError):
    """A JSON Schema means no type here, or bounds values senselessly; the message names place and keyword."""

    def __init__(self, pointer: str, problem: str) -> None:
        self.pointer = pointer
        self.problem = problem
        super().__init__(f"{pointer}: {problem}")


class DuplicateToolError(RegistryError):
    """A name that a registry already uses for another tool or for another type."""


class UnknownToolError(RegistryError, KeyError):
    """A registry has no tool of that name; the message lists near misses."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name = name
        self.known = tuple(known)
        super().__init__(f"no tool is called {name!r}; {near_misses(name, self.known)}")

    def __str__(self) -> str:
        # KeyError would show the representation of the message.
        return str(self.args[0])


class UnknownTypeError(RegistryError):
    """A registry has no type of that spelling; the message lists near misses."""


class MismatchError(RegistryError):
    """A value is not of a type: what was expected, what was given, and where inside the value."""

    def __init__(self, expected: str, given: object, path: str = "") -> None:
        self.expected = expected
        self.given = given
        self.path = path
        where = f" at {path}" if path else ""
        super().__init__(f"expected {expected}{where}, got {shown(given)}")

    def inside(self, step: str) -> MismatchError:
        """The same mismatch, seen from the value that holds the mismatched one."""
        return MismatchError(self.expected, self.given, step + self.path)


class ArgumentError(RegistryError):
    """An argument of a call is missing, unknown or not of its parameter's type."""

    def __init__(self, tool: str, parameter: str, problem: str) -> None:
        self.tool = tool
        self.parameter = parameter
        self.problem = problem
        super().__init__(f"{tool}: argument {parameter!r}: {problem}")


class ResultError(RegistryError):
    """A tool returned a value that is not of its declared type: the tool is at fault, not its caller."""

    def __init__(self, tool: str, problem: str) -> None:
        self.tool = tool
        self.problem = problem
        super().__init__(f"{tool}: result: {problem}; mend the tool or its return annotation")


class ToolTimeoutError(RegistryError):
    """A call took longer than it was given."""

    def __init__(self, tool: str, timeout: float) -> None:
        self.tool = tool
        self.timeout = timeout
        super().__init__(f"{tool}: no result within {timeout:g} s; allow more time or make the tool faster")


class ToolExecutionError(RegistryError):
    """A tool raised an exception, which is the `__cause__` of this one."""

    def __init__(self, tool: str, error: Exception) -> None:
        self.tool = tool
        self.error = error
        super().__init__(f"{tool}: raised {type(error).__name__}: {error}")


class CorpusError(RegistryError):
    """A document collection cannot be read or searched; the message says which part and how to mend it."""


class ModelRetry(Exception):
    """Raised by a tool whose arguments are well typed but wrong; the message tells a model what to change."""
