"""Sizes and inputs beyond the ordinary: depth, length, bytes that are no text, budgets, interruption."""

from __future__ import annotations

import contextlib
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from aufbau import Grammar, LimitError, Limits, Oracle, Prefix, Verdict
from aufbau.earley.arena import Arena
from aufbau.typesystem.terms import Terms
from aufbau.typesystem.unify import Substitution

ROOT = Path(__file__).parents[2]
FUN = Oracle(Grammar.load("fun"))
STLC = Oracle(Grammar.load("stlc"))
TEXT = Oracle(
    Grammar.parse(
        """Text(text) ::= /"([^"\\\\]|\\\\.)*"/
Name ::= /[a-z]+/
Type* ::= 'text'
Var(var) ::= Name[x]
Start ::= Text | Var

--- (text)
'text'

x ∈ Γ
--- (var)
Γ(x)
"""
    )
)
INFERENCE = Oracle(
    Grammar.parse(
        """Name ::= /[a-z]+/
Type* ::= Base | Arrow
Base ::= 'unit' | '(' Type ')'
Arrow(arrow) ::= Base '->' Type
Var(var) ::= Name[x]
Fn(fn) ::= 'fn' Name[x] '=>' Expr[e]
Expr ::= Fn | Var

x ∈ Γ
--- (var)
Γ(x)

Γ[x:?A] ⊢ e : ?B
--- (fn)
?A -> ?B
"""
    )
)


def items(prefix: Prefix) -> int:
    """Items in the chart of a prefix: the measure of work that no busy machine disturbs."""
    return max(hypothesis.items.total for hypothesis in prefix._state.hypotheses)


def nested(depth: int) -> str:
    """Parentheses around a one."""
    return "(" * depth + "1" + ")" * depth


# Depth


def test_deep_nesting_is_parsed_without_recursion() -> None:
    prefix = FUN.start().feed(nested(2_000))
    assert prefix.verdict is Verdict.SATISFIED
    assert prefix.type == "Int" and not prefix.feed(")").extensible
    assert FUN.start().feed("(" * 2_000 + ")").lost_at == 2_000


@pytest.mark.parametrize("form", ["json", "dot", "text"])
def test_the_tree_of_deep_nesting_renders(form: str) -> None:
    tree = FUN.start().feed(nested(1_200)).tree()
    assert tree is not None
    shown = {"json": tree.to_json, "dot": tree.to_dot, "text": tree.__str__}[form]()
    leaf = {"json": '"text": "("', "dot": 'label="("', "text": "'('"}[form]
    assert shown.count(leaf) == 1_200


_MEASURED = """
import re, sys
from pathlib import Path
from aufbau import Grammar, Oracle
prefix = Oracle(Grammar.load("fun")).start()
depth = int(sys.argv[1])
for part in ("(" * depth, "1", ")" * depth):
    prefix = prefix.feed(part)
print(prefix.verdict.name, prefix.type, prefix.lost_at)
tree = prefix.tree()
print(tree.end, len(tree.children[0].text) == len(tree.text))
status = Path("/proc/self/status").read_text()  # getrusage would count the process that forked this one
print(int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) // 1024)
"""


@pytest.mark.parametrize(
    ("depth", "mebibytes"),
    [(5_000, 200), pytest.param(100_000, 1_500, marks=[pytest.mark.slow, pytest.mark.timeout(900)])],
)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of a process is read from /proc")
def test_nesting_needs_bounded_memory(depth: int, mebibytes: int) -> None:
    command = [sys.executable, "-c", _MEASURED, str(depth)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    verdict, spans, peak = done.stdout.splitlines()
    assert verdict == "SATISFIED Int None" and spans == f"{2 * depth + 1} True"
    assert int(peak) < mebibytes


def test_deep_types_are_read_compared_and_rendered() -> None:
    arrows = 120
    spelled = " -> ".join(["Int"] * arrows)
    assert FUN.start(goal=spelled).feed("(x : Int) => ").verdict is Verdict.LIVE
    assert FUN.start(context={"f": spelled}).feed("f").type == spelled
    assert FUN.start().feed(f"(f : {spelled}) => f").type == f"({spelled}) -> {spelled}"
    assert FUN.start(context={"f": spelled}).feed("f" + "(1)" * (arrows - 1)).type == "Int"
    assert FUN.start(context={"f": spelled}).feed("f" + "(1)" * arrows).lost_at == 1 + 3 * (arrows - 1)


@pytest.mark.parametrize("depth", [30, 120])
def test_deep_types_with_holes(depth: int) -> None:
    """Deeper than a demand may be: what is cut off there is held against it later."""
    text = "".join(f"fn {'x' * (n % 7 + 1)} => " for n in range(depth)) + "x"
    found = INFERENCE.start().feed(text)
    assert found.verdict is Verdict.SATISFIED and found.type is not None
    assert found.type.count("->") == depth
    goal = "unit -> " * depth + "?A"
    assert INFERENCE.start(goal=goal).feed(text).type == "unit -> " * depth + "unit"


def test_terms_deeper_than_the_stack() -> None:
    terms = Terms()
    depth = 5_000
    chain = terms.var(7)
    for _ in range(depth):
        chain = terms.con("->", (terms.con("int"), chain))
    renamed = terms.rename(chain, {})
    assert renamed is terms.canonical(chain)[0] and renamed is not chain
    assert terms.shift(renamed, 7) is chain
    assert terms.instance(renamed, (terms.var(7),)) is chain
    assert terms.cut(chain, 3, [0]).depth == 4
    solved = Substitution(terms)
    assert solved.unify(chain, terms.con("->", (terms.var(1), terms.var(2))))
    assert not solved.unify(terms.var(7), terms.var(2)), "the occurs check sees through the whole chain"
    assert solved.resolve(terms.var(1)) is terms.con("int")


def test_a_deep_context_type_built_by_the_program() -> None:
    depth = 300
    text = "".join(f"λf{n}:{'A->' * n}A." for n in range(40)) + "f39" + " f0" * 39
    assert STLC.start().feed(text).verdict is Verdict.SATISFIED
    wrapped = "(" * depth + "A" + ")" * depth
    assert STLC.start().feed(f"λx:{wrapped}.x").type == "A -> A"


# Length


def test_flat_sums_grow_linearly() -> None:
    counts = [items(FUN.start().feed("1" + " + 1" * n)) for n in (50, 100, 200)]
    assert counts[2] - counts[1] <= 2.2 * (counts[1] - counts[0])


def test_declarations_grow_linearly() -> None:
    def program(n: int) -> str:
        return "".join(f"let x{i} : Int = {i}; " for i in range(n))

    counts = [items(FUN.start().feed(program(n))) for n in (20, 40, 80)]
    assert counts[2] - counts[1] <= 2.2 * (counts[1] - counts[0])


def test_nesting_grows_linearly() -> None:
    counts = [items(FUN.start().feed("(" * n)) for n in (100, 200, 400)]
    assert counts[2] - counts[1] <= 2.2 * (counts[1] - counts[0])


def test_application_chains_grow_linearly() -> None:
    start = STLC.start(context={"f": "(A -> A) -> A -> A", "i": "A -> A"})
    counts = [items(start.feed("f (" * n)) for n in (10, 20, 40)]
    assert counts[2] - counts[1] <= 2.2 * (counts[1] - counts[0])


def test_a_long_lexeme_costs_as_much_as_it_is_long() -> None:
    """Memory: 100,000 bytes of one string stay below 300 MiB more; with a copy a byte it would be five gigabytes."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    prefix = TEXT.start().feed('"' + "long é " * 14_000)
    assert prefix.verdict is Verdict.LIVE and items(prefix) == items(TEXT.start())
    assert prefix.feed('"').verdict is Verdict.SATISFIED
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024


def test_a_long_name_and_many_names() -> None:
    long = "x" * 250
    names = {f"{'ab'[i % 2]}{'cdefghij'[i % 8]}{'x' * (i // 8)}": "text" for i in range(400)}
    start = TEXT.start(context={**names, long: "text"})
    assert start.feed(long[:-1]).verdict is Verdict.LIVE
    assert start.feed(long).verdict is Verdict.SATISFIED
    assert start.feed(long + "x").lost_at == 250
    assert len(start.expected()) == 402


# Bytes

INVALID = [
    ("lone-continuation", b'"a\x80', 2),
    ("lone-lead", b'"\xc3"', 2),
    ("overlong", b'"\xc0\xaf', 1),
    ("overlong-three", b'"\xe0\x80', 2),
    ("surrogate", b'"\xed\xa0\x80', 2),
    ("beyond-unicode", b'"\xf4\x90', 2),
    ("five-bytes", b'"\xf8', 1),
    ("outside-of-a-string", b"\xff", 0),
    ("nul-outside", b"\x00", 0),
]


@pytest.mark.parametrize(("data", "at"), [pytest.param(*c[1:], id=c[0]) for c in INVALID])
def test_invalid_utf8_is_lost_where_it_stops_being_utf8(data: bytes, at: int) -> None:
    prefix = TEXT.start().feed(data)
    assert (prefix.verdict, prefix.lost_at) == (Verdict.LOST, at)
    assert f"byte {at}" in str(prefix.explain())


@pytest.mark.parametrize("character", ["é", "漢", "🙂", "\U0010ffff", "\u0800", "\x00"])
def test_characters_may_come_byte_by_byte(character: str) -> None:
    prefix = TEXT.start().feed('"')
    for byte in character.encode():
        prefix = prefix.feed(bytes((byte,)))
        assert prefix.verdict is Verdict.LIVE
    assert prefix.feed('"').verdict is Verdict.SATISFIED


def test_a_letter_that_begins_in_one_token_and_ends_in_the_next() -> None:
    start = STLC.start()
    assert start.feed(b"\xce").verdict is Verdict.LIVE
    assert start.feed(b"\xce").feed(b"\xbbx:A.x").type == "A -> A"
    assert start.feed(b"\xce\xbcx").lost_at == 1
    assert start.feed("λx:A".encode() + b"\xe2\x86").feed(b"\x92B.x").type == "(A -> B) -> A -> B"


def test_the_empty_text() -> None:
    assert FUN.start().verdict is Verdict.LIVE and FUN.start().feed("").feed(b"").text == b""
    assert FUN.start().lost_at is None and FUN.start().type is None and FUN.start().tree() is None
    empty = Oracle(Grammar.parse("A ::= ε | 'x'\n")).start()
    assert empty.verdict is Verdict.SATISFIED and empty.extensible
    tree = empty.tree()
    assert tree is not None and (tree.text, tree.start, tree.end, tree.children) == ("", 0, 0, ())
    nothing = FUN.start(goal="Int").feed("true")
    assert nothing.feed("") is nothing and nothing.feed("x").lost_at == 0 and nothing.feed("x").text == b"truex"


def test_a_start_that_is_lost_at_once() -> None:
    grammar = "%start A\nName ::= /[a-z]+/\nType* ::= 'int'\nA(a) ::= Name[x]\n\nx ∈ Γ\n--- (a)\nΓ(x)\n"
    start = Oracle(Grammar.parse(grammar)).start()
    assert start.verdict is Verdict.LOST and start.lost_at == 0 and start.text == b""
    assert not start.extensible and start.next_bytes() == b"" and start.expected() == []
    assert "byte 0" in str(start.explain()) and start.feed("x").lost_at == 0


# Budgets and interruption leave a prefix as it was


def test_a_spent_budget_leaves_the_prefix_usable() -> None:
    oracle = Oracle(Grammar.load("fun"), limits=Limits(chart_items=400))
    prefix = oracle.start().feed("let x : Int = 1; ")
    with pytest.raises(LimitError):
        prefix.feed("x" + " + (x)" * 200)
    assert prefix.feed("x + 1").type == "Int" and prefix.verdict is Verdict.LIVE
    assert prefix.feed("y").verdict is Verdict.LOST


def test_starts_share_their_tables_up_to_the_limit() -> None:
    text, grammar = "let x : Int = 1; let y : Int = 2; x + y", Grammar.load("fun")

    def tables(limits: Limits) -> list[Arena]:
        oracle = Oracle(grammar, limits=limits)
        prefixes = [oracle.start().feed(text), oracle.start().feed(text)]
        assert {prefix.type for prefix in prefixes} == {"Int"}
        return [prefix._start.reader.parser.arena for prefix in prefixes]

    first, second = tables(Limits())
    assert first is second
    entries = first.entries
    first, second = tables(Limits(arena_entries=entries))
    assert first is second
    plans = len(first.plans)
    first, second = tables(Limits(arena_entries=entries - 1))
    assert first is second and len(first.plans) == plans  # forgotten, and worked out again
    lasting = len(first.terms) + len(first.effects)
    first, second = tables(Limits(arena_entries=lasting))
    assert first is not second


def test_bindings_of_known_names_in_a_new_order_count() -> None:
    """A long-lived oracle must see all that grows, or its tables would never be renewed."""
    source = """
Name ::= /[a-z]/
Type* ::= 'int'
Declare(declare) ::= Name[x] ';'
start ::= Declare start | Declare

------------------- (declare)
Γ → Γ[x:'int'] ⊢ ⊤
"""
    oracle = Oracle(Grammar.parse(source))
    sizes = []
    for text in ("a;b;c;", "c;b;a;", "c;b;a;"):
        prefix = oracle.start().feed(text)
        assert prefix.verdict is Verdict.SATISFIED
        sizes.append(prefix._start.reader.parser.arena.entries)
    assert sizes[0] < sizes[1] == sizes[2]


@pytest.mark.parametrize("after", [1, 7, 40, 150])
def test_interruption_leaves_the_prefix_usable(after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a task is cancelled by a signal in the middle of a feed."""
    from aufbau.earley import arena

    if not arena.__file__.endswith(".py"):
        pytest.skip("methods of compiled classes can't be replaced")
    oracle = Oracle(Grammar.load("fun"))
    text = "let f : Int -> Int = (a : Int) => a * 2; f(f(1)) + f(2)"
    wanted = oracle.start().feed(text)
    prefix = Oracle(Grammar.load("fun")).start().feed("let f : ")  # whose tables are empty
    calls = 0
    honest = Arena.solve

    def interrupted(self: Arena, *arguments: object) -> object:
        nonlocal calls
        calls += 1
        if calls == after:
            raise KeyboardInterrupt
        return honest(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Arena, "solve", interrupted)
    with contextlib.suppress(KeyboardInterrupt):
        prefix.feed(text.removeprefix("let f : "))
    monkeypatch.undo()
    again = prefix.feed(text.removeprefix("let f : "))
    assert (again.verdict, again.type, again.text) == (wanted.verdict, wanted.type, wanted.text)
    assert calls > 0
