"""What a broken grammar or a wrong start is told: the place, what is wrong, and how to mend it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from aufbau import (
    AufbauError,
    Grammar,
    GrammarError,
    LimitError,
    Limits,
    Oracle,
    StartError,
    TypeTextError,
    Verdict,
)

# A type, a typed literal and a name; the table counts lines from the first one after it.
BASE = """%start S Name Num
Type* ::= 'int' | 'bool'

--- (num)
'int'

Name ::= /[a-z]+/
Num(num) ::= /[0-9]+/
"""

# id, text, line, column, part of the message, part of the hint
SURFACE = [
    ("unknown-nonterminal", "Word ::= 'x' Wrod\n", 1, 14, "unknown nonterminal Wrod in Word", "Word"),
    ("unknown-nonterminal-far", "A ::= 'x' Zebra\n", 1, 11, "Zebra", "define it, or quote it"),
    ("second-line", "A ::= 'x'\n    | 'y' Bee\n", 2, 11, "Bee", "define it"),
    (
        "twice",
        "A ::= 'x'\nA ::= 'y'\n",
        2,
        1,
        "A is defined twice (first at line 1)",
        "join the alternatives",
    ),
    ("unproductive", "A ::= 'x' A\nB ::= A | 'y'\n", 1, 1, "A is unproductive", "does not lead back"),
    ("unreachable", "A ::= 'x'\nC ::= 'z'\nB ::= A\n", 2, 1, "C is unreachable from B", "%start B C"),
    ("cycle", "A ::= B | 'x'\nB ::= A\n", 1, 1, "zero-consumption cycle", "remove the unit alternative"),
    ("cycle-nullable", "E ::= ε\nA ::= E A E | 'x'\n", 2, 1, "A can derive A itself", "Proposition 2.2"),
    (
        "cycle-of-three",
        "C ::= B | 'x'\nB ::= A\nA ::= C | 'y'\n",
        1,
        1,
        "zero-consumption cycle",
        "unit alternative",
    ),
    ("empty-regex", "A ::= //\n", 1, 7, "an empty regex", "at least one character"),
    ("nullable-regex", "A ::= 'x' /a*/\n", 1, 11, "matches the empty text", "ε alternative"),
    ("impossible-regex", "A ::= /[^\\x00-\\u{10FFFF}]/\n", 1, 7, "matches nothing", "no text"),
    ("backreference", "A ::= /(a)\\1/\n", 1, 11, "not regular", "spell the repeated text out"),
    ("lookahead", "A ::= /a(?=b)/\n", 1, 9, "lookahead", "longest match"),
    ("anchor", "A ::= /^a/\n", 1, 8, "anchor", "remove it"),
    ("lazy", "A ::= /a+?/\n", 1, 10, "lazy", "longest match"),
    ("open-group", "A ::= 'x' /ab(/\n", 1, 14, "is not closed", "add `)`"),
    ("open-literal", "A ::= 'x\n", 1, 7, "does not end on its line", "close it with '"),
    ("open-regex", "A ::= /x\n", 1, 7, "does not end on its line", "close it with /"),
    ("open-binding", "A ::= B[x\nB ::= 'x'\n", 1, 8, "binding that does not end", "Name[binding]"),
    ("empty-literal", "A ::= ''\n", 1, 7, "an empty literal", "ε"),
    ("stray-character", "A ::= 'x' + 'y'\n", 1, 11, "unexpected '+'", "symbols are"),
    ("nothing", "// only a comment\n", 1, 1, "defines no nonterminal", "at least one production"),
    ("empty", "", 1, 1, "defines no nonterminal", "at least one production"),
    ("prose", "A ::= 'x'\n\nhello world\n", 3, 1, "neither productions nor a rule", "::="),
    ("mixed-block", "A ::= 'x'\n--- (a)\n'int'\n", 2, 1, "both productions and a rule", "blank line"),
    ("continuation", "A ::= 'x'\n  'y'\n", 2, 3, "expected a definition", "continue the alternatives with |"),
    ("directive", "A ::= 'x'\n\n  %foo bar\n", 3, 3, "unknown directive %foo", "%start Name"),
    ("start-unknown", "\n%start Aa\nA ::= 'x'\n", 2, 8, "start symbol Aa is not defined", "did you mean A"),
    ("start-empty", "%start\nA ::= 'x'\n", 1, 7, "%start needs the name", "%start Program"),
    ("contextual-unknown", "A ::= 'get'\n\n%contextual 'gett'\n", 3, 13, "'gett' names no literal", "get"),
    ("contextual-bare", "%contextual get\nA ::= 'get'\n", 1, 13, "needs quoted words", "%contextual 'get'"),
    ("ignore-literal", "%ignore 'x'\nA ::= 'x'\n", 1, 9, "%ignore needs one regex", "%ignore /"),
    ("ignore-nullable", "%ignore / */\nA ::= 'x'\n", 1, 9, "matches the empty text", "consume something"),
    ("rewrite", "A ::= 'x'\n\n?A ⇝ ?B\n", 3, 1, "rewrite rules", "termination"),
    ("no-type-sort", "Num(num) ::= /[0-9]+/\n\n--- (num)\n'int'\n", 4, 1, "no type fragment", "Type* ::="),
]

RULES = [
    (
        "unattached",
        "A(lable) ::= Num\nS ::= A\n\n--- (label)\n'int'\n",
        4,
        6,
        "rule label is attached to no",
        "lable",
    ),
    ("label-without-rule", "S(nmu) ::= Num\n", 1, 1, "S is labelled nmu", "num"),
    (
        "rule-twice",
        "S(s) ::= Num\n\n--- (s)\n'int'\n\n--- (s)\n'bool'\n",
        6,
        6,
        "rule s is defined twice",
        "remove one",
    ),
    ("binding", "S(s) ::= Name[xx]\n\nyy ∈ Γ\n--- (s)\nΓ(xx)\n", 3, 1, "the binding yy", "bind it"),
    (
        "binding-near",
        "S(s) ::= Name[name]\n\nnmae ∈ Γ\n--- (s)\n⊤\n",
        3,
        1,
        "the binding nmae",
        "did you mean name",
    ),
    ("binding-in-conclusion", "S(s) ::= Name[x]\n\nx ∈ Γ\n--- (s)\nΓ(y)\n", 5, 1, "the binding y", "bind it"),
    ("binding-of-child", "S(s) ::= Num[e]\n\nΓ ⊢ f : ?A\n--- (s)\n⊤\n", 3, 1, "the binding f", "bind it"),
    (
        "alternative-lacks",
        "S(s) ::= Num[l] '+' Num[r]\n  | Num\n\nΓ ⊢ l : ?A\n--- (s)\n⊤\n",
        4,
        1,
        "(line 10) lacks",
        "Symbol[l]",
    ),
    ("bound-twice", "S(s) ::= Num[x] Num[x]\n\n--- (s)\n'int'\n", 1, 17, "S binds x twice", "its own name"),
    ("type-unknown", "S(s) ::= Num[e]\n\nΓ ⊢ e : 'itn'\n--- (s)\n⊤\n", 3, 10, "'itn' begins no type", "Type"),
    (
        "type-too-long",
        "S(s) ::= Num[e]\n\nΓ ⊢ e : int int\n--- (s)\n⊤\n",
        3,
        13,
        "is not a type",
        "types are spelled by",
    ),
    (
        "type-name-is-no-type",
        "S(s) ::= Name[x]\n\nΓ(x) = x\n--- (s)\n⊤\n",
        3,
        8,
        "'x'",
        "look names up with Γ(x)",
    ),
    (
        "second-premise",
        "S(s) ::= Name[x]\n\nx ∈ Γ,\n   z ∈ Γ\n--- (s)\n⊤\n",
        4,
        4,
        "the binding z",
        "bind it",
    ),
    (
        "second-premise-type",
        "S(s) ::= Name[x]\n\nx ∈ Γ,\n   Γ(x) =  'itn'\n--- (s)\n⊤\n",
        4,
        13,
        "itn",
        "types are",
    ),
    (
        "ambient-never-set",
        "S(s) ::= Num[e]\n\n'return' ∈ Γ\n--- (s)\n⊤\n",
        3,
        1,
        "'return', which nothing sets",
        "%ambient",
    ),
    (
        "ambient-read",
        "S(s) ::= Num[e]\n\nΓ ⊢ e : Γ('ret')\n--- (s)\n⊤\n",
        3,
        9,
        "'ret', which nothing sets",
        "Γ['ret'",
    ),
    (
        "ambient-fresh",
        "S(s) ::= Num\n\n'k' ∉ Γ\n--- (s)\n⊤\n",
        3,
        1,
        "an ambient key can't be fresh",
        "x ∉ Γ",
    ),
    (
        "lexeme-judged",
        "S(s) ::= Name[x]\n\nΓ ⊢ x : 'int'\n--- (s)\n⊤\n",
        3,
        1,
        "lexeme without a type",
        "Γ(x)",
    ),
    ("no-lexeme", "S(s) ::= Num[n]\n\nn ∈ Γ\n--- (s)\n⊤\n", 3, 1, "not a single lexeme", "bind a terminal"),
    (
        "backwards",
        "S(s) ::= Num[e] Name[x]\n\nΓ[x:'int'] ⊢ e : ?A\n--- (s)\n⊤\n",
        3,
        3,
        "stands before it",
        "left to right",
    ),
    (
        "impossible",
        "S(s) ::= Num\n\n'int' = 'bool'\n--- (s)\n⊤\n",
        3,
        1,
        "can never hold: int is not bool",
        "check the types",
    ),
    (
        "valueless",
        "V(v) ::= 'v'\nS(s) ::= V[e]\n\n--- (v)\n⊤\n\nΓ ⊢ e : 'int'\n--- (s)\n'int'\n",
        7,
        1,
        "never",
        "⊤",
    ),
    ("premise", "S(s) ::= Num\n\nx foo Γ\n--- (s)\n⊤\n", 3, 1, "can't be read: x foo Γ", "premises are"),
    (
        "no-comma",
        "S(s) ::= Name[x] Name[y]\n\nx ∈ Γ y ∈ Γ\n--- (s)\n⊤\n",
        3,
        1,
        "can't be read",
        "premises are",
    ),
    (
        "untyped-judgement",
        "S(s) ::= Num[e]\n\nΓ ⊢ e\n--- (s)\n⊤\n",
        3,
        1,
        "a judgement without a type",
        "⊤ when",
    ),
    (
        "untyped-extension",
        "S(s) ::= Num[e]\n\nΓ[x] ⊢ e : ⊤\n--- (s)\n⊤\n",
        3,
        3,
        "an extension without a type",
        "Γ[x:τ]",
    ),
    ("open-extension", "S(s) ::= Num[e]\n\nΓ[x:'int' ⊢ e : ⊤\n--- (s)\n⊤\n", 3, 2, "does not end", "]"),
    ("missing-type", "S(s) ::= Num[e]\n\nΓ ⊢ e :\n--- (s)\n⊤\n", 3, 8, "a type is missing", "⊤"),
    (
        "effect-without-type",
        "S(s) ::= Name[x]\n\n--- (s)\nΓ → Γ[x:'int']\n",
        4,
        1,
        "an effect without a type",
        "⊢ σ",
    ),
    ("nameless", "S(s) ::= Num\n\n--------\n⊤\n", 3, 1, "a rule without a name", "after the dashes"),
    (
        "no-conclusion",
        "S(s) ::= Num[e]\n\nΓ ⊢ e : ?A\n--- (s)\n",
        4,
        1,
        "rule s has no conclusion",
        "under the dashes",
    ),
    (
        "two-rules",
        "S(s) ::= Num[e]\n\n--- (s)\n⊤\n--- (t)\n⊤\n",
        5,
        1,
        "two rules in one block",
        "blank line",
    ),
]

AMBIGUOUS = """Type* ::= 'int' | Type '->' Type
Num(num) ::= /[0-9]+/

--- (num)
'int' -> 'int' -> 'int'
"""


def refused(text: str) -> GrammarError:
    """The error of a grammar that must not load."""
    with pytest.raises(GrammarError) as caught:
        Grammar.parse(text, source_name="broken.auf")
    return caught.value


@pytest.mark.parametrize(
    ("text", "line", "column", "message", "hint"), [pytest.param(*c[1:], id=c[0]) for c in SURFACE]
)
def test_broken_surface(text: str, line: int, column: int, message: str, hint: str) -> None:
    check_fault(refused(text), line, column, message, hint)


@pytest.mark.parametrize(("text", "line", "column", "message", "hint"), [pytest.param(*c[1:], id=c[0]) for c in RULES])
def test_broken_rules(text: str, line: int, column: int, message: str, hint: str) -> None:
    check_fault(refused(BASE + text), BASE.count("\n") + line, column, message, hint)


def check_fault(error: GrammarError, line: int, column: int, message: str, hint: str) -> None:
    """Compare an error with what is wanted of it."""
    assert message in error.message
    assert (error.line, error.column) == (line, column)
    assert hint in error.hint
    assert str(error).startswith(f"broken.auf:{line}:{column}: ")


def test_a_type_that_reads_in_two_ways() -> None:
    error = refused(AMBIGUOUS)
    assert error.line == 5 and "2 ways" in error.message and "parentheses" in error.hint


def test_two_constructors_that_cannot_be_told_apart_differ_or_are_refused() -> None:
    """A label on several bare literals must not make one type of them."""
    text = "Type* ::= Base\nBase(base) ::= 'int' | 'bool'\nNum(num) ::= /[0-9]+/\n\n--- (num)\n'int'\n"
    try:
        oracle = Oracle(Grammar.parse(text))
    except GrammarError as error:
        assert error.line == 2
        return
    assert oracle.start(goal="bool").verdict is Verdict.LOST


def test_base_of_the_table_loads() -> None:
    """Each entry of RULES is broken by what it adds, not by what all share."""
    assert Oracle(Grammar.parse(BASE + "S ::= Num\n")).start().feed("1").type == "int"


# Loading


def test_unknown_names_and_files(tmp_path: Path) -> None:
    for name in ("ocaml", tmp_path / "missing.auf", tmp_path):
        with pytest.raises(GrammarError) as caught:
            Grammar.load(name)
        assert "stlc" in caught.value.hint
    binary = tmp_path / "binary.auf"
    binary.write_bytes(b"\xff\xfe\x00A")
    with pytest.raises(GrammarError, match="there is no grammar"):
        Grammar.load(binary)


def test_a_file_is_named_in_its_errors(tmp_path: Path) -> None:
    file = tmp_path / "mine.auf"
    file.write_text("A ::= Bee\n", encoding="utf-8")
    with pytest.raises(GrammarError, match=r"mine\.auf:1:7"):
        Grammar.load(file)
    file.write_bytes("A ::= 'x'\r\n\r\nB ::= A 'é'\r\n".encode())
    assert Oracle(Grammar.load(str(file))).start().feed("xé").verdict is Verdict.SATISFIED


# Starting


FUN = Oracle(Grammar.load("fun"))
STARTS: list[tuple[str, Callable[[], object], type[AufbauError], str]] = [
    ("symbol", lambda: FUN.start(symbol="Expr"), StartError, "Expr"),
    ("symbol-lists", lambda: FUN.start(symbol="Nope"), StartError, "Expression"),
    ("goal", lambda: FUN.start(goal="Itn"), TypeTextError, "goal"),
    ("goal-empty", lambda: FUN.start(goal=""), TypeTextError, "empty"),
    ("goal-unfinished", lambda: FUN.start(goal="Int ->"), TypeTextError, "Int ->"),
    ("context-type", lambda: FUN.start(context={"x": "Int ->"}), TypeTextError, "x"),
    ("context-name", lambda: FUN.start(context={"two words": "Int"}), StartError, "two words"),
    ("context-number", lambda: FUN.start(context={"": "Int"}), StartError, "''"),
    ("context-reserved", lambda: FUN.start(context={"let": "Int"}), StartError, "let"),
    ("ambient-hole", lambda: FUN.start(ambient={"return": "?A"}), TypeTextError, "hole"),
    ("ambient", lambda: FUN.start(ambient={"return": "Itn"}), TypeTextError, "return"),
    ("no-types", lambda: Oracle(Grammar.parse("A ::= 'x'\n")).start(goal="int"), TypeTextError, "type"),
]


@pytest.mark.parametrize(("call", "kind", "part"), [pytest.param(*c[1:], id=c[0]) for c in STARTS])
def test_wrong_starts(call: Callable[[], object], kind: type[AufbauError], part: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert part in str(caught.value)


# Limits


def test_the_limit_of_text_bytes_at_its_edge() -> None:
    oracle = Oracle(Grammar.load("fun"), limits=Limits(text_bytes=8))
    prefix = oracle.start().feed("1 + 2 + ")
    assert prefix.verdict is Verdict.LIVE
    with pytest.raises(LimitError, match=r"8 bytes.*Limits\(text_bytes"):
        prefix.feed("3")
    assert prefix.verdict is Verdict.LIVE, "the prefix is as it was"


def test_the_limit_of_chart_items_at_its_edge() -> None:
    grammar = Grammar.load("fun")
    text = "1 + 2 + 3"
    spent = next(n for n in range(10, 20_000, 10) if _fits(grammar, text, n))
    with pytest.raises(LimitError, match=r"items.*Limits\(chart_items"):
        _ = Oracle(grammar, limits=Limits(chart_items=spent - 10)).start().feed(text).verdict
    start = Oracle(grammar, limits=Limits(chart_items=spent)).start()
    kept = start.feed(text)
    with pytest.raises(LimitError):
        kept.feed(" + 4" * 20)
    assert kept.feed("").verdict is Verdict.SATISFIED and start.feed(text).type == "Int"


def _fits(grammar: Grammar, text: str, items: int) -> bool:
    try:
        return Oracle(grammar, limits=Limits(chart_items=items)).start().feed(text).verdict is Verdict.SATISFIED
    except LimitError:
        return False
