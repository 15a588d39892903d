"""A completion of every prefix: what a search is made for, what is shared, what is said of what is not accepted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aufbau import Grammar, Oracle, Verdict
from aufbau.validation import Language, Program, ProgramSet, find_compiler
from aufbau.validation.compilers import Diagnosis, Outcome
from aufbau.validation.everywhere import Ending, Fate, Walk, Walker
from tests.validation.subjects import need_compiler, oracle

ORACLE = oracle(Language.ML)
TEXTS = [
    b"let x : int = 1 + 2",
    b"let x : int = 12 let y : int = x",
    b"let f : int -> bool = fun (n : int) -> n < 1",
    b"let f : int -> bool = fun (n : int) -> true",
    b"let rec f (n : int) : int = if n < 1 then 1 else f n",
    b"",
]


class Judging:
    """A compiler that says what a function says, and keeps what it was asked."""

    def __init__(self, says: Callable[[bytes], Outcome] = lambda text: Outcome.ACCEPTED) -> None:
        self.says = says
        self.asked: list[bytes] = []

    def compile(self, text: bytes) -> Diagnosis:
        self.asked.append(text)
        return Diagnosis(outcome=self.says(text), message="its word")

    def compile_all(self, texts: Sequence[bytes]) -> list[Diagnosis]:
        return [self.compile(text) for text in texts]


def walker(compiler: Judging | None = None, *, steps: int = 4_000, again: int = 10_000, seconds: float = 20) -> Walker:
    return Walker(ORACLE, compiler or Judging(), steps=steps, again=again, seconds=seconds)


def program(text: bytes, index: int = 0) -> Program:
    return Program(origin=ProgramSet.VALID, index=index, name="some", text=text)


@pytest.mark.parametrize("text", TEXTS)
def test_every_prefix_has_a_completion_of_its_own_text(text: bytes) -> None:
    endings = walker().endings(text)
    assert len(endings) == len(text) + 1
    for size, ending in enumerate(endings):
        assert ending.whole is not None and ending.whole.startswith(text[:size])
        assert ORACLE.start().feed(ending.whole).verdict is Verdict.SATISFIED


@pytest.mark.parametrize("text", TEXTS)
def test_a_search_is_made_where_the_completed_text_and_the_program_part(text: bytes) -> None:
    endings = walker().endings(text)
    for size, (last, ending) in enumerate(pairwise(endings), start=1):
        assert last.whole is not None
        parted = not last.whole.startswith(text[:size])
        assert parted == (ending.prefix == text[:size]) == (ending is not last)
    assert len({ending.prefix for ending in endings}) < len(endings) or not text


@cache
def alone(text: bytes) -> list[Ending]:
    return walker().endings(text)


@settings(max_examples=5, deadline=None)
@given(st.permutations(TEXTS), st.integers(0, 3))
def test_endings_depend_on_the_prefix_alone(texts: list[bytes], cut: int) -> None:
    shared = walker()
    for text in texts:
        size = max(len(text) - cut, 0)
        assert shared.endings(text[:size]) == alone(text)[: size + 1]


def test_programs_that_begin_alike_share_searches_and_compiled_texts() -> None:
    compiler = Judging()
    shared = walker(compiler)
    first, again, other = (shared.walk(program(text)) for text in (TEXTS[2], TEXTS[2], TEXTS[3]))
    assert first.searches == first.endings == first.compiled > 10
    assert (again.searches, again.compiled, again.endings) == (0, 0, first.endings)
    common = next(size for size in range(99) if TEXTS[2][size] != TEXTS[3][size])
    assert 0 < other.searches <= len(TEXTS[3]) - common
    assert len(compiler.asked) == len(set(compiler.asked)) == first.compiled + other.compiled


def test_all_prefixes_are_counted_and_no_lost_one() -> None:
    found = walker().walk(program(TEXTS[0]))
    assert (found.verdict, found.prefixes, found.whole) == ("satisfied", len(TEXTS[0]) + 1, True)
    assert found.fates == {"accepted": found.prefixes} and not found.strays
    lost = walker().walk(program(b"let x : int = true let y : int = 1"))
    assert (lost.verdict, lost.prefixes, lost.whole) == ("lost", len(b"let x : int = ") + 1, True)


@pytest.mark.parametrize(("word", "fate"), [(Outcome.REJECTED, Fate.REFUSED), (Outcome.UNKNOWN, Fate.UNASKED)])
def test_the_fate_of_a_completion_that_the_compiler_does_not_accept(word: Outcome, fate: Fate) -> None:
    text = b"le"
    judging = Judging(lambda whole: word if whole.startswith(b"let ") else Outcome.ACCEPTED)
    found = walker(judging).walk(program(text))
    assert found.fates == {fate.value: 3} and not found.whole
    assert found.strays and sum(stray.prefixes for stray in found.strays) == 3
    for stray in found.strays:
        assert stray.fate == fate.value and stray.message == "its word"
        assert text.decode().startswith(stray.prefix)
        assert (stray.prefix + stray.completion).encode() in judging.asked


def test_where_nothing_is_found_a_longer_search_follows() -> None:
    assert walker(steps=10).walk(program(b"let")).whole
    found = walker(steps=10, again=20).walk(program(b"l"))
    assert found.fates == {Fate.UNKNOWN.value: 2} and not found.whole
    assert [(stray.prefix, stray.completion) for stray in found.strays] == [("", ""), ("l", "")]
    assert all("within 20 steps" in stray.message for stray in found.strays)


def test_a_spent_time_limit_gives_the_program_up() -> None:
    found = walker(seconds=1e-6).walk(program(TEXTS[0]))
    assert "OutOfTime" in found.failure and (found.verdict, found.prefixes, found.whole) == (None, 0, False)


def test_what_is_denied_is_told_apart() -> None:
    stlc = Oracle(Grammar.load("stlc"))
    text = b"(\\x:A.x) ("  # no closed term has the type A
    found = Walker(stlc, Judging(), steps=4_000, again=10_000, seconds=20).walk(program(text))
    assert found.verdict == "live" and found.fates.keys() == {"accepted", Fate.DENIED.value}
    (stray,) = found.strays
    assert (stray.prefix, stray.completion, stray.fate) == (text.decode(), "", Fate.DENIED.value)


def test_walks_come_back() -> None:
    refusing = Judging(lambda whole: Outcome.REJECTED if b"x" in whole else Outcome.ACCEPTED)
    found = walker(refusing).walk(program(TEXTS[0]))
    assert found.strays and Walk.from_line(found.to_line()) == found
    with pytest.raises(ValueError, match="not a walk"):
        Walk.from_line('{"origin": "valid"}')


@pytest.mark.parametrize("language", Language)
def test_batches_say_what_single_runs_say(language: Language) -> None:
    need_compiler(language)
    compiler = find_compiler(language)
    fine, wrong = {
        Language.ML: (b"let x : int = 1", b"let x : int = true"),
        Language.C: (b"int x = 1;", b"int f(void) { return y; }"),
    }[language]
    texts = [fine, wrong, fine + b"\n", b"\n" + wrong, fine, fine, b"("]
    single = [compiler.compile(text) for text in texts]
    assert [word.outcome is Outcome.ACCEPTED for word in single] == [True, False, True, False, True, True, False]
    assert compiler.compile_all(texts) == single
    assert compiler.compile_all([fine] * 3) == [compiler.compile(fine)] * 3
    assert compiler.compile_all([]) == []
