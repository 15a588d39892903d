"""`agentkit trace FILE.json -o PAGE.html`, and the file that `agentkit run --trace` writes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from agentkit.trace.errors import TraceError
from agentkit.trace.model import Trace
from agentkit.trace.page import trace_page


def add_parser(commands: Any) -> None:
    """Add the command to a parser's subcommands."""
    parser = commands.add_parser("trace", help="show a run that was written down as JSON, as one HTML page")
    parser.add_argument("file", nargs="?", type=Path, metavar="TRACE.json", help="what `agentkit run --trace` wrote")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="a .html or .json file (default: stdout)")
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema of traces, and nothing else")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    if options.schema:
        print(json.dumps(Trace.json_schema(), indent=2))
        return 0
    if options.file is None:
        raise TraceError("give the file of a trace, as `agentkit run EPISODE.toml --trace FILE.json` writes it")
    trace = read_trace(options.file)
    if options.output is None:
        print(trace_page(trace), end="")
    else:
        write_trace(trace, options.output)
    return 0


def read_trace(path: Path) -> Trace:
    """The trace of a JSON file. Raises `TraceError`."""
    try:
        return Trace.from_json(path.read_bytes())
    except OSError as error:
        raise TraceError(f"{path}: can't be read: {error.strerror}") from error
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from error


def check_target(path: Path) -> None:
    """Refuse a file name that says no form, and a folder that isn't there, before there is anything to write."""
    if path.suffix not in (".html", ".json"):
        raise TraceError(f"{path}: a trace is written as .html or as .json; end the name in one of them")
    if not path.absolute().parent.is_dir():
        raise TraceError(f"{path}: there is no folder {path.absolute().parent}; make it first")


def write_trace(trace: Trace, path: Path) -> None:
    """Write a trace in the form that the file's name says. Raises `TraceError`."""
    check_target(path)
    text = trace_page(trace) if path.suffix == ".html" else trace.to_json(indent=2)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise TraceError(f"{path}: {error}") from error
