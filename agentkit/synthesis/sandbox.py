"""Runs a command that nobody vouches for: limited in time, memory, output, files and processes, without a network.

What binds on every POSIX system are the resource limits, the wall clock and the end of the whole process group. Where
the system permits namespaces (Linux, as root or with unprivileged user namespaces), the command has no network, sees
no other process, finds the shared folders empty, and nothing that it starts outlives it; `SandboxResult.isolated` says
whether that was so. Run by root, the command becomes a user that owns nothing; run by anybody else, it stays that user
and may write what they may write outside the shared folders. A command may always read what its user may read.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import IO, Final

import anyio
import anyio.abc

from agentkit.synthesis.errors import SandboxError

_LAUNCHER: Final = Path(__file__).with_name("launcher.py")
# Users that no distribution gives out by itself; one at random, so that two runs don't share a count of processes.
_USERS: Final = range(60_000, 65_000)
# Seconds for the launcher to end all processes, and for the last of them to let go of its files.
_GRACE_S: Final = 2.0
_PASSED_ON: Final = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_PASSED_ON_BEGINNINGS: Final = ("OCAML", "CAML", "OPAM")


class End(Enum):
    """How a command in a sandbox ended."""

    # By itself; `SandboxResult.status` is its exit status.
    EXITED = "exited"
    # By a signal, which `SandboxResult.status` names.
    SIGNALLED = "signalled"
    # It used up its wall clock or its processor time.
    TIME = "time"
    # It wrote more than may be kept.
    OUTPUT = "output"
    # It wrote a file larger than allowed.
    FILE = "file"


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxLimits:
    """What a command may use."""

    wall_s: float = 5.0
    """Seconds on the clock; then the whole process group is killed."""

    cpu_s: int = 4
    """Seconds of processor time of one process."""

    memory_bytes: int = 512 << 20
    """Address space of one process; what asks for more is refused it."""

    file_bytes: int = 1 << 20
    """Size of any file it writes."""

    output_bytes: int = 64 << 10
    """Standard output, and again standard error; a command that writes more is killed."""

    processes: int = 1
    """Processes and threads of its user. Where there are no namespaces, those of the whole session count too."""

    files: int = 64
    """Files open at a time."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not getattr(self, name) > 0:
                raise ValueError(f"SandboxLimits({name}={getattr(self, name)!r}): a limit is greater than 0")

    def resources(self) -> dict[str, int]:
        """The limits as the kernel's, by the names of the module `resource`."""
        return {
            "RLIMIT_AS": self.memory_bytes,
            "RLIMIT_CORE": 0,
            "RLIMIT_CPU": self.cpu_s,
            "RLIMIT_FSIZE": self.file_bytes,
            "RLIMIT_NOFILE": self.files,
            "RLIMIT_NPROC": self.processes,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxResult:
    """How a command ended, and what it wrote."""

    end: End
    status: int
    """Exit status, or number of the signal."""

    stdout: bytes
    stderr: bytes
    cpu_s: float | None
    """Processor time; None where the command was killed from outside."""

    isolated: bool | None
    """Whether it had namespaces of its own; None where it was killed before that was told."""

    @property
    def succeeded(self) -> bool:
        """It ended by itself, with status 0."""
        return self.end is End.EXITED and self.status == 0


@asynccontextmanager
async def working_folder() -> AsyncIterator[Path]:
    """A temporary folder that others may look into but not write to; removed whatever happens."""
    folder = Path(tempfile.mkdtemp(prefix="agentkit-"))
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        with anyio.CancelScope(shield=True):
            await _remove(folder)


async def _remove(folder: Path) -> None:
    """Remove a folder, in which processes that are being ended may still write for a moment."""
    with anyio.move_on_after(_GRACE_S):
        while True:
            try:
                shutil.rmtree(folder)
                return
            except OSError:
                await anyio.sleep(0.02)
    shutil.rmtree(folder)


async def run_sandboxed(
    command: Sequence[str],
    folder: Path,
    *,
    limits: SandboxLimits,
    stdin: bytes = b"",
    drop_user: bool = True,
    isolate: bool = True,
) -> SandboxResult:
    """Run `command` in `folder` and wait for its end.

    `stdin` comes through a pipe. With `drop_user` root gives `folder` to an unused user and runs the command as that
    one; compilers, which may lie in the user's own folder, go without. Cancelling kills the command and all it started.
    """
    user = secrets.choice(_USERS) if drop_user and os.geteuid() == 0 else None
    if user is not None:
        os.chown(folder, user, user)
    with tempfile.TemporaryFile() as report:
        order = {
            "command": list(command),
            "environment": _environment(),
            "isolate": isolate,
            "limits": limits.resources(),
            "report": report.fileno(),
            "user": user,
        }
        capture = _Capture(limits.output_bytes)
        out_of_time = await _run(json.dumps(order), folder, report, capture, stdin, limits.wall_s)
        return _result(_read_report(report), capture, out_of_time, limits.cpu_s)


def _environment() -> dict[str, str]:
    passed = {k: v for k, v in os.environ.items() if k in _PASSED_ON or k.startswith(_PASSED_ON_BEGINNINGS)}
    return {"PATH": os.defpath, **passed, "HOME": ".", "LC_ALL": "C", "TMPDIR": "."}


class _Capture:
    """What a command writes, up to a limit for each stream."""

    def __init__(self, limit: int) -> None:
        self.texts: dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
        self.overflowed = False
        self._limit = limit

    async def read(self, name: str, stream: anyio.abc.ByteReceiveStream, scope: anyio.CancelScope) -> None:
        """Keep what comes; end `scope` when it is too much."""
        kept = self.texts[name]
        async for data in stream:
            kept += data[: self._limit - len(kept) + 1]
            if len(kept) > self._limit:
                del kept[self._limit :]
                self.overflowed = True
                scope.cancel()
                return


async def _run(order: str, folder: Path, report: IO[bytes], capture: _Capture, stdin: bytes, wall_s: float) -> bool:
    """Start the launcher, feed and read it; says whether the wall clock ended it."""
    # A shield only around the start: a process that is being started can't be killed yet.
    with anyio.CancelScope(shield=True):
        process = await anyio.open_process(
            [sys.executable, "-I", "-S", str(_LAUNCHER), order],
            cwd=folder,
            env={"LC_ALL": "C"},
            start_new_session=True,
            pass_fds=(report.fileno(),),
        )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    try:
        with anyio.move_on_after(wall_s) as clock:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(capture.read, "stdout", process.stdout, tasks.cancel_scope)
                tasks.start_soon(capture.read, "stderr", process.stderr, tasks.cancel_scope)
                tasks.start_soon(_feed, process.stdin, stdin)
            if not capture.overflowed:
                await process.wait()
        return clock.cancelled_caught
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process)
            await process.aclose()


async def _feed(stream: anyio.abc.ByteSendStream, data: bytes) -> None:
    try:
        await stream.send(data)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
        return  # the command ended, or closed its input, without reading: its own business
    await stream.aclose()


async def _end(process: anyio.abc.Process) -> None:
    """Ask the launcher to end everything; if it can't, end its process group."""
    with suppress(ProcessLookupError):  # it may end by itself in between
        if process.returncode is None:
            os.kill(process.pid, signal.SIGTERM)  # `process.terminate` might take its status from the event loop
            with anyio.move_on_after(_GRACE_S):
                await process.wait()
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def _read_report(report: IO[bytes]) -> dict[str, object]:
    report.seek(0)
    text = report.read()
    told: dict[str, object] = json.loads(text) if text else {}
    if "failed" in told:
        raise SandboxError(f"the sandbox could not be set up: {told['failed']}")
    return told


def _result(told: Mapping[str, object], capture: _Capture, out_of_time: bool, cpu_s: float) -> SandboxResult:
    code = told.get("exit")
    status = code if isinstance(code, int) else -signal.SIGKILL
    cpu = told.get("cpu_s")
    if out_of_time or status == -signal.SIGXCPU or (isinstance(cpu, float) and cpu >= cpu_s):
        end = End.TIME
    elif capture.overflowed:
        end = End.OUTPUT
    elif not told:
        raise SandboxError("the sandbox was killed from outside before the command ended")
    elif status == -signal.SIGXFSZ:
        end = End.FILE
    else:
        end = End.EXITED if status >= 0 else End.SIGNALLED
    isolated = told.get("isolated")
    return SandboxResult(
        end=end,
        status=abs(status),
        stdout=bytes(capture.texts["stdout"]),
        stderr=bytes(capture.texts["stderr"]),
        cpu_s=cpu if isinstance(cpu, float) else None,
        isolated=isolated if isinstance(isolated, bool) else None,
    )
