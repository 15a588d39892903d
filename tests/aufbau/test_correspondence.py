"""The engine against the reference evaluator: same verdicts and types on every prefix (see `correspondence`)."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path
from random import Random

import pytest

import aufbau
from aufbau import Grammar, Verdict
from aufbau.grammar.grammar import shipped
from aufbau.reference import OutOfSteps, Reference
from aufbau.reference.correspondence import Comparison, Difference, Kind, Start, spoiled
from aufbau.reference.starts import LENGTHS, STARTS
from tests.aufbau.test_cases import ALL, Case, _bindings, oracle

ROOT = Path(aufbau.__file__).parent.parent
TOOL = str(ROOT / "dialects" / "grammars" / "tool.auf")
# ml and c take seconds to read; the slow test and `python -m aufbau.reference` hold them.
QUICK = (*(name for name in shipped() if name not in ("ml", "c")), TOOL)
FILES = sorted({case.file for case in ALL if not case.grammar.startswith("grammar:")})


def held(comparisons: list[Comparison], random: Random, count: int, length: int) -> list[Difference]:
    """Compare on so many prefixes; the differences."""
    while sum(c.tally.compared for c in comparisons) < count:
        comparison = random.choice(comparisons)
        for text in comparison.prefixes(random, length):
            comparison.compare(text)
    return [difference for c in comparisons for difference in c.tally.differences]


def comparisons_of(name: str) -> list[Comparison]:
    return [Comparison(Grammar.load(name), start) for start in STARTS.get(Path(name).stem, (Start(),))]


@pytest.mark.parametrize("name", QUICK)
def test_random_prefixes_of_shipped_grammars(name: str) -> None:
    assert held(comparisons_of(name), Random(7), 60, min(6, LENGTHS.get(Path(name).stem, 6))) == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", (*shipped(), TOOL))
def test_thousands_of_prefixes_of_shipped_grammars(name: str) -> None:
    assert held(comparisons_of(name), Random(8), 1000, LENGTHS.get(Path(name).stem, 12)) == []


def start_of(case: Case) -> Start:
    settings = case.settings
    return Start(
        context=_bindings(settings.get("context", "")),
        ambient=_bindings(settings.get("ambient", "")),
        goal=settings.get("goal") or None,
        symbol=settings.get("symbol") or None,
    )


@cache
def comparisons_of_file(file: str) -> dict[str, Comparison]:
    """One comparison for each way in which the cases of a file start."""
    found: dict[str, Comparison] = {}
    for case in ALL:
        key = repr(start_of(case))
        if case.file == file and key not in found:
            found[key] = Comparison(oracle(case.grammar).grammar, start_of(case))
    return found


@pytest.mark.parametrize("file", FILES)
def test_feature_grammars(file: str) -> None:
    """The texts of the cases, cut and spoiled, and random ones."""
    random, comparisons = Random(9), comparisons_of_file(file)
    cases = [case for case in ALL if case.file == file and len(case.text) < 40]
    for case in random.sample(cases, min(len(cases), 8)):
        text = case.text.replace("¦", "").encode()
        for cut in (text, spoiled(random, text), text[: random.randint(0, len(text))]):
            assert comparisons[repr(start_of(case))].compare(cut) is None
    assert held(list(comparisons.values()), random, 30, 6) == []


# The comparison itself must be able to fail: engine and reference are given different grammars.

GRAMMAR = """\
Name ::= /[a-z]+/
Type* ::= 'int' | 'bool'
Num(num) ::= /[0-9]+/
Var(var) ::= Name[x]
Value ::= Num | Var
Let(let) ::= 'let' Name[x] '=' Value[v] ';'
Pair(pair) ::= '<' Value[l] ',' Value[r] '>'
Start ::= Let | Pair | Value

--- (num)
'int'

x ∈ Γ
--- (var)
Γ(x)

Γ ⊢ v : ?A
--- (let)
Γ → Γ[x:?A] ⊢ ⊤

Γ ⊢ l : ?A, Γ ⊢ r : ?A
--- (pair)
?A
"""
CONTEXT = {"a": "int", "b": "bool"}


@pytest.mark.parametrize(
    ("kind", "text", "old", "new"),
    [
        (Kind.VERDICT, "<1,b>", "Γ ⊢ r : ?A", "Γ ⊢ r : ?B"),
        (Kind.TYPES, "1", "--- (num)\n'int'", "--- (num)\n'bool'"),
        (Kind.NAMES, "let c = 1;", "Γ[x:?A] ⊢ ⊤", "Γ[x:'bool'] ⊢ ⊤"),
        (Kind.FALSE_PRUNE, "<1,b", "Γ ⊢ r : ?A", "Γ ⊢ r : ?B"),
        (Kind.LATE, "<a,1", "Γ ⊢ r : ?A", "Γ ⊢ r : 'bool'"),
    ],
)
def test_a_difference_is_found(kind: Kind, text: str, old: str, new: str) -> None:
    comparison = Comparison(Grammar.parse(GRAMMAR), Start(context=CONTEXT))
    assert comparison.compare(text.encode()) is None
    assert old in GRAMMAR
    comparison.reference = Reference(Grammar.parse(GRAMMAR.replace(old, new)).model, context=CONTEXT)
    difference = comparison.compare(text.encode())
    assert difference is not None and difference.kind is kind
    assert comparison.tally.differences == [difference] and text in str(difference)


def test_the_reference_speaks_for_itself() -> None:
    """Its verdicts on the paper's own examples, without the engine."""
    reference = Reference(Grammar.load("minimal").model)
    cases = [("λx:int.x", Verdict.SATISFIED), ("λx:int.", Verdict.LIVE), ("λx:int.y ", Verdict.LOST)]
    assert [reference.judge(text.encode()).verdict for text, _ in cases] == [verdict for _, verdict in cases]
    assert reference.judge("λx:int.x".encode()).types == {("_ → _", (("int", ()), ("int", ())))}
    assert reference.judge(b"\xff").verdict is Verdict.LOST
    assert reference.judge("λ".encode()[:1]).verdict is Verdict.LIVE
    assert reference.completion("λx:int.".encode(), lexemes=2) == "λx:int. x".encode()
    assert reference.completion(b"y ", lexemes=2) is None


def test_it_says_when_it_gives_up() -> None:
    reference = Reference(Grammar.load("minimal").model)
    with pytest.raises(OutOfSteps):
        reference.judge("λf:A→A.f f f".encode(), steps=10)


def test_the_command() -> None:
    command = [sys.executable, "-m", "aufbau.reference", "stlc", "--prefixes", "20", "--seed", "3"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[0].split()[:2] == ["grammar", "prefixes"]
    assert done.stdout.splitlines()[1].startswith("stlc ")
