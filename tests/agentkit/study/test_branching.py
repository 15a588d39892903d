"""The measure of branching: lexemes lose no text, and the sets are those that trying every candidate gives."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit.study.branching import Branching, Measure, by_lexemes, by_tokens, sample
from agentkit.study.errors import StudyError
from agentkit.study.lexemes import lexemes
from agentkit.synthesis.languages import oracle_of
from aufbau import Verdict
from aufbau.validation.corpora import Language
from aufbau.vocabulary import Vocabulary

ML = ["let f (x : int) : int = x + 1", "let g (b : bool) : int = if b then 1 else 0 (* no more *)"]
# text, its lexemes
CASES = [
    (Language.ML, 'let f = List.map (* no *) "a b" :: l\'', ["let", "f", "=", "List.map", '"a b"', "::", "l'"]),
    (Language.ML, "a<>b;;c 'x' 1.5e3", ["a", "<>", "b", ";;", "c", "'x'", "1.5e3"]),
    (
        Language.C,
        "#include <stdio.h>\nint a = b->c++; // no",
        ["#include <stdio.h>", "int", "a", "=", "b", "->", "c", "++", ";"],
    ),
    (Language.C, "x<<=0xFF /* no\n */ && 'a' \"b\"", ["x", "<<=", "0xFF", "&&", "'a'", '"b"']),
]


@pytest.mark.parametrize(("language", "text", "expected"), CASES)
def test_lexemes(language: Language, text: str, expected: list[str]) -> None:
    found = lexemes(language, text)
    assert [lexeme for _, lexeme in found] == expected
    assert all(text.startswith(lexeme, place) for place, lexeme in found)


@given(st.sampled_from(list(Language)), st.text("ab1 .'\"(*)/#\n=<>-", max_size=30))
def test_lexemes_stand_in_order_and_apart(language: Language, text: str) -> None:
    end = 0
    for place, lexeme in lexemes(language, text):
        assert place >= end and lexeme and text[place : place + len(lexeme)] == lexeme
        end = place + len(lexeme)


def test_sets_are_what_trying_every_candidate_gives() -> None:
    alphabet = sorted({lexeme for text in ML for _, lexeme in lexemes(Language.ML, text)})
    oracle = oracle_of("ml")
    sizes = []
    for text in ML:
        for place, _ in lexemes(Language.ML, text):
            prefix = oracle.start().feed(text[:place] + "\n" if place else "")
            sizes.append(sum(prefix.try_feed(f"{one}\n") is not Verdict.LOST for one in alphabet))
    measured = by_lexemes(Language.ML, ML, semantic=True)
    assert measured.positions == len(sizes) and measured.alphabet == len(alphabet)
    assert measured.mean == pytest.approx(sum(sizes) / len(sizes))
    assert measured.shares[0] == pytest.approx(sizes.count(1) / len(sizes))
    assert measured.refused == 0


def test_typing_admits_less_and_never_refuses_what_is_valid() -> None:
    class Bytes:
        """A tokenizer whose tokens are bytes."""

        def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
            return list(text.encode())

    vocabulary = Vocabulary([bytes((byte,)) for byte in range(256)])
    pairs = [
        [by_lexemes(Language.ML, ML, semantic=semantic) for semantic in (True, False)],
        [by_tokens(Language.ML, ML[:1], vocabulary, Bytes(), semantic=semantic) for semantic in (True, False)],
    ]
    for semantic, syntactic in pairs:
        assert semantic.refused == syntactic.refused == 0
        assert semantic.positions == syntactic.positions and semantic.mean < syntactic.mean
        assert sum(semantic.shares) == pytest.approx(1)


def test_classes_are_the_papers() -> None:
    found = Branching.of(
        Language.ML,
        Measure.LEXEMES,
        semantic=True,
        programs=1,
        sizes=[(20, 1), (20, 2), (20, 4), (20, 5), (20, 16), (20, 17)],
        refused=0,
        seconds=0.0,
    )
    assert found.shares == pytest.approx((1 / 6, 2 / 6, 2 / 6, 1 / 6))
    assert found.mean == pytest.approx(45 / 6)


def test_programs_are_drawn_with_a_seed_and_only_where_the_oracle_takes_them(tmp_path: Path) -> None:
    (tmp_path / "ml").mkdir()
    texts = [*ML, "let x : int = true", "let y : int = 2", "let z : int = 3"]
    with gzip.open(tmp_path / "ml" / "valid.jsonl.gz", "wt", encoding="utf-8") as file:
        for number, text in enumerate(texts):
            file.write(json.dumps({"id": str(number), "text": text, "expect": "valid"}) + "\n")
    drawn, passed_over = sample(Language.ML, tmp_path, 10, 0)
    assert sorted(drawn) == sorted(set(texts) - {"let x : int = true"}) and passed_over == 1
    assert sample(Language.ML, tmp_path, 2, 3) == sample(Language.ML, tmp_path, 2, 3)
    assert len(sample(Language.ML, tmp_path, 2, 3)[0]) == 2


def test_a_missing_corpus_is_told_by_its_path(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="CORPORA is the folder that holds it"):
        sample(Language.ML, tmp_path, 1, 0)
