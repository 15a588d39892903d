"""What is kept on disk of grammars and of what masks explored: every answer is as without it."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from aufbau import Grammar, Limits, Oracle, Prefix
from aufbau.lookahead import Explorer
from aufbau.store import Store
from aufbau.vocabulary import Vocabulary
from tests.aufbau.test_laws import AMBIENT, CONTEXTS, GRAMMARS, LARGE, ROOT
from tests.aufbau.test_masks import vocabulary
from tests.aufbau.test_store import cached, files, tiktoken
from tests.aufbau.walks import walk

__all__ = ["cached"]  # a fixture


def load(name: str, cache: bool = True) -> Grammar:
    return Grammar.load(GRAMMARS[name], cache=cache)


def begun(engine: Oracle, name: str) -> Prefix:
    return engine.start(context=CONTEXTS.get(name), ambient=AMBIENT.get(name))


def told(prefix: Prefix) -> tuple[object, ...]:
    """All that an oracle says of a text."""
    return (
        prefix.verdict,
        prefix.lost_at,
        prefix.types,
        prefix.context,
        prefix.next_bytes(),
        str(prefix.explain()),
        [str(expected) for expected in prefix.expected()],
        str(prefix.tree()),
    )


@pytest.mark.parametrize("name", GRAMMARS)
def test_answers_are_equal_from_the_cache(name: str, cached: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Oracle(load(name, cache=False))
    assert files(cached) == []
    random = Random(7)
    step = 40 if name in LARGE else 3
    texts = [walk(random, begun(plain, name), 12) for _ in range(1 if name in LARGE else 4)]
    tokens = vocabulary(random, b" ".join(texts))
    first = Oracle(load(name))
    first.mask(begun(first, name), tokens)
    before = files(cached)
    assert len(before) == 2

    def never(*_: object) -> None:
        raise AssertionError("it is in the cache")

    monkeypatch.setattr("aufbau.grammar.grammar.compile_grammar", never)
    grammar = load(name)
    second = Oracle(grammar)
    start = begun(second, name)
    (explorer,) = [explorer for _, explorer in second._arenas.values()]
    known = explorer.counted()
    assert known > 0
    assert (second.mask(start, tokens) == plain.mask(begun(plain, name), tokens)).all()
    assert explorer.counted() <= 1.1 * known
    for text in texts:
        one, other = begun(plain, name), begun(second, name)
        for at in range(0, len(text), step):
            assert told(other) == told(one), text[:at]
            assert (second.mask(other, tokens) == plain.mask(one, tokens)).all(), text[:at]
            one, other = one.feed(text[at : at + step]), other.feed(text[at : at + step])
        assert told(other.feed("\x00")) == told(one.feed("\x00"))
    assert files(cached) == before
    assert (grammar, grammar.source(), repr(grammar)) == (plain.grammar, plain.grammar.source(), repr(plain.grammar))
    assert (grammar.start, grammar.symbols) == (plain.grammar.start, plain.grammar.symbols)


def test_contexts_goals_and_symbols_from_the_cache(cached: Store) -> None:
    tokens = vocabulary(Random(3), b"let foo : Int = 1; foo")
    starts: list[dict[str, Any]] = [{"goal": "Int"}, {"goal": "Bool", "context": {"foo": "Int -> Bool", "x": "Int"}}]
    starts += [{"context": {"foo": "Bool"}}, {"symbol": "Type"}]
    plain, kept = Oracle(load("fun", cache=False)), Oracle(load("fun"))
    for options in starts:
        for engine in (kept, Oracle(load("fun"))):
            for text in ("", "foo", "foo x", "let foo : Int = "):
                one, other = plain.start(**options).feed(text), engine.start(**options).feed(text)
                assert told(one) == told(other)
                assert (plain.mask(one, tokens) == engine.mask(other, tokens)).all()


def test_more_exploring_replaces_less(cached: Store) -> None:
    """A first mask over few tokens explores little; the process after it keeps more."""
    sizes = []
    for tokens in (Vocabulary([b"let"]), vocabulary(Random(4), b"let x : Int = 1"), Vocabulary([b"let"])):
        engine = Oracle(load("fun"))
        engine.mask(engine.start(), tokens)
        sizes.append(cached.nbytes)
    assert sizes[0] < sizes[1] == sizes[2]


def test_large_tables_are_not_kept(cached: Store) -> None:
    engine = Oracle(load("fun"), limits=Limits(arena_entries=100))
    engine.mask(engine.start(), vocabulary(Random(4), b"let x : Int = 1"))
    assert len(files(cached)) == 1  # the grammar


def test_forgotten_places_are_not_kept(cached: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aufbau.oracle.Explorer", partial(Explorer, limit=60))
    tokens = vocabulary(Random(9), b"let foo : Int = 1")
    plain = Oracle(load("fun", cache=False))
    for _ in range(2):
        engine = Oracle(load("fun"))
        for text in (b"", b"let foo : Int = 1; f"):
            found = engine.mask(engine.start().feed(text), tokens)
            assert (found == plain.mask(plain.start().feed(text), tokens)).all()


def test_a_damaged_cache_changes_no_answer(cached: Store) -> None:
    tokens = vocabulary(Random(5), b"let x : Int = 1")
    plain = Oracle(load("fun", cache=False))
    wanted = plain.mask(plain.start(), tokens)
    for length in (-1, 60, 0, 90):
        for path in files(cached):
            whole = path.read_bytes()
            path.write_bytes(whole[:length] + (b"?" + whole[91:] if length == 90 else b""))
        engine = Oracle(load("fun"))
        assert (engine.mask(engine.start(), tokens) == wanted).all()
        assert told(engine.start().feed("let x : Int = true")) == told(plain.start().feed("let x : Int = true"))
        assert len(files(cached)) == 2


def test_bytes_of_another_kind_are_worked_out_anew(cached: Store, caplog: pytest.LogCaptureFixture) -> None:
    """A whole file, under a right name, that no snapshot wrote."""
    grammar = load("fun")
    assert grammar.shelf is not None
    grammar.shelf.write(b"no snapshot")
    grammar.shelf.below("explored", grammar.start, repr(Oracle(grammar).limits)).write(b"no snapshot either")
    engine = Oracle(load("fun"))
    tokens = vocabulary(Random(5), b"let x : Int = 1")
    plain = Oracle(load("fun", cache=False))
    assert (engine.mask(engine.start(), tokens) == plain.mask(plain.start(), tokens)).all()
    assert any("worked out anew" in record.getMessage() for record in caplog.records)


def test_an_unwritable_cache_is_no_error(tmp_path: Path, cached: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("AUFBAU_CACHE", str(tmp_path / "file"))
    engine = Oracle(load("fun"))
    tokens = vocabulary(Random(5), b"let x : Int = 1")
    plain = Oracle(load("fun", cache=False))
    assert (engine.mask(engine.start(), tokens) == plain.mask(plain.start(), tokens)).all()


def test_many_processes_fill_an_empty_cache(tmp_path: Path) -> None:
    """All at once, none waits for another, and all say the same."""
    spellings = [bytes((byte,)) for byte in range(256)] * 150
    tokens = tiktoken(tmp_path / "some.tiktoken", spellings)
    program = (
        "import sys, zlib\n"
        "from aufbau import Grammar, Oracle\n"
        "from aufbau.vocabulary import Vocabulary\n"
        "engine = Oracle(Grammar.load('core_c'))\n"
        "mask = engine.mask(engine.start(), Vocabulary.from_tiktoken(sys.argv[1]))\n"
        "print(zlib.crc32(mask.tobytes()), engine.start().feed('int x = y;').explain())\n"
    )
    environment = {**os.environ, "AUFBAU_CACHE": str(tmp_path), "AUFBAU_NO_CACHE": ""}
    for wave in range(2):
        running = [
            subprocess.Popen(
                [sys.executable, "-c", program, str(tokens)],
                cwd=ROOT,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for _ in range(3 - wave)
        ]
        answers = [process.communicate(timeout=90) for process in running]
        assert {error for _, error in answers} == {b""}
        assert len({answer for answer, _ in answers}) == 1
        assert len(files(Store(tmp_path / "compiled"))) == 3
