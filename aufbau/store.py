"""What was worked out once, kept on disk for later processes: files under a digest of all that they depend on.

Nothing waits and nothing is locked. A file is written beside its place and renamed, so it is there whole or not at all;
what two processes work out at the same time is written twice. What is damaged, cut off or not this user's is not used
but removed and worked out anew, and where nothing can be written nothing is kept.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final, TypeVar, final

import numpy as np

from aufbau.snapshot import SnapshotError, dump, load

_T = TypeVar("_T")
_LOG: Final = logging.getLogger(__name__)
_FORMAT: Final = b"aufbau store 1\n"
_SUFFIX: Final = ".bin"
_IMPORTED: Final = time.time()
_ABANDONED: Final = 3600.0  # seconds after which a half-written file belongs to nobody


def cache_folder() -> Path:
    """Where this package keeps files: `AUFBAU_CACHE` if set, else the platform's place for caches of a user."""
    chosen = os.environ.get("AUFBAU_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "aufbau" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "aufbau"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "aufbau"


def default_store() -> Store | None:
    """The store in the cache folder; None where `AUFBAU_NO_CACHE` is set to anything but 0."""
    if os.environ.get("AUFBAU_NO_CACHE", "0") not in ("", "0"):
        return None
    try:
        return Store(cache_folder() / "compiled") if engine() else None
    except RuntimeError as error:  # a user without a home
        _LOG.debug("nothing is cached: %s", error)
        return None


def digest(*parts: str | bytes) -> str:
    """A name for what follows from these parts, the engine's own sources and the versions that run them."""
    found = hashlib.sha256(engine())
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "little"))
        found.update(data)
    return found.hexdigest()


@cache
def engine() -> bytes:
    """A digest of the engine as it is installed: edited sources, or another build, have another (5 ms, once).

    Empty where it can't be told: the sources are no files, or were edited after they were imported.
    """
    root = Path(__file__).parent
    found = hashlib.sha256(f"{sys.version} {sys.byteorder} numpy {np.__version__}".encode())
    try:
        sources = sorted(root.rglob("*.py"))
        for path in sources:
            if path.stat().st_mtime > _IMPORTED:
                _LOG.debug("nothing is cached: %s has changed since it was imported", path)
                return b""
            found.update(f"{path.relative_to(root)} {path.stat().st_size}\n".encode() + path.read_bytes())
        # The sources of compiled modules lie beside them, and say what they are; builds differ by size and time.
        for path in sorted((*root.rglob("*"), *root.parent.glob("*__mypyc*"))):
            if path.suffix in (".so", ".pyd"):
                about = path.stat()
                found.update(f"{path.name} {about.st_size} {about.st_mtime_ns}\n".encode())
    except OSError as error:
        _LOG.debug("nothing is cached: %s", error)
        return b""
    return found.digest() if sources else b""


@final
class Shelf:
    """A place in a store for one result."""

    __slots__ = ("_name", "_store")

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._name = name

    def below(self, *parts: str) -> Shelf:
        """The place for what follows from this result and more."""
        return self._store.shelf(self._name, *parts)

    def read(self) -> bytes | None:
        """What was kept here."""
        return self._store.read(self._name)

    def write(self, data: bytes) -> bool:
        """Keep something here; whether that could be done."""
        return self._store.write(self._name, data)

    def kept(self, make: Callable[[], _T]) -> _T:
        """What `make` gives: as it was kept here, if it was, else made now and kept, if it can be."""
        data = self.read()
        if data is not None:
            try:
                found: _T = load(data)
                return found
            except SnapshotError as error:
                _LOG.warning("%s is worked out anew: %s", self._name, error)
        made = make()
        try:
            self.write(dump(made))
        except SnapshotError as error:
            _LOG.debug("%s is not kept: %s", self._name, error)
        return made


@final
class Store:
    """A folder of results. Its files, like pickles, are to be written by this user alone: it is made 0700."""

    def __init__(self, folder: Path, *, limit: int = 500_000_000) -> None:
        """`limit` bounds the bytes of all files; past it those go that were not used for the longest time."""
        self.folder: Final = folder
        self.limit: Final = limit

    def shelf(self, *parts: str | bytes) -> Shelf:
        """The place for what follows from these parts."""
        return Shelf(self, digest(*parts))

    def read(self, name: str) -> bytes | None:
        """What was kept under a name."""
        path = self._path(name)
        try:
            with path.open("rb") as file:
                if not _ours(os.fstat(file.fileno())) or not _ours(self.folder.stat()):
                    _LOG.warning("%s is not used: others may write it", path)
                    return None
                data = file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            _LOG.debug("%s can't be read: %s", path, error)
            return None
        head = len(_FORMAT) + 32
        payload = memoryview(data)[head:]
        if data[:head] != _FORMAT + hashlib.sha256(payload).digest():
            _LOG.warning("%s is damaged, and removed", path)
            self.forget(name)
            return None
        try:
            os.utime(path)  # it was used
        except OSError as error:
            _LOG.debug("%s can't be touched: %s", path, error)
        return bytes(payload)

    def write(self, name: str, data: bytes) -> bool:
        """Keep bytes under a name; whether that could be done."""
        if len(data) > self.limit:
            return False
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _ours(self.folder.stat()):
                _LOG.warning("%s is not used: others may write it", self.folder)
                return False
            self._make_room(len(data))
            handle, temporary = tempfile.mkstemp(dir=self.folder, suffix=".tmp")
            try:
                with open(handle, "wb") as file:
                    file.write(_FORMAT + hashlib.sha256(data).digest())
                    file.write(data)
                os.replace(temporary, self._path(name))
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
        except OSError as error:
            _LOG.debug("nothing is kept in %s: %s", self.folder, error)
            return False
        return True

    def forget(self, name: str) -> None:
        """Remove what is kept under a name."""
        self._remove(self._path(name))

    def clear(self) -> None:
        """Remove everything."""
        for path, _, _ in self._files():
            self._remove(path)

    @property
    def count(self) -> int:
        """How many files there are."""
        return len(self._files())

    @property
    def nbytes(self) -> int:
        """The bytes of all files."""
        return sum(size for _, size, _ in self._files())

    def _path(self, name: str) -> Path:
        return self.folder / (name + _SUFFIX)

    def _files(self) -> list[tuple[Path, int, float]]:
        """The files with their sizes and when they were last used, the oldest first."""
        found = []
        try:
            paths = [path for path in self.folder.iterdir() if path.suffix in (_SUFFIX, ".tmp")]
        except OSError:
            return []
        for path in paths:
            try:
                about = path.stat()
            except OSError:
                continue  # another process has removed it
            found.append((path, about.st_size, about.st_mtime))
        return sorted(found, key=lambda entry: entry[2])

    def _make_room(self, needed: int) -> None:
        files = self._files()
        excess = sum(size for _, size, _ in files) + needed - self.limit
        for path, size, used in files:
            if path.suffix == _SUFFIX and excess > 0:
                excess -= size
                self._remove(path)
            elif path.suffix != _SUFFIX and used < time.time() - _ABANDONED:
                self._remove(path)

    def _remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            _LOG.debug("%s can't be removed: %s", path, error)


def _ours(about: os.stat_result) -> bool:
    """Whether this user, and nobody else, can write a file or folder. Windows keeps that by where the folder lies."""
    if sys.platform == "win32":
        return True
    return about.st_uid == os.geteuid() and not stat.S_IMODE(about.st_mode) & 0o022
