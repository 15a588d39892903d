"""The benchmark of masks measures what it says: passes, programs, vocabularies, keys, a report without made-up gaps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aufbau import Grammar, Oracle, Verdict
from aufbau.vocabulary import Vocabulary
from benchmarks import mask_report
from benchmarks.mask_growth import EARLY, LATE, PASSES, SHAPES, STEPS, step_ms
from benchmarks.mask_jobs import FOLDER, GRAMMARS, STARTS, Contender, Job, Words, spaced
from benchmarks.mask_ours import Ours
from benchmarks.mask_results import Cell, Extra, Results, keep, read
from benchmarks.mask_soak import walk
from benchmarks.measuring import Refused, passed, summary, unseen
from benchmarks.vocabularies import greedy, spelled_out

PROGRAMS = [(name, path) for name in GRAMMARS for path in sorted((FOLDER / "programs" / name).iterdir())]


class Recorder:
    """An engine that only writes down what it is asked."""

    learns = True

    def __init__(self, refused: int = -1) -> None:
        self.log: list[Any] = []
        self._refused = refused

    def begin(self) -> None:
        self.log.append("begin")

    def forget(self) -> None:
        self.log.append("forget")

    def mask(self) -> None:
        self.log.append("mask")

    def admits(self, token: int) -> bool:
        return token != self._refused

    def accept(self, token: int) -> None:
        self.log.append(token)

    def feed(self, text: str) -> None:
        self.log.append(text)

    def cache_bytes(self) -> None:
        return None


def test_a_pass_asks_for_a_mask_before_each_token() -> None:
    engine = Recorder()
    masks, accepts = passed(engine, [[7, 8], [9]])
    assert engine.log == ["begin", "mask", 7, "mask", 8, "begin", "mask", 9]
    assert len(masks) == len(accepts) == 3


def test_a_refused_token_ends_the_measurement() -> None:
    with pytest.raises(Refused, match="token 1 of program 0"):
        passed(Recorder(refused=8), [[7, 8]])


def test_unseen_programs_come_after_the_other_half_alone() -> None:
    engine = Recorder()
    times = unseen(engine, [[1], [2], [3]])
    assert [entry for entry in engine.log if entry not in ("begin", "mask")] == ["forget", 2, 1, 3, "forget", 1, 3, 2]
    assert len(times) == 3


def test_summary_takes_the_usual_figures() -> None:
    found = summary([value / 1e3 for value in range(100, 0, -1)])
    assert found == pytest.approx({"steps": 100, "median": 51, "mean": 50.5, "p99": 100, "max": 100})


@pytest.fixture(scope="module")
def oracles() -> dict[str, Oracle]:
    return {name: Oracle(Grammar.load(path)) for name, path in GRAMMARS.items()}


@pytest.mark.parametrize(("name", "path"), PROGRAMS, ids=lambda value: getattr(value, "name", value))
def test_programs_are_of_their_language(oracles: dict[str, Oracle], name: str, path: Path) -> None:
    prefix = oracles[name].start(**STARTS.get(name, {})).feed(path.read_bytes())
    assert prefix.verdict is Verdict.SATISFIED


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape.grammar}: {shape.name}")
def test_shapes_go_on_for_ever(oracles: dict[str, Oracle], shape: Any) -> None:
    lexemes = shape.lexemes(EARLY + STEPS)
    assert STEPS % len(shape.period) == 0 and len(lexemes) == EARLY + STEPS
    assert oracles[shape.grammar].start().feed("".join(lexemes)).lost_at is None


def test_growth_times_the_same_steps_in_each_pass() -> None:
    engine = Recorder()
    lexemes = [f"{number}" for number in range(LATE + STEPS)]
    found = step_ms(lexemes, engine, engine.feed)
    assert engine.log.count("mask") == 2 * STEPS * (1 + PASSES)
    masked = {engine.log[at + 1] for at, entry in enumerate(engine.log) if entry == "mask"}
    assert masked == {f"{place + step}" for place in (EARLY, LATE) for step in range(STEPS)}
    assert set(found) == {"early_ms", "late_ms"}


TOKENS = [bytes([byte]) for byte in range(32, 127)] + [b"\n", b"return", b" 17", b"let ", b'"a', b"ret", b"\xc3", b""]


@pytest.fixture(scope="module")
def ours(oracles: dict[str, Oracle]) -> Ours:
    return Ours(oracles["tool"], Vocabulary(TOKENS), STARTS["tool"])


def test_our_masks_are_those_of_the_oracle(ours: Ours, oracles: dict[str, Oracle]) -> None:
    vocabulary = Vocabulary(TOKENS)
    for token in greedy(vocabulary, b"return 17;"):
        ours.mask()
        expected = oracles["tool"].mask(oracles["tool"].start(**STARTS["tool"]).feed(ours.text), vocabulary)
        assert [ours.admits(one) for one in range(len(TOKENS))] == expected.tolist()
        assert ours.admitted().tolist() == np.flatnonzero(expected).tolist()
        ours.accept(token)
    with pytest.raises(Refused, match="not admitted"):
        ours.feed("x")


def test_walks_only_take_admitted_tokens(ours: Ours) -> None:
    lengths = np.array([len(text) for text in TOKENS])
    points = walk(ours, lengths, masks=90, every=40, seed=3)
    assert [point["masks"] for point in points] == [40, 80, 90]
    assert all(point["cache_mb"] > 0 for point in points)


@given(st.lists(st.binary(max_size=3), max_size=20), st.binary(max_size=30))
def test_greedy_tokens_spell_the_text(spellings: list[bytes], text: bytes) -> None:
    vocabulary = Vocabulary([*(bytes([byte]) for byte in range(256)), *spellings])
    tokens = greedy(vocabulary, text)
    assert b"".join(map(vocabulary.spelling, tokens)) == text


def test_spelled_out_vocabularies_have_a_stop_token(tmp_path: Path) -> None:
    vocabulary = Vocabulary([b"a", b"", b"bc", b"a", b""])
    path = tmp_path / "words.tiktoken"
    stop = spelled_out(vocabulary, path)
    again = Vocabulary.from_tiktoken(path, special={"<stop>": stop})
    assert list(again) == [*vocabulary, b""] and stop == len(vocabulary)


def test_keys_tell_what_figures_depend_on(tmp_path: Path) -> None:
    path = tmp_path / "words.tiktoken"
    spelled_out(Vocabulary([b"a"]), path)
    programs = {"ml": [[0]], "c": [[0]], "tool": [[0]]}
    words = Words(title="W", path=path, tokens=2, vocabulary=Vocabulary([b"a"]), programs=programs)
    engine = Contender(title="aufbau", python="p", module="mask_ours", options={}, facts={"sources": "1"})
    job = Job(contender=engine, grammar="ml", words=words)
    others = [
        replace(job, grammar="c"),
        replace(job, contender=replace(engine, facts={"sources": "2"})),
        replace(job, words=replace(words, programs=programs | {"ml": [[0, 0]]})),
    ]
    assert len({job.key, *(other.key for other in others)}) == 4
    assert replace(job, words=replace(words, title="other")).key == job.key


def test_spaced_takes_from_all_over() -> None:
    assert spaced([*range(10)], 5) == [0, 2, 4, 6, 8]


def cell(engine: str, vocabulary: str, tokens: int, mean: float) -> Cell:
    times = {"steps": 1, "median": mean, "mean": mean, "p99": 3 * mean, "max": 4 * mean}
    return Cell(
        key=f"{engine}{vocabulary}",
        engine=engine,
        grammar="ml",
        vocabulary=vocabulary,
        tokens=tokens,
        import_s=0.5,
        first={"grammar": 1.0, "vocabulary": 0.25, "first mask": 0.25},
        cold=times,
        warm=times,
        unseen=times | {"mean": 2 * mean},
        accept=times,
        cache_mb=None,
        held_mb=10,
        peak_mb=20,
        facts={"version": "1"},
    )


RESULTS = Results(
    machine={"cpu": "some"},
    cells=(
        cell("aufbau", "big", 151_643, 2.0),
        cell("xgrammar", "big", 151_643, 4.0),
        cell("aufbau", "small", 49_152, 1.0),
    ),
    extras=(
        Extra(
            key="g",
            kind="growth",
            about={"grammar": "c", "input": "sum", "engine": "aufbau"},
            figures={"early_ms": 2.0, "late_ms": 3.0},
        ),
        Extra(
            key="s",
            kind="soak",
            about={"grammar": "c"},
            figures={"points": [{"masks": m, "held_mb": m, "cache_mb": 1.0} for m in (500, 1000, 1500, 2000)]},
        ),
    ),
)


def test_report_has_ratios_and_leaves_gaps() -> None:
    page = mask_report.markdown(RESULTS)
    assert "| ml | 151k | aufbau |  |  | 0.50 | 0.50 | 3.0 |  |" in page  # no llguidance, no twin
    assert "| ml | aufbau | 2.00 | 2.00 |" in page
    assert "| ml | 151k | aufbau | 1.00 | 0.25 | 0.25 | 1.50 |  | 0.50 | 10 | 20 |  |" in page
    assert "| c | sum | aufbau | 2.00 | 3.00 | 1.50 |" in page
    assert "| c | 2000 | 500 | 1500 | 2000 | 1.33 | 1 |" in page


def test_results_are_read_back(tmp_path: Path) -> None:
    keep(RESULTS, tmp_path)
    assert read(tmp_path) == RESULTS
    (tmp_path / "masks.json").write_text('{"machine": {}, "cells": []}')
    assert read(tmp_path) == Results()


def test_results_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="drawing needs the extra `bench`")
    mask_report.write(RESULTS, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"masks.json", "masks.md", "masks.svg", "soak.svg"}
