"""The processes that measure masks, each asked for one cell or one of the extras."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from aufbau.vocabulary import Vocabulary
from benchmarks.families import FAMILIES
from benchmarks.mask_extras import CANDIDATES, PREFIXES
from benchmarks.mask_growth import SHAPES, Shape
from benchmarks.mask_results import Cell, Extra
from benchmarks.report import machine
from benchmarks.vocabularies import greedy

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks"
GRAMMARS = {"ml": "ml", "c": "c", "tool": str(ROOT / "dialects" / "grammars" / "tool.auf")}
# The tool language starts at a whole program, whose ambient keys say what it may return.
STARTS: dict[str, dict[str, Any]] = {
    "tool": {"symbol": "Program", "ambient": {"open": "int", "some call": "int", "some docs": "int"}}
}
PEERS = {"llguidance": "lark", "xgrammar": "ebnf"}  # with how their grammars' names end
LAZY_PROGRAMS = 2  # of each grammar: the model's own passes take most of the time
FAMILY_LEXEMES = 60  # of the texts for the reference engine


@dataclass(frozen=True, kw_only=True, slots=True)
class Words:
    """A vocabulary ready for all engines."""

    title: str
    path: Path
    tokens: int  # with the stop token
    vocabulary: Vocabulary
    programs: dict[str, list[list[int]]]  # by grammar


@dataclass(frozen=True, kw_only=True, slots=True)
class Contender:
    """An engine as it is installed somewhere."""

    title: str
    python: str
    module: str
    options: dict[str, Any]
    facts: dict[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A cell to measure."""

    contender: Contender
    grammar: str
    words: Words

    @property
    def key(self) -> str:
        """A digest of all that the figures depend on."""
        facts = [self.contender.title, self.contender.facts, machine(), self.words.programs[self.grammar]]
        digest = sha256(json.dumps([*facts, self.request(first_only=False)["start"]]).encode())
        for path in (self.words.path, Path(self.grammar_file)):
            digest.update(path.read_bytes() if path.exists() else str(path).encode())
        return digest.hexdigest()[:16]

    @property
    def grammar_file(self) -> str:
        """What the engine loads."""
        ending = PEERS.get(self.contender.title)
        return str(FOLDER / "grammars" / f"{self.grammar}.{ending}") if ending else GRAMMARS[self.grammar]

    def request(self, *, first_only: bool) -> dict[str, Any]:
        """What the measuring process is asked."""
        start = dict(STARTS.get(self.grammar, {}))
        if self.contender.options.get("syntax_only"):
            start.pop("ambient", None)
        return self.contender.options | {
            "grammar": self.grammar_file,
            "start": start,
            "vocabulary": str(self.words.path),
            "tokens": self.words.tokens,
            "stop": self.words.tokens - 1,
            "programs": [] if first_only else self.words.programs[self.grammar],
            "first_only": first_only,
        }


def asked_of(python: str, module: str, request: dict[str, Any], *, cache: str | None = None) -> dict[str, Any]:
    """The answer of a measuring process. It sees these benchmarks, and of the packages just what is installed.

    Our engine keeps nothing on disk and finds nothing there, unless a folder for that is given.
    """
    stored = {"AUFBAU_NO_CACHE": "1"} if cache is None else {"AUFBAU_CACHE": cache, "AUFBAU_NO_CACHE": "0"}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "benchmarks").symlink_to(FOLDER)
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        done = subprocess.run(
            [python, "-m", f"benchmarks.{module}"],
            input=json.dumps(request),
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env=environment | stored | {"OMP_NUM_THREADS": "1"},
        )
    if done.returncode != 0:
        raise SystemExit(f"benchmarks.{module} failed under {python} (status {done.returncode}); its words stand above")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def measured(job: Job) -> Cell:
    """One cell."""
    contender = job.contender
    answer = asked_of(contender.python, contender.module, job.request(first_only=False))
    if contender.title not in PEERS:
        with tempfile.TemporaryDirectory() as cache:
            for _ in range(2):  # the first leaves what the second finds
                told = asked_of(contender.python, contender.module, job.request(first_only=True), cache=cache)
        answer["first_cached"] = told["first"]
    return Cell(
        key=job.key,
        engine=contender.title,
        grammar=job.grammar,
        vocabulary=job.words.title,
        tokens=job.words.tokens,
        facts=answer.pop("facts"),
        **answer,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """One of the extras to measure."""

    kind: str
    about: dict[str, str]
    facts: dict[str, Any]  # what its figures depend on, beside the machine
    run: Callable[[], dict[str, Any]]

    @property
    def key(self) -> str:
        """A digest of all that the figures depend on."""
        return sha256(json.dumps([self.kind, self.about, self.facts, machine()]).encode()).hexdigest()[:16]


def extra(task: Task) -> Extra:
    """One of the extras."""
    return Extra(key=task.key, kind=task.kind, about=task.about, figures=task.run())


def tasks(engines: Sequence[Contender], words: Sequence[Words], *, peer: str | None, masks: int) -> list[Task]:
    """All extras that these engines and vocabularies allow."""
    ours = [engine for engine in engines if engine.module == "mask_ours" and not engine.options["syntax_only"]]
    small = words[0]
    usual = next((one for one in words if one.title == "Qwen"), small)
    found = [_growth(engine, usual, shape) for engine in ours for shape in SHAPES]
    found += [_lazy(ours[0], small, grammar) for grammar in GRAMMARS]
    found += _references(ours[0], small, peer) if peer is not None else []
    found += [_soak(ours[0], usual, grammar, masks) for grammar in GRAMMARS]
    return found


def _task(kind: str, engine: Contender, module: str, about: dict[str, str], request: dict[str, Any]) -> Task:
    """What one process answers."""
    facts = {key: value for key, value in request.items() if key != "vocabulary"} | engine.facts
    return Task(kind=kind, about=about, facts=facts, run=lambda: asked_of(engine.python, module, request))


def _growth(engine: Contender, words: Words, shape: Shape) -> Task:
    request = Job(contender=engine, grammar=shape.grammar, words=words).request(first_only=True)
    request |= {"language": shape.grammar, "shape": shape.name}
    about = {"grammar": shape.grammar, "input": shape.name, "engine": engine.title}
    return _task("growth", engine, "mask_growth", about, request)


def _lazy(engine: Contender, words: Words, grammar: str) -> Task:
    request = Job(contender=engine, grammar=grammar, words=words).request(first_only=False)
    request["programs"] = request["programs"][:LAZY_PROGRAMS]
    return _task("lazy", engine, "mask_lazy", {"grammar": grammar}, request)


def _soak(engine: Contender, words: Words, grammar: str, masks: int) -> Task:
    request = Job(contender=engine, grammar=grammar, words=words).request(first_only=True)
    return _task("soak", engine, "mask_soak", {"grammar": grammar}, request | {"masks": masks})


def _references(engine: Contender, words: Words, peer: str) -> list[Task]:
    """The reference engine on texts of the small grammars, with ours on the same."""
    facts = asked_of(peer, "mask_reference", {"facts_only": True})
    found = []
    for family in FAMILIES:
        if family.small and family.name in ("declarations", "flat sum"):
            source = family.grammars()[f"{family.small}.auf"]
            text = family.nearest(FAMILY_LEXEMES).text
            about = {"input": family.title}
            run = partial(_reference, engine, words, peer, source, text)
            told = facts | engine.facts | {"source": source, "text": text}
            found.append(Task(kind="reference", about=about, facts=told, run=run))
    return found


def _reference(engine: Contender, words: Words, peer: str, source: str, text: str) -> dict[str, Any]:
    """Some candidates after some prefixes of the text there, whole masks along it here."""
    spellings = list(words.vocabulary)
    tokens = greedy(words.vocabulary, text.encode())
    readable = [token.decode() for token in spellings if token and _is_text(token)]
    ends = [sum(len(spellings[token]) for token in tokens[:count]) for count in range(len(tokens))]
    prefixes = [text.encode()[:end].decode() for end in spaced(ends, PREFIXES)]
    request = {"grammar": source, "prefixes": prefixes, "candidates": spaced(readable, CANDIDATES)}
    there = asked_of(peer, "mask_reference", request)["prefixes"]
    with tempfile.NamedTemporaryFile("w", suffix=".auf", encoding="utf-8") as file:
        file.write(source)
        file.flush()
        asked = Job(contender=engine, grammar="ml", words=words).request(first_only=False)
        here = asked_of(engine.python, engine.module, asked | {"grammar": file.name, "programs": [tokens]})
    return {
        "tokens": len(spellings),
        "candidate_ms": sum(one["ms"] for one in there) / len(there),
        "ours_ms": here["warm"]["mean"],
    }


def _is_text(spelling: bytes) -> bool:
    try:
        spelling.decode()
    except UnicodeDecodeError:
        return False
    return True


def spaced(items: Sequence[Any], count: int) -> list[Any]:
    """So many of the items, evenly spaced."""
    return [items[place * len(items) // count] for place in range(count)]
