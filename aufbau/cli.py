"""The `aufbau` command: check a grammar, judge a text, list what may come next, trace lexeme by lexeme."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from aufbau.errors import AufbauError
from aufbau.grammar.grammar import Grammar, shipped
from aufbau.oracle import Oracle, Prefix
from aufbau.store import default_store
from aufbau.verdict import Verdict

EXIT = {Verdict.SATISFIED: 0, Verdict.LIVE: 1, Verdict.LOST: 2}
EXIT_WRONG_INPUT = 3
STYLE = {Verdict.SATISFIED: "bold green", Verdict.LIVE: "yellow", Verdict.LOST: "bold red"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status is 0 satisfied, 1 live, 2 lost, 3 wrong input."""
    options = _parser().parse_args(arguments)
    console = Console(highlight=False, soft_wrap=True)
    try:
        command: Callable[[argparse.Namespace, Console], int] = options.command
        return command(options, console)
    except AufbauError as error:
        Console(stderr=True, highlight=False, soft_wrap=True).print(f"[bold red]error:[/] {escape(str(error))}")
        return EXIT_WRONG_INPUT
    except BrokenPipeError:
        # The reader of our output has gone; what it did not want to read is no error.
        sys.stderr.close()
        return EXIT_WRONG_INPUT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="aufbau", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    check = commands.add_parser("check", help="load a grammar with every check and say what it holds")
    check.add_argument("grammar", help=f"a shipped grammar ({', '.join(shipped())}) or an .auf file")
    check.add_argument("--source", action="store_true", help="print the grammar as it renders")
    check.add_argument("--classify", action="store_true", help="decide whether dead ends are excluded, and show why")
    check.set_defaults(command=_check)
    run = commands.add_parser("run", help="judge a text: verdict, type, where and why it is lost")
    _text_options(run)
    run.add_argument("--every-prefix", action="store_true", help="give the verdict after every byte")
    run.add_argument("--json", action="store_true", help="print JSON")
    run.add_argument("--tree", action="store_true", help="print the typed syntax tree of a satisfied text")
    run.set_defaults(command=_run)
    expected = commands.add_parser("expected", help="list what may come next, with types")
    _text_options(expected, inline=True)
    expected.set_defaults(command=_expected)
    trace = commands.add_parser("trace", help="a line for each lexeme: verdict, time, what may follow")
    _text_options(trace, inline=True)
    trace.set_defaults(command=_trace)
    cache = commands.add_parser("cache", help="where compiled grammars are kept for later runs, and how much it is")
    cache.add_argument("--clear", action="store_true", help="remove what is kept")
    cache.set_defaults(command=_cache)
    # Validation pulls in processes and compilers, which the other commands should not wait for.
    from aufbau.validation.command import add_parser

    add_parser(commands)
    return parser


def _text_options(parser: argparse.ArgumentParser, inline: bool = False) -> None:
    parser.add_argument("-g", "--grammar", required=True, help="a shipped grammar or an .auf file")
    parser.add_argument(
        "text", help="the text, or - for standard input" if inline else "a file, or - for standard input"
    )
    parser.add_argument("--goal", help="the type demanded of the whole text")
    parser.add_argument(
        "--context",
        action="append",
        default=[],
        metavar="NAME:TYPE",
        help="a name in scope with its type; may be given several times",
    )
    parser.add_argument("--symbol", help="start at this nonterminal")
    parser.add_argument("--syntactic", action="store_true", help="use the twin without typing rules")
    parser.set_defaults(inline=inline)


def _text(options: argparse.Namespace) -> bytes:
    if options.text == "-":
        return sys.stdin.buffer.read()
    if options.inline:
        return str(options.text).encode()
    try:
        return Path(options.text).read_bytes()
    except OSError as error:
        raise AufbauError(f"the text can't be read: {error}; give a file, or - for standard input") from error


def _start(options: argparse.Namespace) -> Prefix:
    oracle = Oracle(Grammar.load(options.grammar))
    if options.syntactic:
        return oracle.syntactic().start(symbol=options.symbol)
    context = {}
    for entry in options.context:
        name, colon, bound = entry.partition(":")
        if not colon:
            raise AufbauError(f"--context {entry}: write NAME:TYPE, for example x:int")
        context[name.strip()] = bound.strip()
    return oracle.start(context=context, goal=options.goal, symbol=options.symbol)


def _check(options: argparse.Namespace, console: Console) -> int:
    grammar = Grammar.load(options.grammar)
    if options.source:
        console.print(escape(grammar.source()), end="")
        return 0
    model = grammar.model
    machine = grammar.machine(model.start)
    console.print(f"[bold green]ok[/] {escape(model.source_name)}")
    rows = {
        "starts": ", ".join((model.start, *model.roots)),
        "nonterminals": str(len(model.definitions)),
        "productions": str(sum(len(d.alternatives) for d in model.definitions)),
        "rules": ", ".join(rule.name for rule in model.rules) or "none: a grammar without semantics",
        "types": ", ".join(machine.syntax.roots) or "none",
        "terminals": f"{len(machine.terminals)}, {machine.automaton.size} states",
        "words": " ".join(
            t for t, literal in zip(machine.terminals, machine.terminal_is_literal, strict=True) if literal
        ),
    }
    for name, value in rows.items():
        console.print(f"  [dim]{name:<13}[/]{escape(value)}")
    if options.classify:
        console.print(escape(str(grammar.check())))
    return 0


def _cache(options: argparse.Namespace, console: Console) -> int:
    store = default_store()
    if store is None:
        console.print("nothing is kept: AUFBAU_NO_CACHE is set, or the package is no folder of files")
        return 0
    if options.clear:
        store.clear()
    files = f"{store.count} file{'' if store.count == 1 else 's'}"
    size = f"{store.nbytes / 1e6:.1f} MB of at most {store.limit / 1e6:.0f}"
    console.print(escape(f"{store.folder}: {files}, {size}"))
    return 0


def _record(prefix: Prefix) -> dict[str, object]:
    record: dict[str, object] = {"verdict": prefix.verdict.value, "bytes": len(prefix.text)}
    if prefix.verdict is Verdict.SATISFIED:
        record |= {"type": prefix.type, "types": list(prefix.types), "context": prefix.context}
        record["extensible"] = prefix.extensible
    if prefix.verdict is Verdict.LOST:
        explanation = prefix.explain()
        record |= {
            "lost_at": prefix.lost_at,
            "line": explanation.line,
            "column": explanation.column,
            "message": explanation.message,
            "clashes": [
                {"rule": c.rule, "premise": c.premise, "wanted": c.wanted, "found": c.found, "message": c.message}
                for c in explanation.clashes
            ],
            "near": list(explanation.near),
        }
    return record


def _run(options: argparse.Namespace, console: Console) -> int:
    text = _text(options)
    prefix = _start(options)
    verdicts = [prefix.verdict]
    if options.every_prefix:
        for byte in text:
            prefix = prefix.feed(bytes((byte,)))
            verdicts.append(prefix.verdict)
    else:
        prefix = prefix.feed(text)
    if options.json:
        record = _record(prefix)
        if options.every_prefix:
            record["prefixes"] = [verdict.value for verdict in verdicts]
        if options.tree and (tree := prefix.tree()) is not None:
            record["tree"] = json.loads(tree.to_json())
        sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
        return EXIT[prefix.verdict]
    if options.every_prefix:
        for count, verdict in enumerate(verdicts):
            shown = escape(text[:count].decode(errors="replace")[-60:].replace("\n", "⏎"))
            console.print(f"{count:>6} [{STYLE[verdict]}]{verdict!s:<9}[/] {shown}")
    _report(prefix, console)
    if options.tree and (tree := prefix.tree()) is not None:
        console.print(escape(str(tree)))
    return EXIT[prefix.verdict]


def _report(prefix: Prefix, console: Console) -> None:
    verdict = prefix.verdict
    shown = f"[{STYLE[verdict]}]{verdict}[/]"
    if verdict is Verdict.SATISFIED and prefix.types:
        shown += " : " + escape(" | ".join(prefix.types))
    console.print(shown)
    if verdict is Verdict.LOST:
        console.print(escape(str(prefix.explain())))


def _expected(options: argparse.Namespace, console: Console) -> int:
    prefix = _start(options).feed(_text(options))
    if prefix.verdict is Verdict.LOST:
        _report(prefix, console)
        return EXIT[prefix.verdict]
    if prefix.verdict is Verdict.SATISFIED:
        _report(prefix, console)
    table = Table(box=None, header_style="dim")
    for column in ("kind", "text", "type"):
        table.add_column(column)
    for expectation in prefix.expected():
        table.add_row(expectation.kind.value, escape(expectation.text), escape(expectation.type or ""))
    console.print(table)
    return EXIT[prefix.verdict]


def _trace(options: argparse.Namespace, console: Console) -> int:
    text = _text(options)
    prefix = _start(options)
    boundaries = _boundaries(prefix, text)
    console.print(f"[dim]{'byte':>6} {'µs':>6}  {'verdict':<9} lexeme → what may follow[/]")
    at = 0
    for end in boundaries:
        began = time.perf_counter()
        prefix = prefix.feed(text[at:end])
        verdict = prefix.verdict
        spent = (time.perf_counter() - began) * 1e6
        following = ", ".join(str(e) for e in prefix.expected()[:6])
        if verdict is Verdict.SATISFIED:
            following = f"type {prefix.type}; {following}" if prefix.type else following
        shown = text[at:end].decode(errors="replace").replace("\n", "⏎")
        console.print(
            f"{at:>6} {spent:>6.0f}  [{STYLE[verdict]}]{verdict!s:<9}[/] "
            f"[bold]{escape(shown.strip() or shown)}[/]" + (f"  [dim]→ {escape(following)}[/]" if following else "")
        )
        at = end
        if verdict is Verdict.LOST:
            break
    _report(prefix, console)
    return EXIT[prefix.verdict]


def _boundaries(prefix: Prefix, text: bytes) -> list[int]:
    """Ends of the lexemes of a text by the grammar's automaton, white space joined to what precedes it."""
    automaton = prefix.automaton
    ends: list[int] = []
    at = 0
    while at < len(text):
        state, end = automaton.start, at + 1
        for position in range(at, len(text)):
            state = automaton.step(state, text[position])
            if state < 0:
                break
            if automaton.accepts[state]:
                end = position + 1
        if ends and not text[at:end].strip():
            ends[-1] = end
        else:
            ends.append(end)
        at = end
    return ends


if __name__ == "__main__":
    raise SystemExit(main())
