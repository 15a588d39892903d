"""The engine against the reference evaluator: same verdicts and types on every prefix (see `correspondence`)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

import aufbau
from aufbau import Grammar, Verdict
from aufbau.grammar.grammar import shipped
from aufbau.reference import OutOfSteps, Reference
from aufbau.reference.correspondence import Comparison, Difference, Kind, Start
from aufbau.reference.subjects import Subject
from tests.aufbau.test_cases import ALL, CASES

ROOT = Path(aufbau.__file__).parent.parent
TOOL = str(ROOT / "dialects" / "grammars" / "tool.auf")
# ml and c take seconds to read; the slow test and `python -m aufbau.reference` hold them.
QUICK = (*(name for name in shipped() if name not in ("ml", "c")), TOOL)
FILES = sorted({CASES / f"{case.file}.txt" for case in ALL if not case.grammar.startswith("grammar:")})


def held(comparisons: list[Comparison], random: Random, count: int, length: int) -> list[Difference]:
    """Compare on so many prefixes; the differences."""
    while sum(c.tally.compared for c in comparisons) < count:
        comparison = random.choice(comparisons)
        for text in comparison.prefixes(random, length):
            comparison.compare(text)
    return [difference for c in comparisons for difference in c.tally.differences]


@pytest.mark.parametrize("name", QUICK)
def test_random_prefixes_of_shipped_grammars(name: str) -> None:
    subject = Subject.load(name)
    assert held(subject.comparisons(), Random(7), 60, min(6, subject.length)) == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", (*shipped(), TOOL))
def test_thousands_of_prefixes_of_shipped_grammars(name: str) -> None:
    subject = Subject.load(name)
    assert held(subject.comparisons(), Random(8), 1000, subject.length) == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_feature_grammars(file: Path) -> None:
    """The texts of the cases, cut and spoiled, and random ones."""
    assert held(Subject.load(str(file)).comparisons(), Random(9), 50, 6) == []


def test_a_case_file_gives_its_starts_and_texts() -> None:
    subject = Subject.load(str(CASES / "ambient.txt"))
    cases = [case for case in ALL if case.file == "ambient"]
    assert {start.symbol for start in subject.starts} == {case.settings.get("symbol") or None for case in cases}
    texts = {text for start in subject.starts for text in start.texts}
    assert texts == {text for case in cases if len(text := case.text.replace("¦", "")) <= 60}


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


def test_gaps_that_may_be_lexemes_do_not_multiply_the_readings() -> None:
    lexer = Reference(Grammar.load("c").model).lexer
    spaced = b"int f ( int x ) { return x + 1 ; }\n"
    assert 1 <= len(lexer.lexings(spaced)) <= 20  # 16,384 without a look at what stands side by side
    assert lexer.lexings(b"#include <stdio.h>\nint x;\n")


def test_it_says_when_it_gives_up() -> None:
    reference = Reference(Grammar.load("minimal").model)
    with pytest.raises(OutOfSteps):
        reference.judge("λf:A→A.f f f".encode(), steps=10)


def test_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "aufbau.reference", "stlc", "minimal=30", "--prefixes", "40", "--seed", "3"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path)], capture_output=True, text=True, cwd=ROOT, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[0].split()[:2] == ["grammar", "prefixes"]
    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == ["stlc", "minimal"]
    record = json.loads((tmp_path / "correspondence.json").read_text(encoding="utf-8"))
    assert [row["prefixes"] >= wanted for row, wanted in zip(record["grammars"], (20, 30), strict=True)] == [True, True]
    assert record["prefixes"] == sum(row["satisfied"] + row["live"] + row["lost"] for row in record["grammars"])
    assert f"{record['prefixes']} random prefixes" in (tmp_path / "correspondence.md").read_text(encoding="utf-8")
