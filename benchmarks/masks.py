"""Measures masks over whole vocabularies, token by token along programs.

    python -m benchmarks.masks [--qwen FILE] [--gemma FILE] [--programs FOLDER] [--grammar NAME] [--out FOLDER]

Each cell, a grammar with a vocabulary, runs in a process of its own. The oracle and its syntactic twin go through all
programs twice, a fresh start for each: `cold`, with all that is worked out on the way, and `warm`, with what the first
pass left behind. Times are CPU times, with the garbage collector on, as users have it.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from aufbau import Grammar, Oracle, Prefix
from aufbau.vocabulary import Vocabulary
from benchmarks.report import machine

FOLDER = Path(__file__).parent
GRAMMARS = {"ml": "ml", "c": "c", "tool": str(FOLDER.parent / "dialects" / "grammars" / "tool.auf")}
# The tool language starts at a whole program, whose ambient keys say what it may return.
STARTS: dict[str, dict[str, Any]] = {
    "tool": {"symbol": "Program", "ambient": {"open": "int", "some call": "int", "some docs": "int"}}
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Times:
    """Milliseconds over all steps of a pass."""

    steps: int
    median: float
    mean: float
    p99: float
    max: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One engine on one grammar and vocabulary."""

    engine: str
    grammar: str
    vocabulary: str
    tokens: int
    load_s: float  # the grammar
    first_s: float  # from a loaded grammar and vocabulary to the first mask
    cold: Times
    warm: Times
    accept: Times  # feeding the token that follows
    cache_mb: float  # arrays that the masks keep
    peak_mb: float  # of the process so far


def summary(seconds: list[float]) -> Times:
    """The usual figures of some durations."""
    ordered = sorted(seconds)
    count = len(ordered)
    return Times(
        steps=count,
        median=1e3 * ordered[count // 2],
        mean=1e3 * sum(ordered) / count,
        p99=1e3 * ordered[min(count - 1, count * 99 // 100)],
        max=1e3 * ordered[-1],
    )


def greedy(vocabulary: Vocabulary, text: bytes) -> list[int]:
    """The text in tokens, the longest spelling first."""
    ids = {spelling: token for token, spelling in enumerate(vocabulary) if spelling}
    found, at = [], 0
    while at < len(text):
        length = min(vocabulary.longest, len(text) - at)
        while text[at : at + length] not in ids:
            length -= 1
        found.append(ids[text[at : at + length]])
        at += length
    return found


def passed(
    oracle: Oracle, start: dict[str, Any], vocabulary: Vocabulary, programs: Iterable[list[int]]
) -> tuple[list[float], list[float]]:
    """The seconds of each mask and of each feed along the programs."""
    masks: list[float] = []
    feeds: list[float] = []
    for tokens in programs:
        prefix: Prefix = oracle.start(**start)
        for token in tokens:
            began = time.process_time()
            mask = oracle.mask(prefix, vocabulary)
            masks.append(time.process_time() - began)
            if not mask[token]:
                raise SystemExit(f"{vocabulary.spelling(token)!r} is not admitted after {prefix.text[-60:]!r}")
            began = time.process_time()
            prefix = prefix.feed(vocabulary.spelling(token))
            feeds.append(time.process_time() - began)
    return masks, feeds


def measure(name: str, vocabulary: Vocabulary, title: str, texts: list[bytes]) -> list[Cell]:
    """The oracle and its twin on one grammar."""
    began = time.process_time()
    oracle = Oracle(Grammar.load(GRAMMARS[name]))
    loaded = time.process_time() - began
    programs = [greedy(vocabulary, text) for text in texts]
    cells = []
    for engine, one in (("aufbau", oracle), ("aufbau, syntax only", oracle.syntactic())):
        start = dict(STARTS.get(name, {}))
        if one is not oracle:
            start.pop("ambient", None)
        began = time.process_time()
        one.mask(one.start(**start), vocabulary)
        first = time.process_time() - began
        cold, _ = passed(one, start, vocabulary, programs)
        warm, feeds = passed(one, start, vocabulary, programs)
        cells.append(
            Cell(
                engine=engine,
                grammar=name,
                vocabulary=title,
                tokens=len(vocabulary),
                load_s=loaded,
                first_s=first,
                cold=summary(cold),
                warm=summary(warm),
                accept=summary(feeds),
                cache_mb=sum(report.nbytes for report in one.mask_caches()) / 1e6,
                peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            )
        )
    return cells


def smollm2() -> Vocabulary:
    """The default model's vocabulary; obtains the model if need be."""
    from agentkit.models import default_tokenizer

    return Vocabulary.from_tokenizer(default_tokenizer())


def from_file(path: Path) -> Vocabulary:
    """A vocabulary from a tiktoken file or a tokenizer.json."""
    if path.suffix == ".tiktoken":
        return Vocabulary.from_tiktoken(path)
    import transformers

    fast: Any = transformers.PreTrainedTokenizerFast  # it has no types
    return Vocabulary.from_tokenizer(fast(tokenizer_file=str(path)))


def packaged_qwen() -> Path | None:
    """The Qwen vocabulary that the package `dashscope` carries, where that is installed."""
    found = find_spec("dashscope")
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent / "resources" / "qwen.tiktoken"


def markdown(cells: list[Cell]) -> str:
    """The page of results."""
    lines = [
        "# Masks over whole vocabularies",
        "",
        "CPU milliseconds for one mask; a fresh start for each program. `cold` is the first pass over the programs,"
        " `warm` the second. `python -m benchmarks.masks --help` says how to measure again.",
        "",
        "| grammar | tokens | engine | first mask | cold mean | warm median | warm mean | warm p99 | warm max | feed |"
        " peak MB |",
        "|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {cell.grammar} | {cell.tokens} | {cell.engine} | {1e3 * cell.first_s:.0f} | {cell.cold.mean:.2f} |"
        f" {cell.warm.median:.2f} | {cell.warm.mean:.2f} | {cell.warm.p99:.2f} | {cell.warm.max:.2f} |"
        f" {cell.accept.mean:.2f} | {cell.peak_mb:.0f} |"
        for cell in cells
    ]
    return "\n".join([*lines, ""])


def plot(cells: list[Cell], path: Path) -> None:
    """Mean warm mask against the size of the vocabulary."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2))
    axes = figure.subplots()
    for grammar in GRAMMARS:
        for engine in dict.fromkeys(cell.engine for cell in cells):
            points = sorted((c.tokens, c.warm.mean) for c in cells if (c.grammar, c.engine) == (grammar, engine))
            style = "-" if engine == "aufbau" else ":"
            if points:
                axes.plot(*zip(*points, strict=True), style, marker="o", label=f"{grammar}, {engine}")
    axes.set(xlabel="tokens", ylabel="mean mask, ms of CPU time", yscale="log")
    axes.legend(fontsize=7)
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def arguments() -> argparse.Namespace:
    """What to measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grammar", choices=GRAMMARS, action="append", help="by default all")
    parser.add_argument("--qwen", type=Path, help="qwen.tiktoken; by default that of the package dashscope")
    parser.add_argument("--gemma", type=Path, help="the tokenizer.json of Gemma 3; by default it is left out")
    parser.add_argument("--programs", type=Path, default=FOLDER / "programs", help="a folder for each grammar")
    parser.add_argument("--out", type=Path, default=FOLDER / "results")
    parser.add_argument("--cell", nargs=3, metavar=("GRAMMAR", "TITLE", "FILE"), help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Measure every cell in a process of its own and write the results."""
    asked = arguments()
    if asked.cell is not None:
        name, title, file = asked.cell
        texts = [path.read_bytes() for path in sorted((asked.programs / name).iterdir())]
        words = smollm2() if file == "-" else from_file(Path(file))
        print(json.dumps([asdict(cell) for cell in measure(name, words, title, texts)]))
        return
    files = {"SmolLM2": "-", "Qwen": asked.qwen or packaged_qwen(), "Gemma 3": asked.gemma}
    found: list[dict[str, Any]] = []
    for name in asked.grammar or GRAMMARS:
        for title, file in files.items():
            if file is None:
                print(f"{title}: no vocabulary given, so it is left out", file=sys.stderr)
                continue
            command = [sys.executable, "-m", "benchmarks.masks", "--programs", str(asked.programs)]
            done = subprocess.run(
                [*command, "--cell", name, title, str(file)], stdout=subprocess.PIPE, text=True, check=True
            )
            found += json.loads(done.stdout.splitlines()[-1])
            for cell in found[-2:]:
                print(f"{name:5} {title:8} {cell['engine']:20} mean {cell['warm']['mean']:7.2f} ms", file=sys.stderr)
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "masks.json").write_text(json.dumps({"machine": machine(), "cells": found}, indent=1) + "\n")
    cells = [Cell(**{**cell, **{key: Times(**cell[key]) for key in ("cold", "warm", "accept")}}) for cell in found]
    (asked.out / "masks.md").write_text(markdown(cells))
    plot(cells, asked.out / "masks.svg")


if __name__ == "__main__":
    main()
