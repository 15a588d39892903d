"""The sandbox: every limit binds, nothing is left behind, and cancelling ends what was started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from agentkit.synthesis import sandbox
from agentkit.synthesis.errors import SandboxError
from agentkit.synthesis.sandbox import End, SandboxLimits, SandboxResult, run_sandboxed, working_folder

LIMITS = SandboxLimits(wall_s=10.0, cpu_s=5, file_bytes=100_000, output_bytes=5_000, processes=20)
BACKENDS = ("asyncio", "trio")
LAUNCHER = Path(sandbox.__file__).with_name("launcher.py")


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """All temporary folders of a test lie in one that others may enter, and are gone in the end."""
    root = Path(tempfile.mkdtemp(prefix="sandbox-test-"))
    root.chmod(0o755)
    monkeypatch.setattr(tempfile, "tempdir", str(root))
    yield root
    assert list(root.iterdir()) == []
    root.rmdir()


async def sandboxed(script: str, limits: SandboxLimits = LIMITS, **options: bool) -> SandboxResult:
    async with working_folder() as folder:
        (folder / "run").mkdir()
        return await run_sandboxed(["sh", "-c", script], folder / "run", limits=limits, stdin=b"given\n", **options)


def run(script: str, limits: SandboxLimits = LIMITS, backend: str = "asyncio") -> SandboxResult:
    async def main() -> SandboxResult:
        return await sandboxed(script, limits)

    return anyio.run(main, backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_command_is_fed_read_and_told_how_it_ended(backend: str) -> None:
    result = run("read line; echo got $line; echo beside >&2; exit 3", backend=backend)
    assert (result.end, result.status, result.succeeded) == (End.EXITED, 3, False)
    assert (result.stdout, result.stderr) == (b"got given\n", b"beside\n")
    assert run("true").succeeded


def gone(marker: str) -> bool:
    """Whether no process with that word is left, or all end at once: what was killed takes a moment to vanish."""
    deadline = time.monotonic() + 2.0
    while running(marker):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def running(marker: str) -> bool:
    """Whether a process with that word in its command line is there."""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and marker.encode() in (entry / "cmdline").read_bytes():
                return True
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended while we looked
    return False


ENDS = [
    ("exec sleep 4001", SandboxLimits(wall_s=0.3), End.TIME, 9),
    ("while :; do :; done", SandboxLimits(wall_s=20.0, cpu_s=1), End.TIME, 24),
    ("yes", LIMITS, End.OUTPUT, 9),
    ("yes >&2", LIMITS, End.OUTPUT, 9),
    ("kill -SEGV $$", LIMITS, End.SIGNALLED, 11),
    ("exec cat /dev/zero > big", LIMITS, End.FILE, 25),
    ("nosuchcommand", LIMITS, End.EXITED, 127),
    ("sleep 4002 & setsid sleep 4003 & sleep 4004 & exit 5", LIMITS, End.EXITED, 5),
]


@pytest.mark.parametrize(("script", "limits", "end", "status"), ENDS, ids=[case[0][:20] for case in ENDS])
def test_how_a_command_ends(script: str, limits: SandboxLimits, end: End, status: int) -> None:
    result = run(script, limits)
    assert (result.end, result.status) == (end, status)
    assert len(result.stdout) <= limits.output_bytes and len(result.stderr) <= limits.output_bytes
    assert gone("sleep\x00400")


def test_no_file_grows_beyond_its_limit() -> None:
    result = run("cat /dev/zero > big; ls -l big")
    assert b" 100000 " in result.stdout


def test_processes_are_counted() -> None:
    """A fork bomb stops at the limit, and none of it is left."""
    script = "n=0; while [ $n -lt 60 ]; do sleep 4005 & n=$((n+1)); done; wait"
    result = run(script, SandboxLimits(wall_s=1.5, processes=5))
    assert b"fork" in result.stderr or result.end is End.TIME
    assert gone("sleep\x004005")
    assert b"fork" in run("sleep 4006 & wait", SandboxLimits(wall_s=2.0)).stderr


def test_memory_is_refused() -> None:
    result = run("exec tail /dev/zero", SandboxLimits(memory_bytes=64 << 20))
    assert result.end is End.EXITED and result.status == 1 and b"memory" in result.stderr


def test_isolation_takes_away_the_network_the_processes_and_the_shared_folders() -> None:
    script = "cat /proc/net/dev; ls -A /tmp; ls /proc | grep -c '^[0-9]*$'; touch /tmp/left-behind; id -u; touch ../x"
    result = run(script)
    if not result.isolated:
        pytest.skip("this system permits no namespaces, so there is nothing to see but the limits")
    devices = [line for line in result.stdout.decode().splitlines() if ":" in line]
    assert [line.split(":")[0].strip() for line in devices] == ["lo"]
    seen, user = result.stdout.decode().splitlines()[-2:]
    assert int(seen) < 10
    assert not Path("/tmp/left-behind").exists()
    if os.geteuid() == 0:
        assert int(user) >= 60_000
        assert b"Permission denied" in result.stderr


def test_limits_bind_without_isolation() -> None:
    async def main() -> list[SandboxResult]:
        short = SandboxLimits(wall_s=0.4, processes=20)
        return [
            await sandboxed("sleep 4007 & exit 0", isolate=False),
            await sandboxed("sleep 4008 & sleep 4009", short, isolate=False),
        ]

    left, late = anyio.run(main)
    assert (left.end, left.isolated, late.end) == (End.EXITED, False, End.TIME)
    assert gone("sleep\x00400")


@pytest.mark.parametrize("backend", BACKENDS)
def test_cancelling_leaves_no_process_and_no_file(backend: str, folders: Path) -> None:
    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sandboxed, "sleep 4010 & sleep 4011")
            while not running("sleep\x004011"):
                await anyio.sleep(0.02)
            assert list(folders.iterdir()) != []
            tasks.cancel_scope.cancel()

    begun = time.perf_counter()
    anyio.run(main, backend=backend)
    assert time.perf_counter() - begun < LIMITS.wall_s / 2
    assert gone("sleep\x00401")
    assert list(folders.iterdir()) == []


def test_many_at_once_keep_apart() -> None:
    async def main() -> list[bytes]:
        found: list[bytes] = []

        async def one(number: int) -> None:
            result = await sandboxed(f"echo {number} > file; cat file")
            found.append(result.stdout)

        async with anyio.create_task_group() as tasks:
            for number in range(6):
                tasks.start_soon(one, number)
        return found

    assert sorted(anyio.run(main)) == [f"{number}\n".encode() for number in range(6)]


# Opens whatever file the processes around it have that is in no folder, and writes into it.
MEDDLE = """for process in 1 $PPID; do for file in /proc/$process/fd/*; do case $(readlink $file) in *deleted*)
    echo '{"exit": 0}' > $file && echo meddled;; esac; done; done; exit 3"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is of Linux")
@pytest.mark.parametrize("isolate", [True, False])
def test_a_command_of_the_same_user_cannot_reach_its_report(isolate: bool) -> None:
    # Root may write anywhere, so where the tests are root's, the launcher is somebody else's.
    python = next(path for path in ("/usr/bin/python3", sys.executable) if Path(path).exists())
    user = 61_234 if os.geteuid() == 0 else None
    with tempfile.TemporaryFile() as report:
        if user is not None:
            os.fchown(report.fileno(), user, user)
        order = {
            "command": ["sh", "-c", MEDDLE],
            "environment": {"PATH": os.defpath},
            "isolate": isolate,
            "limits": {},
            "report": report.fileno(),
            "user": None,
        }
        done = subprocess.run(
            [python, "-I", "-S", str(LAUNCHER), json.dumps(order)],
            cwd="/",
            user=user,
            pass_fds=(report.fileno(),),
            start_new_session=True,
            capture_output=True,
            check=False,
        )
        report.seek(0)
        assert json.loads(report.read())["exit"] == 3
    assert b"meddled" not in done.stdout and done.returncode == -signal.SIGKILL


def test_a_launcher_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SandboxLimits, "resources", lambda self: {"RLIMIT_NO_SUCH": 1})
    result = run("true")
    assert not result.succeeded and b"RLIMIT_NO_SUCH" in result.stderr
    monkeypatch.setattr("agentkit.synthesis.sandbox._LAUNCHER", Path("/nonexistent"))
    with pytest.raises(SandboxError):
        run("true")


@pytest.mark.parametrize("field", ["wall_s", "memory_bytes", "processes"])
def test_a_limit_is_positive(field: str) -> None:
    with pytest.raises(ValueError, match=field):
        SandboxLimits(**{field: 0})
