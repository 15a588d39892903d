"""Masks: equal to feeding every token, on every grammar, inside lexemes and characters; packed, shared, bounded."""

from __future__ import annotations

import gzip
import json
import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given

from aufbau import Grammar, Oracle, Verdict
from aufbau.lookahead import Explorer
from aufbau.vocabulary import Vocabulary, admissible
from tests.aufbau.test_laws import LARGE, begun, every_grammar, examples, oracle, sampled, seeds

# Tokens that end inside lexemes, comments, strings and characters, that hold several lexemes, and that are doubled.
WORDS = (Path(__file__).parent / "mask_words.txt").read_text(encoding="utf-8").split()
SPACED = [
    " x",
    " foo",
    " (",
    " =",
    "  ",
    "\n",
    "\n  ",
    "\t",
    " x ",
    "x ",
    "; ",
    ", x",
    " -> ",
    "x\n}",
    " int x",
    "let x",
]


def vocabulary(random: Random, text: bytes) -> Vocabulary:
    """A few hundred tokens: words, raw bytes, and pieces of a text of the language."""
    spellings = [word.encode() for word in (*WORDS, *SPACED)]
    spellings += [bytes((byte,)) for byte in (*range(32, 127), 9, 10, 13, 0xC3, 0xA9, 0xCE, 0xBB, 0xE2, 0x86, 0xF0)]
    for _ in range(60):
        at = random.randint(0, max(0, len(text) - 1))
        spellings.append(text[at : at + random.randint(1, 12)])
    spellings += [b"\xe2\x86", b"\x92", b"\x86\x92", b"\xce\xbbx", b"\xf0\x9f", b"\x99\x82", b"", b"x", b"x"]
    random.shuffle(spellings)
    return Vocabulary(spellings, special=[0, 5])


@every_grammar
@examples(12)
@given(random=seeds)
def test_a_mask_equals_feeding_every_token(name: str, random: Random) -> None:
    engine = oracle(name)
    prefix = begun(engine, name, random)
    text = sampled(prefix, random, name)
    tokens = vocabulary(random, text)
    cut = random.randint(0, len(text))
    for piece in (text[:cut], text[cut : cut + 1], text[cut + 1 : cut + 3]):
        prefix = prefix.feed(piece)
        mask = engine.mask(prefix, tokens)
        wrong = np.flatnonzero(mask != admissible(prefix, tokens))
        assert not len(wrong), (prefix.text, [tokens.spelling(int(token)) for token in wrong])


CASES = {
    "fun": ("let x : Int = 1; x", "let f", "let x : Bool = t", "let x : Int = 12", "let lx : Int = 1; l"),
    "stlc": ("λx:A. ", "λfoo:A->B. fo", "\xce"),
    "ml": ("(* a", "let s : string = \"a", "let x : int = 1 in x", "let x = 1.", "let rec f", "(", "let c = '"),
    "c": ("/* a", "// a", "int f(int aa, char *ab) { return a", "int main(void) { int i = 1; i +", "struct s *",
          "char *s = \"a\\", "int a = 0x", "char *s[sizeof(const double[", "int f(void) { return 1 /"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param(name, text, marks=[pytest.mark.slow] if name in LARGE and place else [])
        for name, texts in CASES.items()
        for place, text in enumerate(texts)
    ],
)
def test_a_mask_inside_a_lexeme(name: str, text: str) -> None:
    prefix = oracle(name).start().feed(text.encode("latin-1") if text == "\xce" else text)
    tokens = vocabulary(Random(1), text.encode())
    assert prefix.verdict is not Verdict.LOST
    assert (oracle(name).mask(prefix, tokens) == admissible(prefix, tokens)).all()


def test_masks_of_one_walk_share_what_they_explore() -> None:
    """Every mask along a text, each after the others and so from what they left behind."""
    engine = oracle("fun")
    text = b"let foo : Int -> Bool = \xce\xbbx: Int. x < 3; let y : Bool = foo 4; y"
    tokens = vocabulary(Random(2), text)
    prefix = engine.start()
    for byte in text:
        assert (engine.mask(prefix, tokens) == admissible(prefix, tokens)).all(), prefix.text
        prefix = prefix.feed(bytes((byte,)))


def test_masks_stay_exact_when_what_was_explored_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """With hardly any room the places of one mask are gone, or taken over, at the next."""
    monkeypatch.setattr("aufbau.oracle.Explorer", partial(Explorer, limit=60))
    engine = Oracle(Grammar.load("fun"))
    tokens = vocabulary(Random(9), b"let foo : Int = 1")
    for text in (b"let foo : Int = 1; foo", b"let x : Bool = true; x", b"let foo : Int = 2; foo"):
        prefix = engine.start(context={"f": "Int -> Bool"})
        for byte in text:
            assert (engine.mask(prefix, tokens) == admissible(prefix, tokens)).all(), prefix.text
            prefix = prefix.feed(bytes((byte,)))


def test_names_differ_where_starts_do() -> None:
    """What was explored under one Γ serves another, but the names are those of the start."""
    engine = Oracle(Grammar.load("fun"))
    tokens = Vocabulary([b"one", b"two", b"o", b"t", b" one", b"(two", b"((one)", b"let x : Int = two; x"])
    first, second = (engine.start(context={name: "Int"}, goal="Int") for name in ("one", "two"))
    for prefix in (first, second, first.feed("("), second.feed("(")):
        assert (engine.mask(prefix, tokens) == admissible(prefix, tokens)).all(), prefix.text


def test_threads_share_the_masks_of_a_prefix() -> None:
    engine = Oracle(Grammar.load("fun"))
    prefix = engine.start(context={"x": "Int"}).feed("let y : Int = x")
    tokens = vocabulary(Random(3), prefix.text)
    prefixes = [prefix, prefix.feed(" "), prefix.feed(" + "), prefix.feed(";")] * 6
    expected = [admissible(one, tokens) for one in prefixes]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda one: engine.mask(one, tokens), prefixes))
    assert all((one == other).all() for one, other in zip(found, expected, strict=True))


def test_a_lost_prefix_admits_nothing() -> None:
    engine = oracle("fun")
    assert not engine.mask(engine.start().feed(")"), vocabulary(Random(4), b"x")).any()


def test_masks_are_written_into_the_buffers_of_the_caller() -> None:
    engine = oracle("fun")
    prefix = engine.start(context={"x": "Int"})
    tokens = vocabulary(Random(5), b"x")
    bools = np.ones(len(tokens), np.bool_)
    assert engine.mask(prefix, tokens, bools) is bools
    batch = np.full((2, len(tokens) // 32 + 3), -1, np.int32)
    row = batch[1]
    assert engine.packed_mask(prefix, tokens, row) is row
    assert (batch[0] == -1).all()
    unpacked = [bool(int(batch[1, token // 32]) >> token % 32 & 1) for token in range(batch.shape[1] * 32)]
    assert unpacked == bools.tolist() + [False] * (len(unpacked) - len(tokens))


@pytest.mark.parametrize("out", [np.zeros(3, np.bool_), np.zeros(3, np.int32)])
def test_buffers_that_do_not_fit_are_refused(out: np.ndarray) -> None:
    engine, tokens = oracle("fun"), vocabulary(Random(6), b"x")
    with pytest.raises(ValueError, match=f"over {len(tokens)} tokens"):
        engine.mask(engine.start(), tokens, out)
    with pytest.raises(ValueError, match=f"over {len(tokens)} tokens"):
        engine.packed_mask(engine.start(), tokens, out)


def test_caches_are_reported_and_die_with_the_vocabulary() -> None:
    engine = Oracle(Grammar.load("fun"))
    tokens = vocabulary(Random(7), b"x")
    engine.mask(engine.start().feed("le"), tokens)
    (report,) = engine.mask_caches()
    assert (report.tokens, report.states) == (len(tokens), 1)
    assert report.nbytes > 0
    del tokens
    assert engine.mask_caches() == []


@pytest.mark.parametrize(
    ("name", "text", "forced"),
    [
        ("fun", "let x ", b""),
        ("fun", "let x : I", b"nt"),
        ("fun", "let foo : Int = 1; let y : Int = fo", b"o"),
        ("fun", "1", b""),
        ("fun", ")", b""),
        ("c", "#include <std", b""),
        ("c", "#include <stdl", b"ib.h>"),
    ],
)
def test_forced_text(name: str, text: str, forced: bytes) -> None:
    prefix = oracle(name).start().feed(text)
    assert prefix.forced() == forced
    assert prefix.forced(max_bytes=1) == forced[:1]


@pytest.mark.parametrize("name", ["fun", "stlc", "tool"])
@examples(25)
@given(random=seeds)
def test_nothing_else_than_forced_text_can_follow(name: str, random: Random) -> None:
    prefix = begun(oracle(name), name, random)
    text = sampled(prefix, random, name)
    prefix = prefix.feed(text[: random.randint(0, len(text))])
    for byte in prefix.forced():
        assert prefix.verdict is Verdict.LIVE
        assert prefix.next_bytes() == bytes((byte,))
        prefix = prefix.feed(bytes((byte,)))


# Real vocabularies and outside programs, where they are at hand.

CORPORA = Path(__file__).parents[3] / "shared" / "corpora"
TOKENIZERS = {"smollm2": "smollm2.json", "qwen": "qwen.tiktoken", "gemma3": "gemma3.json"}


@cache
def real(name: str) -> Vocabulary:
    """A published vocabulary from the folder that AUFBAU_VOCABULARIES names."""
    path = Path(os.environ.get("AUFBAU_VOCABULARIES", "")) / TOKENIZERS[name]
    if not path.is_file():
        pytest.skip(f"AUFBAU_VOCABULARIES names no folder with {path.name} (a tokenizer.json, or a tiktoken file)")
    if path.suffix == ".tiktoken":
        return Vocabulary.from_tiktoken(path)
    transformers = pytest.importorskip("transformers")
    return Vocabulary.from_tokenizer(transformers.PreTrainedTokenizerFast(tokenizer_file=str(path)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["smollm2", "gemma3"])
def test_spellings_of_published_tokenizers(name: str) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    words = real(name)
    tokenizer = tokenizers.Tokenizer.from_file(str(Path(os.environ["AUFBAU_VOCABULARIES"]) / TOKENIZERS[name]))
    for text in ("let x = 1 in\n\tx + 2", "naïve 日本語 🙂\u200d", "  a\r\n", "é" * 9, 'printf("%d\\n", i++);'):
        tokens = tokenizer.encode(text, add_special_tokens=False).ids
        assert b"".join(words.spelling(token) for token in tokens) == text.encode()


@pytest.mark.slow
@pytest.mark.parametrize("tokens", ["smollm2", "qwen", "gemma3"])
@pytest.mark.parametrize("name", ["ml", "c"])
def test_masks_over_real_vocabularies(name: str, tokens: str) -> None:
    """At some prefixes of outside programs: what the mask admits, and a sample of what it does not, by feeding."""
    if not CORPORA.is_dir():
        pytest.skip("the corpora of outside programs are not here")
    words, engine, random = real(tokens), oracle(name), Random(8)
    with gzip.open(CORPORA / name / "valid.jsonl.gz", "rt", encoding="utf-8") as file:
        programs = [json.loads(line)["text"].encode() for line, _ in zip(file, range(40), strict=False)]
    for text in random.sample(programs, 4):
        for cut in sorted(random.sample(range(len(text)), 4)):
            prefix = engine.start().feed(text[:cut])
            mask = engine.mask(prefix, words)
            admitted = np.flatnonzero(mask).tolist()
            for token in random.sample(admitted, min(60, len(admitted))) + random.sample(range(len(words)), 300):
                spelling = words.spelling(token)
                expected = bool(spelling) and prefix.feed(spelling).verdict is not Verdict.LOST
                assert mask[token] == expected, (prefix.text, spelling)


def test_a_call_that_others_wait_for_outside_of_its_place_and_inside() -> None:
    """What can come after it is what either of them goes on with."""
    engine, tokens = oracle("c"), Vocabulary([b"t\n ,system;", b"t, u, v;", b"t, u v;"])
    prefix = engine.start().feed("char lr")
    assert engine.mask(prefix, tokens).tolist() == [True, True, False]
