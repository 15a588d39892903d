"""The S-expression dialect: what it keeps, where it loses what, how it spells."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from aufbau import Verdict
from dialects import LoweringError, SexprDialect
from registry import Registry, tool, type_from_hint
from registry.types import FLOAT
from tests.dialects.tools import CONTEXT, TOOLS, Docs, Level, Page, check_kept, check_lost, read

LOWERED = SexprDialect().lower(TOOLS)

KEPT = [
    '(let p (search "a"))',
    '(let p (search "a" 3 "exact"))',
    '(let p (search "a" :mode "exact"))',
    '(let p (search :mode "exact" :limit 3 :query "a"))',
    '( let p\n  ( search\n    "a"\t:limit 3 ) )',
    '(let p (search "\\u00e9\\ud83d\\ude00 \\"q\\" \\n \\/ é 東京 ) \x7f" -0))',
    "(let p (search page.title page.size))",
    '(let s (scale 1.5e-3 "LOW"))',
    '(let s (scale 2 :level "HIGH"))',
    "(let f (first pages))",
    "(let f (first [page page] null))",
    "(let f (first [ page\n page ]))",
    "(let f (first [] :default page))",
    '(let f (first [(Page :title "t" :size 1 :docs page.docs)]))',
    '(let f (first [(Page :size 1 :day (date "2024-02-29") :docs page.docs :title "t")]))',
    "(let r (read page.docs))",
    '(let o (on :loud true :date (date "2026-01-02")))',
    '(let date2 (on (date "2026-01-02") false))',
    "(let lets (read page.docs))",
    "(return 3)",
    "(return count)",
    "(return page.size)",
]


@pytest.mark.parametrize("text", KEPT)
def test_kept_and_read_back(text: str) -> None:
    check_kept(LOWERED, text)


# The text up to the bar is not lost, and the byte after it loses it.
LOST = [
    ('(let p (se|rch "a"))', "a misspelled tool"),
    ("(let p (search |3))", "an int where a string is demanded"),
    ("(let p (search na|nme))", "a name that is not bound"),
    ('(let p (search "a" |"b"))', "a string where an int is demanded"),
    ('(let p (search "a" 3 "f|ull"))', "no member of the enumeration"),
    ('(let p (search "a" :limit |"b"))', "a keyword argument of another type"),
    ("(let p (search|))", "a missing argument"),
    ("(let p (search :limit 3|))", "a required argument skipped"),
    ('(let p (search "a" 3 "fast" |4))', "an argument too many"),
    ('(let p (search "a" :|query "b"))', "an argument given twice"),
    ('(let p (search "a" :limit 3 :|limit 4))', "a keyword given twice"),
    ('(let p (search :query "a" |3))', "a positional argument after a keyword"),
    ('(let p (search "a" :limit|3))', "a keyword without white space"),
    ('(let p (search "a"|:limit 3))', "arguments that touch"),
    ("(let p|(search 3))", "a binder that touches its call"),
    ("(let r (read page.d|ay))", "a field of another type"),
    ("(let r (read page.do|x))", "no such field"),
    ('(let o (on (date "2025-02-2|9") true))', "a day that does not exist"),
    ("(let f (first [page |3]))", "a list of different types"),
    ("(let page| (read page.docs))", "a name that is bound already"),
    ("(let read| (read page.docs))", "a tool's name as a binder"),
    ('(let f (first |(search "a")))', "a nested call where these are off"),
    ('(return |"a")', "a return of another type than demanded"),
    ("(return 0|1)", "numbers that touch"),
    ("(return 1.5|-2)", "a number that goes on as another one"),
    ("(return 3) |(let", "a second step"),
    ("(return 3        | )", "more white space than is allowed"),
    ("(return 3|;", "the end of another dialect"),
]


@pytest.mark.parametrize(("marked", "why"), LOST, ids=[why for _, why in LOST])
def test_lost_where_it_goes_wrong(marked: str, why: str) -> None:
    check_lost(LOWERED, marked)


def test_nested_calls_are_an_option() -> None:
    nested = SexprDialect().lower(TOOLS, nested=True)
    text = '(return (scale (on (date "2026-01-02") true) "LOW"))'
    prefix = nested.start({}, FLOAT).feed(text)
    tree = prefix.tree()
    assert prefix.verdict is Verdict.SATISFIED and tree is not None
    assert nested.render_step(nested.read_step(tree)) == text


def test_a_program_may_stand_on_one_line() -> None:
    text = "(let r (read page.docs))(let s (read page.docs))\n(return 3)"
    prefix = LOWERED.start(CONTEXT, FLOAT, "Program").feed(text)
    assert prefix.verdict is Verdict.SATISFIED


VALUES: list[tuple[object, Any, str]] = [
    ('a "b"\n é', str, '"a \\"b\\"\\n é"'),
    (-3, int, "-3"),
    (1e300, float, "1e+300"),
    (True, bool, "true"),
    (None, Page | None, "null"),
    ([1.0, 2.5], list[float], "[1.0 2.5]"),
    (Level.HIGH, Level, '"HIGH"'),
    (datetime.date(2026, 1, 2), datetime.date, '(date "2026-01-02")'),
]


@pytest.mark.parametrize(("value", "hint", "text"), VALUES)
def test_values_are_spelled_and_read_back(value: object, hint: Any, text: str) -> None:
    lowered = SexprDialect().lower(TOOLS, types=[type_from_hint(list[float])])
    kind = type_from_hint(hint)
    assert lowered.render_value(value, kind) == text
    assert lowered.start({}, kind).feed(f"(return {text})").verdict is Verdict.SATISFIED


def null(null: Docs, true: int = 1) -> int:
    """A tool whose name and parameters are keywords."""
    raise NotImplementedError


def test_parameters_may_have_names_of_keywords_and_tools_may_not() -> None:
    lowered = SexprDialect().lower(Registry([read, tool(name="zero")(null)]))
    context = {"d": type_from_hint(Docs)}
    assert lowered.start(context).feed("(let z (zero :true 1 :null d))").verdict is Verdict.SATISFIED
    with pytest.raises(LoweringError, match="keyword of the S-expression dialect"):
        SexprDialect().lower(Registry([null]))
