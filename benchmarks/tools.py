"""Measures the step languages of large registries: loading, first mask, masks along steps, in every dialect.

    python -m benchmarks.tools [TOOLS] [--bindings N] [--steps N] [--seed N]

TOOLS is module:attribute, a registry or a function that makes one; by default 128 made-up tools with types of every
kind. `benchmarks.tools:bfcl` has the tools of all BFCL multi-turn classes, where the package `bfcl-eval` is installed.
Γ holds N bindings, of all types in turn. Steps call tools chosen at random with arguments of the right types, half of
them names. Each token of each step asks for a mask over SmolLM2's vocabulary, twice: with what is worked out on the
way, and with what that left behind. Times are CPU times of one core.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from aufbau import Grammar
from aufbau.vocabulary import Vocabulary
from benchmarks.report import machine
from benchmarks.vocabularies import greedy, smollm2
from dialects import (
    DIALECTS,
    Call,
    Expression,
    Let,
    ListLiteral,
    Literal,
    LoweredDialect,
    RecordLiteral,
    Reference,
)
from dialects.command import tools_at
from dialects.steps import LiteralValue
from registry import Handle, Registry, tool
from registry.types import DateType, EnumType, ListType, OptionalType, RecordType, ScalarType, ToolType

RESULTS: Final = Path(__file__).parent / "results"
Made = TypeVar("Made")


class Docs(Handle):
    """Documents that were found."""


class Account(Handle):
    """An account that was opened."""


@dataclasses.dataclass(frozen=True)
class Page:
    """A record with a handle."""

    title: str
    docs: Docs
    size: int = 0


@dataclasses.dataclass(frozen=True)
class Mail:
    """A record that can be written out."""

    subject: str
    body: str
    when: datetime.date | None = None


_HINTS: Final = (str, int, float, bool, datetime.date, Docs, Account, Page, Mail, list[str], str | None, float | None)
_BFCL_CLASSES: Final = (
    "GorillaFileSystem",
    "MathAPI",
    "MessageAPI",
    "TwitterAPI",
    "TicketAPI",
    "TradingBot",
    "TravelAPI",
    "VehicleControlAPI",
)
_VERBS: Final = ("get", "set", "find", "list", "make", "book", "send", "read", "close", "open", "move", "check")
_NOUNS: Final = ("file", "user", "order", "ticket", "flight", "message", "stock", "route", "car", "door", "post")
_WORDS: Final = ("query", "limit", "path", "name", "value", "start", "end", "city", "amount", "mode", "folder", "unit")


def made_up(count: int = 128, seed: int = 0) -> Registry:
    """Tools of up to five parameters, the optional ones with defaults."""
    choose, made = random.Random(seed), Registry()
    names = [f"{verb}_{noun}" for verb in _VERBS for noun in _NOUNS]
    for name in choose.sample(names, count):
        hints = {word: choose.choice(_HINTS) for word in choose.sample(_WORDS, choose.choice((0, 1, 1, 2, 2, 3, 4, 5)))}
        scope: dict[str, Any] = {f"hint_{word}": hint for word, hint in hints.items()} | {
            "result": choose.choice(_HINTS)
        }
        parts = (
            f"{word}: hint_{word}{' = None' if type(None) in _members(hint) else ''}" for word, hint in hints.items()
        )
        star = "*, " if hints else ""
        exec(f"def {name}({star}{', '.join(parts)}) -> result:\n    raise NotImplementedError", scope)
        made.add(tool(scope[name]))
    return made


def bfcl() -> Registry:
    """The tools of all classes of the BFCL multi-turn entries."""
    from episodes.importers.bfcl import Bfcl

    return Bfcl().registry({"involved_classes": _BFCL_CLASSES})


def _members(hint: object) -> tuple[object, ...]:
    return getattr(hint, "__args__", ())


def bindings(lowered: LoweredDialect, count: int) -> dict[str, ToolType]:
    """So many names, of all types in turn."""
    kinds = list(lowered.universe)
    return {f"{_WORDS[i % len(_WORDS)]}{i}": kinds[i % len(kinds)] for i in range(count)}


def steps(lowered: LoweredDialect, context: Mapping[str, ToolType], count: int, seed: int) -> Iterator[str]:
    """Spelled steps; tools that need what is not bound are left out."""
    choose = random.Random(seed)
    tools = list(lowered.registry.values())
    while count:
        made = choose.choice(tools)
        values = [(part.name, _value(lowered, part.type, context, choose)) for part in made.parameters]
        given = tuple((name, value) for name, value in values if value is not None)
        if len(given) == len(values):
            count -= 1
            yield lowered.render_step(Let(name="fresh", call=Call(tool=made.name, arguments=given)))


def _value(
    lowered: LoweredDialect, kind: ToolType, context: Mapping[str, ToolType], choose: random.Random
) -> Expression | None:
    names = [name for name, bound in context.items() if bound == kind]
    if names and choose.random() < 0.5:
        return Reference(name=choose.choice(names))
    match kind:
        case ScalarType():
            values: dict[str, LiteralValue] = {"string": "some words here", "int": 42, "float": 1.5, "bool": True}
            return Literal(value=values[kind.name])
        case DateType():
            return Literal(value=datetime.date(2026, 1, 2))
        case EnumType():
            return Literal(value=choose.choice(kind.members))
        case OptionalType():
            return _value(lowered, kind.item, context, choose)
        case ListType():
            item = _value(lowered, kind.item, context, choose)
            return ListLiteral(items=(item,) if item is not None else ())
        case RecordType() if kind in lowered.universe.written:
            parts = [(part.name, _value(lowered, part.type, context, choose)) for part in kind.fields if part.required]
            fields = tuple((name, value) for name, value in parts if value is not None)
            return RecordLiteral(type=kind.name, fields=fields) if len(fields) == len(parts) else None
    return Reference(name=choose.choice(names)) if names else None


_PASSES: Final = ("first pass", "second pass")
_ROWS: Final = (
    *("load, not cached", "load, cached", "start", "first mask"),
    *(f"{name}, {figure}" for name in _PASSES for figure in ("mean", "median", "p99", "maximum")),
    *("masks", "a byte"),
)


def timed(work: Callable[[], Made]) -> tuple[Made, float]:
    """What some work gives, and the milliseconds of CPU time that it took."""
    before = time.process_time()
    made = work()
    return made, (time.process_time() - before) * 1000


def measure(dialect: str, tools: Registry, vocabulary: Vocabulary, asked: argparse.Namespace) -> dict[str, float]:
    """The numbers of one dialect."""
    text = DIALECTS[dialect].grammar_text(tools)
    _, cold = timed(lambda: Grammar.parse(text, cache=False))
    DIALECTS[dialect].lower(tools)  # leaves the compiled grammar on disk
    lowered, warm = timed(lambda: DIALECTS[dialect].lower(tools))
    context = bindings(lowered, asked.bindings)
    texts = list(steps(lowered, context, asked.steps, asked.seed))
    start, opening = timed(lambda: lowered.start(context))
    _, first = timed(lambda: lowered.oracle.mask(start, vocabulary))
    row = {"load, not cached": cold, "load, cached": warm, "start": opening, "first mask": first}
    for name in _PASSES:
        spent = [ms for text in texts for ms in _masks(lowered, context, text, vocabulary)]
        row |= {f"{name}, mean": statistics.mean(spent), f"{name}, median": statistics.median(spent)}
        row |= {f"{name}, p99": statistics.quantiles(spent, n=100)[98], f"{name}, maximum": max(spent)}
    _, bytewise = timed(lambda: _fed(lowered, context, texts))
    return row | {"masks": len(spent), "a byte": bytewise / sum(len(text.encode()) for text in texts)}


def _masks(lowered: LoweredDialect, context: Mapping[str, ToolType], text: str, vocabulary: Vocabulary) -> list[float]:
    prefix, spent = lowered.start(context), []
    for token in greedy(vocabulary, text.encode()):
        mask, ms = timed(lambda at=prefix: lowered.oracle.mask(at, vocabulary))  # type: ignore[misc]
        if not mask[token]:
            raise ValueError(f"{text!r} is refused after {prefix.text!r}")
        spent.append(ms)
        prefix = prefix.feed(vocabulary.spelling(token))
    return spent


def _fed(lowered: LoweredDialect, context: Mapping[str, ToolType], texts: Sequence[str]) -> None:
    for text in texts:
        prefix = lowered.start(context)
        for byte in text.encode():
            prefix = prefix.feed(bytes((byte,)))


def main() -> None:
    """Measure every dialect, and write `results/tools.json` and `.md`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", nargs="?", metavar="TOOLS", default="benchmarks.tools:made_up")
    parser.add_argument("--bindings", type=int, default=50)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    tools, vocabulary = tools_at(asked.tools), smollm2()
    rows = {dialect: measure(dialect, tools, vocabulary, asked) for dialect in DIALECTS}
    path = RESULTS / "tools.json"
    known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    known[asked.tools] = {
        "tools": len(tools),
        "bindings": asked.bindings,
        "steps": asked.steps,
        "seed": asked.seed,
        "machine": machine(),
        "ms": rows,
    }
    path.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    (RESULTS / "tools.md").write_text(page(known), encoding="utf-8")
    print(page(known))


def page(known: Mapping[str, Any]) -> str:
    """The results as Markdown, a table for each registry."""
    lines = [
        "# Step languages of large registries",
        "",
        "Milliseconds of CPU time; `python -m benchmarks.tools --help`.",
        "",
    ]
    for name, found in sorted(known.items()):
        lines += [f"## {name}: {found['tools']} tools, {found['bindings']} bindings, {found['steps']} steps", ""]
        lines += [f"| | {' | '.join(DIALECTS)} |", f"|---|{'---:|' * len(DIALECTS)}"]
        for key in _ROWS:
            shown = (f"{found['ms'][dialect][key]:.3g}" for dialect in DIALECTS)
            lines.append(f"| {key} | {' | '.join(shown)} |")
        lines += ["", f"Machine: {', '.join(found['machine'].values())}.", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
