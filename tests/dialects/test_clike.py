"""The C-like dialect: what it keeps, where it loses what, what it refuses to lower, and how it spells values."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any, Literal

import pytest

from aufbau import Verdict
from dialects import (
    CLikeDialect,
    ContextError,
    LoweredDialect,
    LoweringError,
    ReadingError,
    Return,
    Root,
    SpellingError,
)
from dialects.reader import MAX_DEPTH
from registry import Handle, Registry, type_from_hint
from registry.types import FLOAT, INT, STRING, ToolType
from tests.dialects.tools import CONTEXT, TOOLS, Docs, Level, Page, check_kept, check_lost, read

LOWERED = CLikeDialect().lower(TOOLS)
SATISFIED = Verdict.SATISFIED

KEPT = [
    'let p = search("a");',
    'let p = search("a", 3);',
    'let p = search("a", 3, "exact");',
    'let p = search("a", mode = "exact");',
    'let p = search(query = "a", limit = 3);',
    'let p = search(mode = "exact", query = "a", limit = 3);',
    'let p = search("a", mode = "exact", limit = 3);',
    'let p = search( query="a" ,\n\tlimit=3 ) ;',
    'let p = search("\\u00e9\\ud83d\\ude00 \\"q\\" \\n \\/ é 東京 \x7f", -0);',
    "let p = search(name, count);",
    "let p = search(page.title, page.size);",
    'let s = scale(1.5e-3, "LOW");',
    'let s = scale(2, level = "HIGH");',
    'let s = scale(count, "LOW");',
    'let s = scale(page.size, "LOW");',
    "let f = first(pages);",
    "let f = first([page, page], null);",
    "let f = first([], default = page);",
    'let f = first([Page(title = "fast", size = 1, docs = page.docs)]);',
    'let f = first([Page(title = "t", size = 1, docs = page.docs, day = date("2024-02-29"))]);',
    "let r = read(page.docs);",
    'let o = on(date = date("2026-01-02"), loud = true);',
    'let date = on(date("2026-01-02"), false);',
    "let query = read(page.docs);",
    "let lets = read(page.docs);",
    "return 3;",
    "return count;",
    "return page.size;",
]


@pytest.mark.parametrize("text", KEPT)
def test_kept_and_read_back(text: str) -> None:
    check_kept(LOWERED, text)


# The text up to the bar is not lost, and the byte after it loses it.
LOST = [
    ('let p = se|rch("a");', "a misspelled tool"),
    ('let p = f|etch("a");', "an unknown tool"),
    ("let p = search(|3);", "an int where a string is demanded"),
    ("let p = search(|count);", "a bound name of another type"),
    ("let p = search(na|nme);", "a name that is not bound"),
    ('let p = search("a", |"b");', "a string where an int is demanded"),
    ('let p = search("a", 3, "f|ull");', "no member of the enumeration"),
    ('let p = search("a", limit = |"b");', "a keyword argument of another type"),
    ("let p = search(|);", "a missing argument"),
    ('let p = search("a", 3, "fast"|, 4);', "an argument too many"),
    ("let p = search(limit = 3|);", "a required argument skipped"),
    ('let p = search(limit = 3, query = "a", |limit = 4);', "an argument given twice by keyword"),
    ('let p = search("a", |query = "b");', "an argument given by position and by keyword"),
    ('let p = search(query = "a", |3);', "a positional argument after a keyword"),
    ('let p = search(mode = "fast", query = "a", limit = 3|, mode = "fast");', "nothing left to give"),
    ('let r = read(|"docs");', "a string for a handle"),
    ("let r = read(page.d|ay);", "a field of another type"),
    ("let r = read(page.do|x);", "no such field"),
    ("let r = read(page|s.docs);", "a field of a list"),
    ('let o = on(date("2025-02-2|9"), true);', "a day that does not exist"),
    ('let o = on(|"2025-02-28", true);', "a string for a date"),
    ("let f = first([page, |3]);", "a list of different types"),
    ("let f = first([page], |3);", "an int where a record or null is demanded"),
    ("let page| = read(page.docs);", "a name that is bound already"),
    ("let read| = read(page.docs);", "a tool's name as a binder"),
    ("let r = |page;", "a let that binds no call"),
    ('let f = first(|search("a"));', "a nested call where these are off"),
    ('return |"a";', "a return of another type than demanded"),
    ("return |true;", "a truth value for a number"),
    ("return 3; |let", "a second step"),
    ("return   3        | ;", "more white space than is allowed"),
    ('let p = search("\\ud800|");', "half a surrogate pair"),
    ('let p = search("a|\n");', "a raw line end in a string"),
    ('let p = search("a", 0|1);', "a leading zero"),
]


@pytest.mark.parametrize(("marked", "why"), LOST, ids=[why for _, why in LOST])
def test_lost_where_it_goes_wrong(marked: str, why: str) -> None:
    check_lost(LOWERED, marked)


def test_nested_calls_are_an_option() -> None:
    nested = CLikeDialect().lower(TOOLS, nested=True)
    text = 'return scale(on(date("2026-01-02"), true), "LOW");'
    prefix = nested.start({}, FLOAT).feed(text)
    tree = prefix.tree()
    assert prefix.verdict is Verdict.SATISFIED and tree is not None
    assert nested.render_step(nested.read_step(tree)) == text


def test_unrealizable_demands_are_pruned_at_the_tool() -> None:
    assert LOWERED.start({}, FLOAT).feed("let r = r").lost_at == len("let r = ")
    assert LOWERED.start(CONTEXT, FLOAT).feed("let r = r").verdict is Verdict.LIVE
    assert LOWERED.start({}, type_from_hint(Docs)).feed("r").verdict is Verdict.LOST
    late = CLikeDialect().lower(TOOLS, realizable=False)
    assert late.start({}, FLOAT).feed("let r = read").verdict is Verdict.LIVE


def test_a_program_realizes_later_what_calls_make() -> None:
    program = 'let p = search("a");\nlet f = first(p);\nlet r = read(f.docs);\nreturn r;'
    prefix = LOWERED.start({}, STRING, "Program").feed(program)
    tree = prefix.tree()
    assert prefix.verdict is Verdict.SATISFIED and tree is not None
    assert LOWERED.render_program(LOWERED.read_program(tree)) == program
    assert LOWERED.start({}, STRING, "Program").feed("let r = r").lost_at == len("let r = ")
    docs = type_from_hint(Docs)
    assert LOWERED.start({}, docs, "Program").feed("r").verdict is Verdict.LOST
    assert LOWERED.start({}, docs, "Program").feed(program.rsplit("\n", 2)[0] + "return f.docs;").verdict is SATISFIED


def test_a_record_is_written_only_where_something_demands_it() -> None:
    tools = Registry([make("open_page", result=Page), read])
    page, docs = tools["open_page"].returns, tools["read"].parameters[0].type
    text = 'return Page(title = "t", size = 1, docs = d);'
    for types, verdict in ([], Verdict.LOST), ([page], SATISFIED):
        lowered = CLikeDialect().lower(tools, types=types)
        assert lowered.start({"d": docs}, page).feed(text).verdict is verdict
        assert lowered.start({"p": page}, page).feed("return p;").verdict is SATISFIED
        assert lowered.start({}, page).feed("let p = open_page();").verdict is SATISFIED


OPEN = [
    "return 3;",
    "return count;",
    "return pages;",
    "return [];",
    "return [1, 2];",
    'return [["a"], []];',
    "return [1.5];",
]


@pytest.mark.parametrize("text", OPEN)
def test_without_an_output_type_anything_typed_may_be_returned(text: str) -> None:
    assert LOWERED.start(CONTEXT).feed(text).verdict is Verdict.SATISFIED


@pytest.mark.parametrize("text", ["return null;", "return [1, true];", "return cou;"])
def test_without_an_output_type_what_has_no_type_is_lost(text: str) -> None:
    assert LOWERED.start(CONTEXT).feed(text).verdict is Verdict.LOST


def test_what_is_nested_too_deeply_is_not_read() -> None:
    lowered = CLikeDialect().lower(TOOLS)
    for depth, readable in ((MAX_DEPTH, True), (MAX_DEPTH + 1, False)):
        tree = lowered.start({}, None).feed(f"return {'[' * depth}1{']' * depth};").tree()
        assert tree is not None
        if readable:
            assert isinstance(lowered.read_step(tree), Return)
        else:
            with pytest.raises(ReadingError, match="nested more than"):
                lowered.read_step(tree)


def test_a_program_is_no_step() -> None:
    tree = LOWERED.start({}, INT, Root.PROGRAM).feed('let p = search("a"); return 3;').tree()
    assert tree is not None
    with pytest.raises(ReadingError, match="is no step"):
        LOWERED.read_step(tree)


def make(name: str, **annotations: Any) -> Any:
    """A function that can become a tool of that name."""

    def function(**arguments: object) -> object:
        raise NotImplementedError

    namespace: dict[str, Any] = {f"hint_{key}": hint for key, hint in annotations.items()}
    parameters = ", ".join(f"{key}: hint_{key}" for key in annotations if key != "result")
    exec(f"def {name}({parameters}) -> hint_result:\n    raise NotImplementedError", namespace)
    return namespace[name]


@dataclasses.dataclass(frozen=True)
class Keyed:
    """A record with a field that no keyword argument can name."""

    true: int


REFUSED: list[tuple[list[Any], str]] = [
    ([], "no tool"),
    ([make("let", result=int)], "tool let"),
    ([make("date", result=datetime.date)], "word for dates"),
    ([make("f", null=int, result=int)], "parameter null of tool f"),
    ([make("f", result=Keyed)], "field true of record type Keyed"),
]


@pytest.mark.parametrize(("tools", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused_registries(tools: list[Any], message: str) -> None:
    with pytest.raises(LoweringError, match=message):
        CLikeDialect().lower(Registry(tools))


def test_a_tool_may_be_called_date_where_there_are_no_dates() -> None:
    lowered = CLikeDialect().lower(Registry([make("date", result=int)]))
    assert lowered.start({}, INT).feed("let x = date();").verdict is Verdict.SATISFIED


def test_two_types_of_one_spelling_are_refused() -> None:
    other = type("Docs", (Handle,), {})
    with pytest.raises(LoweringError, match="two types are spelled 'docs'"):
        CLikeDialect().lower(TOOLS, types=[type_from_hint(other)])


BAD_STARTS: list[tuple[dict[str, ToolType], ToolType | None, str]] = [
    ({"read": INT}, None, "reserves"),
    ({"zwölf": INT}, None, "can't be a bound name"),
    ({"x": type_from_hint(Literal["a"], name="other")}, None, "the type of x, other"),
    ({}, type_from_hint(list[float]), r"the output type, list\[float\]"),
]


@pytest.mark.parametrize(("context", "output", "message"), BAD_STARTS)
def test_contexts_outside_the_language_are_refused(
    context: dict[str, ToolType], output: ToolType | None, message: str
) -> None:
    with pytest.raises(ContextError, match=message):
        LOWERED.start(context, output)


def test_types_can_be_added() -> None:
    floats = type_from_hint(list[float])
    lowered = CLikeDialect().lower(TOOLS, types=[floats])
    assert lowered.start({"xs": floats}, floats).feed("return [1, 2.5];").verdict is Verdict.SATISFIED


@pytest.fixture
def small() -> LoweredDialect:
    return CLikeDialect().lower(TOOLS, types=[type_from_hint(list[float])])


VALUES: list[tuple[object, Any, str]] = [
    ('a "b"\n é', str, '"a \\"b\\"\\n é"'),
    (-3, int, "-3"),
    (3.0, float, "3.0"),
    (1e300, float, "1e+300"),
    (True, bool, "true"),
    (None, Page | None, "null"),
    ([1.0, 2.5], list[float], "[1.0, 2.5]"),
    (Level.HIGH, Level, '"HIGH"'),
    (datetime.date(2026, 1, 2), datetime.date, 'date("2026-01-02")'),
]


@pytest.mark.parametrize(("value", "hint", "text"), VALUES)
def test_values_are_spelled_and_read_back(small: LoweredDialect, value: object, hint: Any, text: str) -> None:
    kind = type_from_hint(hint)
    assert small.render_value(value, kind) == text
    assert small.start({}, kind).feed(f"return {text};").verdict is Verdict.SATISFIED


UNSPELLABLE: list[tuple[object, Any, str]] = [
    (Docs(), Docs, "can't be written as a literal"),
    (float("inf"), float, "only finite numbers"),
    (1.7e308, float, "largest exponent"),
    (10**24, int, "at most 24 digits"),
    ("\ud800", str, "half a surrogate pair"),
    (Page(title="t", size=1, docs=Docs()), Page, "can't be written as a literal"),
]


@pytest.mark.parametrize(("value", "hint", "message"), UNSPELLABLE)
def test_values_without_a_literal(value: object, hint: Any, message: str) -> None:
    with pytest.raises(SpellingError, match=message):
        LOWERED.render_value(value, type_from_hint(hint))
