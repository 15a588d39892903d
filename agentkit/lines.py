"""JSON lines on disk: appended whole by one process, mended after an interruption, read up to the last line end."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, ClassVar, Protocol, Self, TypeVar

from agentkit.root import AgentError

Record = TypeVar("Record")


class Lined(Protocol):
    """A record of a `LineFile`."""

    def to_line(self) -> str:
        """The record as one line of JSON, with its end."""
        ...


class LineFile:
    """A file of records that this process alone writes to; derived classes say what they raise."""

    error: ClassVar[type[AgentError]]
    elsewhere: ClassVar[str]
    """How the file may be another one, as a user is told."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        """Open for appending; a line that an interruption cut is taken away. Raises `error`."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = self.path.open("ab+")
        except OSError as error:
            raise self.error(f"{self.path}: can't be written ({error.strerror}); {self.elsewhere}") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise self.error(
                f"{self.path} is being written by another process; wait for it, or {self.elsewhere}"
            ) from None
        _mend(file)
        self._file = file
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def append(self, record: Lined) -> None:
        """Write one line in a single call, and have it on disk before returning."""
        if self._file is None:
            raise self.error(f"{self.path} is not open; use it in a `with` block")
        try:
            self._file.write(record.to_line().encode())
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self.error(f"{self.path}: can't be written ({error.strerror}); what it holds stays good") from error


def _mend(file: IO[bytes]) -> None:
    """Cut off what stands after the last line end."""
    file.seek(0)
    file.truncate(file.read().rfind(b"\n") + 1)


def read_lines(data: bytes, path: Path, read: Callable[[Any], Record], error: type[AgentError]) -> Iterator[Record]:
    """The records of a file's contents, but for the end of a line that is still being written. Raises `error`."""
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            yield read(json.loads(line))
        except (ValueError, TypeError, AttributeError) as problem:
            raise error(
                f"{path}, line {number}: no record ({problem}); take the line away, and the attempt is made anew"
            ) from problem
