"""Measures masks over whole vocabularies, token by token along programs, next to the syntactic engines.

    scripts/bench masks [--qwen FILE] [--gemma FILE] [--grammar NAME] [--engine NAME] [--part NAME] [--quick] [--fresh]

Each cell, an engine on a grammar and a vocabulary, runs in a process of its own: up to the first mask, then through all
programs three times, with what is worked out on the way (first pass), with what that left behind (second pass), and
each half of the programs after the other half alone (unseen). Further parts measure what long prefixes cost, lazy
greedy decoding, the reference engine and the memory of long random walks. Times are CPU times, with the garbage
collector on. What was measured before with the same programs, versions and machine is kept; --fresh asks for all.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.mask_extras import KINDS
from benchmarks.mask_jobs import FOLDER, GRAMMARS, PEERS, Contender, Job, Words, asked_of, extra, measured, tasks
from benchmarks.mask_report import write
from benchmarks.mask_results import Results, read
from benchmarks.report import machine
from benchmarks.vocabularies import from_file, greedy, packaged_qwen, smollm2, spelled_out

CELLS = "cells"
QUICK = 2  # programs of each grammar
SOAK = 10_000  # masks of a walk


def interpreter(name: str) -> str:
    """The interpreter's whole path, since it is started from another folder; links stay, or it would lose its venv."""
    found = shutil.which(name)
    if found is None:
        raise argparse.ArgumentTypeError(f"{name} is no program; give the path of a Python interpreter")
    return os.path.abspath(found)


def contenders(asked: argparse.Namespace) -> list[Contender]:
    """Our builds with their twins, and the peers."""
    found: list[Contender] = []

    def add(title: str, python: str, module: str, options: dict[str, Any]) -> None:
        facts = asked_of(python, module, options | {"facts_only": True})
        found.append(Contender(title=title, python=python, module=module, options=options, facts=facts))

    for suffix, python in (("", sys.executable), (", compiled", asked.compiled)):
        if python is not None:
            for twin, syntax_only in (("", False), (", syntax only", True)):
                add(f"aufbau{suffix}{twin}", python, "mask_ours", {"syntax_only": syntax_only})
    if asked.peer is not None:
        for name in PEERS:
            add(name, asked.peer, "mask_peers", {"engine": name})
    return found


def vocabularies(asked: argparse.Namespace, folder: Path) -> Iterator[Words]:
    """Those that are at hand, spelled out into the folder, with the programs in their tokens."""
    texts = {name: sorted((asked.programs / name).iterdir()) for name in GRAMMARS}
    files = {"SmolLM2": "-", "Qwen": asked.qwen or packaged_qwen(), "Gemma 3": asked.gemma}
    for title, file in files.items():
        if file is None:
            print(f"{title}: no vocabulary given, so it is left out", file=sys.stderr)
            continue
        vocabulary = smollm2() if file == "-" else from_file(Path(file))
        path = folder / f"{title}.tiktoken"
        stop = spelled_out(vocabulary, path)
        programs = {
            name: [greedy(vocabulary, text.read_bytes()) for text in paths[: QUICK if asked.quick else None]]
            for name, paths in texts.items()
        }
        yield Words(title=title, path=path, tokens=stop + 1, vocabulary=vocabulary, programs=programs)


def arguments() -> argparse.Namespace:
    """What to measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grammar", choices=GRAMMARS, action="append", help="by default all")
    parser.add_argument("--engine", metavar="NAME", action="append", help="as the results name it; by default all")
    parser.add_argument("--qwen", type=Path, help="qwen.tiktoken; by default that of the package dashscope")
    parser.add_argument("--gemma", type=Path, help="the tokenizer.json of Gemma 3; by default it is left out")
    parser.add_argument("--programs", type=Path, default=FOLDER / "programs", help="a folder for each grammar")
    parser.add_argument(
        "--peer",
        type=interpreter,
        metavar="PYTHON",
        help="interpreter that has the peers; by default they are left out",
    )
    parser.add_argument(
        "--compiled", type=interpreter, metavar="PYTHON", help="interpreter that has the compiled build; likewise"
    )
    parser.add_argument("--part", choices=(CELLS, *KINDS), action="append", help="by default all")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} programs of each grammar, to see that it runs")
    parser.add_argument("--walk", type=int, default=SOAK, metavar="MASKS", help="length of the random walks")
    parser.add_argument("--fresh", action="store_true", help="measure again what is known")
    parser.add_argument("--out", type=Path, default=FOLDER / "results")
    return parser.parse_args()


def cells(jobs: list[Job], results: Results, asked: argparse.Namespace) -> Results:
    """The results with the cells that were asked for and missing."""
    for job in jobs:
        wanted = (asked.grammar is None or job.grammar in asked.grammar) and (
            asked.engine is None or job.contender.title in asked.engine
        )
        if not wanted or (not asked.fresh and any(cell.key == job.key for cell in results.cells)):
            continue
        cell = measured(job)
        print(
            f"{cell.grammar:5} {cell.vocabulary:8} {cell.engine:28} mean {cell.warm['mean']:8.3f} ms,"
            f" unseen {cell.unseen['mean']:8.3f}, first pass {cell.cold['mean']:8.3f}",
            file=sys.stderr,
        )
        kept = tuple(old for old in results.cells if old.key != cell.key)
        results = replace(results, cells=(*kept, cell))
        write(results, asked.out)
    return results


def main() -> None:
    """Measure what is missing, and write the results after each measurement."""
    asked = arguments()
    parts = asked.part or (CELLS, *KINDS)
    known = read(asked.out)
    with tempfile.TemporaryDirectory() as folder:
        engines = contenders(asked)
        words = list(vocabularies(asked, Path(folder)))
        jobs = [
            Job(contender=engine, grammar=name, words=one) for one in words for name in GRAMMARS for engine in engines
        ]
        others = tasks(engines, words, peer=asked.peer, masks=asked.walk)
        keys = {job.key for job in jobs} | {task.key for task in others}
        results = Results(
            machine=machine(),
            cells=tuple(cell for cell in known.cells if cell.key in keys),
            extras=tuple(found for found in known.extras if found.key in keys),
        )
        if CELLS in parts:
            results = cells(jobs, results, asked)
        for task in others:
            wanted = task.kind in parts and (asked.grammar is None or task.about.get("grammar") in asked.grammar)
            if not wanted or (not asked.fresh and any(old.key == task.key for old in results.extras)):
                continue
            print(f"{task.kind}: {', '.join(task.about.values())}", file=sys.stderr)
            kept = tuple(old for old in results.extras if old.key != task.key)
            results = replace(results, extras=(*kept, extra(task)))
            write(results, asked.out)
        write(results, asked.out)


if __name__ == "__main__":
    main()
