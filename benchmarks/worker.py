"""The measuring side of the exchange: an engine in a process of its own, every request bounded in time."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from queue import Empty, Queue
from threading import Thread
from types import TracebackType
from typing import Any, Self

START_LIMIT_S = 60.0  # an interpreter that has not said who it is by then is broken


class WorkerFailed(RuntimeError):
    """The engine's process ended without an answer; the message carries what it wrote."""


class Worker:
    """An engine's process, started anew after a request that ran past its limit."""

    def __init__(self, command: Sequence[str], *, env: dict[str, str] | None = None) -> None:
        self._command = list(command)
        self._env = env
        self._start()

    def _start(self) -> None:
        # A file, not a pipe: nobody reads while the engine runs, and a full pipe would stop it.
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self._process = subprocess.Popen(
            self._command,
            env=self._env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
        )
        self._lines: Queue[str] = Queue()
        # A thread reads, so that waiting for an answer can end without one.
        self._reader = Thread(target=self._read, args=(self._process, self._lines), daemon=True)
        self._reader.start()
        facts = self._answer(START_LIMIT_S)
        if facts is None:
            raise WorkerFailed(f"{self._command[0]} did not start within {START_LIMIT_S:.0f} s")
        self.facts: dict[str, str] = facts

    @staticmethod
    def _read(process: subprocess.Popen[str], lines: Queue[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)
        lines.put("")

    def _answer(self, limit_s: float) -> dict[str, Any] | None:
        try:
            line = self._lines.get(timeout=limit_s)
        except Empty:
            self.close()
            return None
        if not line:
            self._process.wait()
            self._errors.seek(0)
            said = self._errors.read().strip()
            self.close()
            raise WorkerFailed(f"{' '.join(self._command)} ended early: {said[-2000:] or 'it wrote nothing'}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, request: dict[str, Any], *, limit_s: float) -> dict[str, Any] | None:
        """The engine's answer, or None when it ran past the limit (it is killed, and started at the next)."""
        if self._process.returncode is not None:
            self._start()
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._answer(limit_s)

    def close(self) -> None:
        """End the process and wait for it."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            assert stream is not None
            stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
