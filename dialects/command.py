"""`python -m dialects`: the grammars of tools, as shipped or printed, and the witness harness."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from aufbau.witness import Outcome
from dialects.catalog import DIALECTS, by_name
from dialects.errors import DialectError
from dialects.harness import SEARCH_STEPS, Judged, Position, cases, judge
from registry import Registry, builtin

# What `grammars` writes: the grammar of the built-in tools in each dialect.
SHIPPED = {"c": "tool.auf", "sexpr": "tool_sexpr.auf", "xml": "tool_xml.auf"}
PAPER_CASES = 51
FOLDER = Path(__file__).parent / "grammars"


def shipped_text(dialect: str) -> str:
    """The grammar that the built-in tools generate in a dialect."""
    with builtin() as tools:
        return by_name(dialect).grammar_text(tools)


def tools_at(name: str | None) -> Registry:
    """The registry at `module:attribute`, or what a function there returns; by default the built-in tools.

    Raises `DialectError`.
    """
    if name is None:
        return builtin()
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise DialectError(f"TOOLS is module:attribute, and {name!r} can't be had: {error}") from error
    made = found() if callable(found) and not isinstance(found, Registry) else found
    if not isinstance(made, Registry):
        raise DialectError(f"{name} is a {type(made).__name__}; expected a Registry or a function that makes one")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit status, which is 2 where the input is wrong."""
    parser = argparse.ArgumentParser(prog="python -m dialects", description=__doc__)
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("grammars", help="write the shipped grammars (the default)")
    printing = commands.add_parser("grammar", help="print the grammar of some tools")
    harness = commands.add_parser("harness", help="every kind of prefix of a step, each with a text that completes it")
    for command in (printing, harness):
        command.add_argument(
            "tools", nargs="?", metavar="TOOLS", help="module:attribute; by default the built-in tools"
        )
        command.add_argument("--nested", action="store_true", help="arguments may be calls")
    printing.add_argument("--dialect", choices=tuple(DIALECTS), default="c")
    harness.add_argument("--dialect", choices=tuple(DIALECTS), action="append", help="by default all")
    harness.add_argument("--cases", action="store_true", help="print each case, and not only how many there are")
    asked = parser.parse_args(arguments)
    try:
        return _run(asked)
    except DialectError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2


def _run(asked: argparse.Namespace) -> int:
    if asked.command in ("grammar", "harness"):
        with tools_at(asked.tools) as tools:
            if asked.command == "harness":
                return _harness(tools, asked.dialect or list(DIALECTS), nested=asked.nested, listed=asked.cases)
            sys.stdout.write(by_name(asked.dialect).grammar_text(tools, nested=asked.nested))
    else:
        for dialect, file in SHIPPED.items():
            (FOLDER / file).write_text(shipped_text(dialect), encoding="utf-8")
            print(FOLDER / file)
    return 0


def _harness(tools: Registry, dialects: Sequence[str], *, nested: bool, listed: bool) -> int:
    """Print how many cases hold, of how many; the exit status is 1 when some don't."""
    lowered = {name: by_name(name).lower(tools, nested=nested) for name in dialects}
    judged = {name: [judge(language, case) for case in cases(language)] for name, language in lowered.items()}
    print(f"Prefixes of steps over {len(tools)} tools, each with a witness: those that hold, of all.\n")
    print(f"| prefix | {' | '.join(dialects)} |\n|---|{'---:|' * len(dialects)}")
    for position in Position:
        row = [[one for one in judged[name] if one.case.position is position] for name in dialects]
        if any(row):
            print(f"| {position.value} | {' | '.join(map(_held, row))} |")
    print(f"| all | {' | '.join(_held(judged[name]) for name in dialects)} |\n")
    total = sum(map(len, judged.values()))
    found = sum(one.search is Outcome.FOUND for each in judged.values() for one in each)
    print(f"In {found} of {total} cases the oracle found a completion of its own within {SEARCH_STEPS:,} steps.")
    print(f"{total} cases; the paper's harness has {PAPER_CASES}, for the four built-in tools in three dialects.")
    for one in (one for each in judged.values() for one in each):
        if listed or not one.holds:
            case = one.case
            where = " ".join(filter(None, (case.dialect, case.owner, case.part, case.position.value)))
            print(f"{'holds' if one.holds else 'FAILS'}: {where}: {case.prefix!r} + {case.witness!r}")
    return 0 if all(one.holds for each in judged.values() for one in each) else 1


def _held(found: Sequence[Judged]) -> str:
    return f"{sum(one.holds for one in found)}/{len(found)}"
