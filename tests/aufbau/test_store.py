"""The cache on disk: equal answers with it and without it, whoever else writes, and whatever is wrong with a file."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

import aufbau.store
from aufbau import Grammar, GrammarError, Oracle
from aufbau.cli import main
from aufbau.store import Store, cache_folder, default_store, digest
from aufbau.vocabulary import Vocabulary, VocabularyError

ROOT = Path(__file__).parents[2]
posix = pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cache")


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The default store, in a folder of this test, which keeps short grammars and vocabularies as well."""
    monkeypatch.setenv("AUFBAU_CACHE", str(tmp_path))
    monkeypatch.delenv("AUFBAU_NO_CACHE", raising=False)
    monkeypatch.setattr("aufbau.grammar.grammar._LONG", 0)
    monkeypatch.setattr("aufbau.vocabulary.vocabulary._LONG", 0)
    yield Store(tmp_path / "compiled")


def files(store: Store) -> list[Path]:
    return sorted(store.folder.iterdir()) if store.folder.exists() else []


# Files


def test_what_is_written_is_read(store: Store) -> None:
    assert store.read("a") is None
    assert store.write("a", b"one") and store.write("b", b"")
    assert (store.read("a"), store.read("b")) == (b"one", b"")
    assert store.write("a", b"two") and store.read("a") == b"two"
    store.forget("a")
    assert store.read("a") is None
    assert store.nbytes == sum(path.stat().st_size for path in files(store)) > 0
    store.clear()
    assert files(store) == [] and store.nbytes == 0


def damaged(data: bytes) -> Iterator[bytes]:
    for length in (0, 1, 20, len(data) // 2, len(data) - 1):
        yield data[:length]
    for place in range(len(data)):
        yield data[:place] + bytes((data[place] ^ 1,)) + data[place + 1 :]
    yield data + b"x"
    yield b"something else entirely, of another program"


def test_damage_is_noticed_and_removed(store: Store) -> None:
    store.write("a", b"some result")
    (path,) = files(store)
    whole = path.read_bytes()
    for data in damaged(whole):
        path.write_bytes(data)
        assert store.read("a") is None
        assert files(store) == []
        store.write("a", b"some result")
        assert path.read_bytes() == whole


@posix
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_files_that_others_may_write_are_not_used(store: Store, mode: int) -> None:
    store.write("a", b"x")
    files(store)[0].chmod(mode)
    assert store.read("a") is None


@posix
def test_folders_that_others_may_write_are_not_used(store: Store) -> None:
    store.write("a", b"x")
    assert store.folder.stat().st_mode & 0o777 == 0o700
    store.folder.chmod(0o777)
    assert store.read("a") is None
    assert not store.write("b", b"x")


@posix
def test_files_of_others_are_not_used(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write("a", b"x")
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert store.read("a") is None
    assert not store.write("b", b"x")


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_bytes(b"")
    store = Store(tmp_path / "file" / "cache")
    with caplog.at_level(logging.DEBUG, "aufbau.store"):
        assert not store.write("a", b"x")
    assert [record.levelname for record in caplog.records] == ["DEBUG"]
    assert store.read("a") is None
    assert store.nbytes == 0
    store.clear()


def test_the_least_recently_used_goes_first(tmp_path: Path) -> None:
    store = Store(tmp_path, limit=4_500)
    for age, name in enumerate("abcd"):
        store.write(name, bytes(1_000))
        os.utime(tmp_path / f"{name}.bin", (0, age))
    assert store.read("a") is not None  # so it is the latest
    store.write("e", bytes(1_000))
    assert [store.read(name) is not None for name in "abcde"] == [True, False, True, True, True]
    assert store.nbytes <= store.limit
    assert not store.write("f", bytes(5_000))
    assert store.read("a") is not None


def test_what_dead_processes_left_is_removed(store: Store) -> None:
    store.write("a", b"x")
    for name, age in (("old.tmp", 7_200), ("new.tmp", 60)):
        (store.folder / name).write_bytes(b"half")
        os.utime(store.folder / name, (0, time.time() - age))
    store.write("b", b"x")
    assert [path.name for path in files(store)] == ["a.bin", "b.bin", "new.tmp"]


def test_writers_and_readers_at_once(store: Store) -> None:
    """Every read gives a whole result of some writer, or nothing."""
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from aufbau.store import Store\n"
        "store, mine = Store(Path(sys.argv[1])), sys.argv[2].encode() * 50_000\n"
        "for _ in range(60):\n"
        "    assert store.write('a', mine)\n"
        "    found = store.read('a')\n"
        "    assert found is not None and len(found) == 50_000 and len(set(found)) == 1, found and found[:9]\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(store.folder), letter], cwd=ROOT, stderr=subprocess.PIPE)
        for letter in "xyz"
    ]
    for process in running:
        assert process.communicate(timeout=60)[1] == b""
        assert process.returncode == 0
    assert [path.name for path in files(store)] == ["a.bin"]


# Keys and switches


def test_keys_differ_where_parts_do(monkeypatch: pytest.MonkeyPatch) -> None:
    parts: list[tuple[str | bytes, ...]] = [("a", "b"), ("ab",), ("a", "b", ""), ("b", "a"), ("a", b"b\0")]
    assert len({digest(*one) for one in parts}) == len(parts)
    before = digest("a")
    assert digest(b"a") == before
    monkeypatch.setattr(aufbau.store, "engine", lambda: b"another version")
    assert digest("a") != before


def test_another_engine_has_another_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = aufbau.store.engine.__wrapped__
    monkeypatch.setattr(aufbau.store, "__file__", str(tmp_path / "store.py"))
    assert fresh() == b""  # no sources
    (tmp_path / "store.py").write_text("one")
    os.utime(tmp_path / "store.py", (0, 0))
    one = fresh()
    assert one and fresh() == one
    (tmp_path / "store.py").write_text("two")
    assert fresh() == b""  # edited since this process has read it
    os.utime(tmp_path / "store.py", (0, 0))
    assert fresh() not in (b"", one)
    monkeypatch.setattr(sys, "version", "4.0")
    assert fresh() not in (b"", one)


def test_the_folder_can_be_chosen_and_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUFBAU_CACHE", str(tmp_path))
    monkeypatch.delenv("AUFBAU_NO_CACHE", raising=False)
    assert cache_folder() == tmp_path
    found = default_store()
    assert found is not None and found.folder == tmp_path / "compiled"
    monkeypatch.setenv("AUFBAU_NO_CACHE", "0")
    assert default_store() is not None
    monkeypatch.setenv("AUFBAU_NO_CACHE", "1")
    assert default_store() is None
    monkeypatch.delenv("AUFBAU_CACHE")
    assert cache_folder().is_absolute()


def test_the_command(cached: Store, capsys: pytest.CaptureFixture[str]) -> None:
    cached.write("a", bytes(2_000_000))
    assert main(["cache"]) == 0
    shown = capsys.readouterr().out
    assert str(cached.folder) in shown and "1 file" in shown and "2.0 MB" in shown
    assert main(["cache", "--clear"]) == 0
    assert files(cached) == []
    assert "0 files" in capsys.readouterr().out


# Grammars and vocabularies


def test_wrong_grammars_are_refused_every_time(cached: Store) -> None:
    for _ in range(2):
        with pytest.raises(GrammarError, match=r"wrong\.auf:1:.*unknown nonterminal B"):
            Grammar.parse("A ::= B", source_name="wrong.auf")
    assert files(cached) == []


def test_short_grammars_leave_no_file(cached: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("AUFBAU_CACHE", str(cached.folder.parent))
    engine = Oracle(Grammar.load("fun"))
    engine.mask(engine.start(), Vocabulary([b"let"]))
    assert files(cached) == []


def tiktoken(path: Path, spellings: list[bytes]) -> Path:
    path.write_bytes(b"".join(b64encode(text) + b" %d\n" % token for token, text in enumerate(spellings)))
    return path


def test_vocabularies_are_equal_from_the_cache(tmp_path: Path, cached: Store) -> None:
    spellings = [b"!", b"\xe2\x86", b" x", b"x" * 300, b"\0", b"x"]
    path = tiktoken(tmp_path / "small.tiktoken", spellings)
    names = {"<|im_start|>": 7, "<|im_end|>": 9}
    plain = Vocabulary.from_tiktoken(path, special=names, stop=[2], cache=False)
    assert files(cached) == []
    for _ in range(2):
        found = Vocabulary.from_tiktoken(path, special=names, stop=[2])
        assert list(found) == list(plain) == [b"!", b"\xe2\x86", b"", b"x" * 300, b"\0", b"x", b"", b"", b"", b""]
        assert [found.spelling(token) for token in range(len(found))] == list(found)
        assert (found.special, found.stop, found.longest) == (plain.special, plain.stop, plain.longest)
        assert (found.bytes.written == plain.bytes.written).all()
        with pytest.raises(VocabularyError, match=r"\[0\] are ordinary"):
            Vocabulary.from_tiktoken(path, special={"<|im_end|>": 0})
        assert len(files(cached)) == 1
    tiktoken(path, [b"?", *spellings[1:]])
    assert Vocabulary.from_tiktoken(path).spelling(0) == b"?"
