"""Runs inside a fresh process: takes away what a command must not have, runs it, and reports how it ended.

Started by `agentkit.synthesis.sandbox` as a script, with one argument, a JSON object; it imports the standard library
alone. Three processes: the outer one leads a process group of its own; where the system permits, the inner one is the
first of new process, network, mount and IPC namespaces, so that whatever is started there dies with it; the last one
takes on the limits and becomes the command.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import shutil
import signal
import sys
from typing import Any

_NEW_NAMESPACES = 0x00020000 | 0x04000000 | 0x08000000 | 0x20000000 | 0x40000000  # mount, UTS, IPC, process, network
_NEW_USER = 0x10000000
_PRIVATE = 0x4000 | 0x40000  # MS_REC | MS_PRIVATE
_PLAIN_MOUNT = 0x2 | 0x4  # MS_NOSUID | MS_NODEV
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_NO_NEW_PRIVILEGES = 38  # PR_SET_NO_NEW_PRIVS
_DUMPABLE = 4  # PR_SET_DUMPABLE
# World-writable folders of the system; the command sees empty ones of its own, which vanish with it.
_SHARED_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")
_COULD_NOT_START = 127

_LIBC = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Run the command of the only argument, report, and end the process group."""
    order: dict[str, Any] = json.loads(sys.argv[1])
    report: int = order["report"]
    _die_with_parent()
    os.umask(0o022)  # the user that runs a program is not the one that compiled it
    isolated = bool(order["isolate"]) and _isolate()
    _be_unreachable()
    # Until the child can be ended with it, this process does not end.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    child = os.fork()
    if child:
        # Asked to end, this process ends the first of the namespaces; when that is gone, so is all that was in them.
        signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGKILL))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        os.waitpid(child, 0)
        os.killpg(0, signal.SIGKILL)  # whatever is left of the group, and this process itself
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        _first(order, report, isolated)
    except BaseException as error:  # nobody else would hear of it: this process has no other way to speak
        _write(report, {"failed": f"{type(error).__name__}: {error}"})
    finally:
        os._exit(0)


def _first(order: dict[str, Any], report: int, isolated: bool) -> None:
    """The first process of the namespaces: hides the shared folders, starts the command, reports its end."""
    _die_with_parent()
    if isolated:
        _hide_folders(order["command"][0])
    started = os.fork()
    if not started:
        _become(order, report)
    _, status, usage = os.wait4(started, 0)
    _write(
        report,
        {
            "exit": os.waitstatus_to_exitcode(status),
            "cpu_s": usage.ru_utime + usage.ru_stime,
            "isolated": isolated,
        },
    )


def _write(report: int, what: dict[str, object]) -> None:
    os.lseek(report, 0, os.SEEK_SET)
    os.write(report, json.dumps(what).encode())


def _die_with_parent() -> None:
    if sys.platform == "linux":
        _LIBC.prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


def _be_unreachable() -> None:
    """A command of the same user can't open this process's report by way of /proc, nor trace it; an exec ends that."""
    if sys.platform == "linux":
        _LIBC.prctl(_DUMPABLE, 0, 0, 0, 0)


def _isolate() -> bool:
    """New namespaces, if the system lets us have them; all or none."""
    if sys.platform != "linux":
        return False
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        return bool(_LIBC.unshare(_NEW_NAMESPACES) == 0)
    if _LIBC.unshare(_NEW_USER | _NEW_NAMESPACES) != 0:
        return False
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        # Where that is refused, the command is nobody to itself; its files still know whose they are.
        with contextlib.suppress(OSError), open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)
    return True


def _hide_folders(program: str) -> None:
    """Cover the shared folders, but none that holds the program by its absolute path.

    The working folder, and the one it lies in, stay reachable as `.` and `..`.
    """
    found = program if "/" in program else shutil.which(program) or ""
    _LIBC.mount(b"none", b"/", None, _PRIVATE, None)
    for folder in _SHARED_FOLDERS:
        if os.path.isdir(folder) and not found.startswith(f"{folder}/"):
            _LIBC.mount(b"tmpfs", folder.encode(), b"tmpfs", _PLAIN_MOUNT, b"size=16m,nr_inodes=1k,mode=1777")
    _LIBC.mount(b"proc", b"/proc", b"proc", _PLAIN_MOUNT, None)


def _become(order: dict[str, Any], report: int) -> None:
    """Take on the limits and become the command; never returns."""
    try:
        for name, limit in order["limits"].items():
            _limit(getattr(resource, name), limit)
        user = order["user"]
        if user is not None:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, and what is ignored stays so
            signal.signal(ignored, signal.SIG_DFL)
        _die_with_parent()  # a change of user clears it
        if sys.platform == "linux":
            _LIBC.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        os.set_inheritable(report, False)
        os.execvpe(order["command"][0], order["command"], order["environment"])
    except BaseException as error:  # said on standard error, where the command would have spoken
        os.write(2, f"{order['command'][0]} could not be started: {error}\n".encode())
    finally:
        os._exit(_COULD_NOT_START)


def _limit(which: int, limit: int) -> None:
    """Lower a limit, within what this process may set."""
    _, hard = resource.getrlimit(which)
    # Processor time is refused with a signal that says so; a second later, with one that can't be caught.
    last = limit + 1 if which == resource.RLIMIT_CPU else limit
    ceiling = last if hard == resource.RLIM_INFINITY else min(last, hard)
    resource.setrlimit(which, (min(limit, ceiling), ceiling))


if __name__ == "__main__":
    main()
