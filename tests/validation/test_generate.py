"""The generator: valid by construction, repeatable, varied; and the counts that guide it."""

from __future__ import annotations

import pytest

from aufbau import Grammar, Oracle, Verdict
from aufbau.validation import Generator, Language, Outcome, find_compiler
from aufbau.validation.guide import Guide
from tests.validation.subjects import need_compiler, oracle

SUBJECTS = [oracle(Language.ML), oracle(Language.C), Oracle(Grammar.load("fun")), Oracle(Grammar.load("stlc"))]
NAMES = ["mini_ml", "mini_c", "fun", "stlc"]


@pytest.mark.parametrize("subject", SUBJECTS, ids=NAMES)
def test_samples_are_satisfied_and_varied(subject: Oracle) -> None:
    found = [Generator(subject, length=25).sample(str(seed)) for seed in range(12)]
    texts = [text for text in found if text is not None]
    assert len(texts) >= 8
    assert len(set(texts)) >= len(texts) - 2
    assert all(subject.start().feed(text).verdict is Verdict.SATISFIED for text in texts)
    assert max(map(len, texts)) > 30


@pytest.mark.parametrize("subject", SUBJECTS[:2], ids=NAMES[:2])
def test_a_seed_tells_the_program(subject: Oracle) -> None:
    first, second, other = (Generator(subject, length=30).sample(seed) for seed in ("a", "a", "b"))
    assert first == second
    assert first != other
    shared = Generator(subject, length=30)
    assert [shared.sample(seed) for seed in ("b", "a")] == [other, first]


def test_samples_are_accepted_by_the_compiler() -> None:
    need_compiler(Language.C)
    compiler = find_compiler(Language.C)
    for seed in range(8):
        text = Generator(oracle(Language.C), length=30).sample(f"cc {seed}")
        assert text is not None
        assert compiler.compile(text).outcome is Outcome.ACCEPTED, text


def test_strings_and_comments_end() -> None:
    grammar = Grammar.parse('%ignore /#[^#]*#/\nText ::= /"[^"]*"/\nAll ::= Text | All Text')
    texts = [Generator(Oracle(grammar), length=10).sample(str(seed)) for seed in range(10)]
    assert all(text is not None and len(text) < 2000 for text in texts)


# text of the small ML grammar, and for some terminals the lexemes that are left after each
COSTS = [
    ("", {"let": 5}),
    ("let x : int = ", {"[0-9]+": 0, "(": 2, "if": 5}),
    ("let x : int = (", {"[0-9]+": 1, "(": 3}),
    ("let x : int = ((1", {")": 1, "+": 3}),
    ("let x : int = if true then (", {"[0-9]+": 3}),
    ("let x : int = let y : int = 1 ", {"in": 1}),
]


@pytest.mark.parametrize(("text", "costs"), COSTS)
def test_the_guide_counts_what_is_left(text: str, costs: dict[str, int]) -> None:
    start = oracle(Language.ML).start()
    guide = Guide(start)
    found = {guide.machine.terminals[c.terminal]: c.cost for c in guide.choices(start.feed(text))}
    assert {terminal: found.get(terminal) for terminal in costs} == costs


def test_no_text_that_can_not_end() -> None:
    endless = Grammar.parse("Name ::= /[a-z]/\nAll(all) ::= Name[x] '=' '1'\n\nx ∈ Γ\n----- (all)\n⊤")
    assert Generator(Oracle(endless)).sample("0") is None
