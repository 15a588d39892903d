"""Branching, without any model: how many tokens the oracle admits at each position of valid programs.

Two measures, each under the oracle and under its twin without typing rules. *Lexemes* is the paper's: programs are
taken in groups of its size, the alphabet is the distinct lexemes of the group, and a position is what stands before a
lexeme. *Tokens* is what decoding meets: the alphabet is a model's vocabulary, and a position is what stands before a
token.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from time import perf_counter

from agentkit.models import default_tokenizer
from agentkit.study.errors import StudyError
from agentkit.study.lexemes import lexemes
from agentkit.synthesis.languages import oracle_of
from aufbau import Oracle, Verdict
from aufbau.validation.corpora import Language, ProgramSet, corpus_file, read_corpus
from aufbau.validation.errors import CorpusError
from aufbau.vocabulary import Vocabulary

DEFAULT_PROGRAMS = 100
# Programs of a group: as many as the paper had of each language.
GROUP = {Language.ML: 14, Language.C: 5}
# Greatest set of each class but the last one, as in the paper's figure 6b.
BINS = (("forced", 1), ("tight", 4), ("open", 16))


class Measure(Enum):
    """What a position and a candidate are."""

    # Whole lexemes of the programs themselves, as in the paper.
    LEXEMES = "lexemes"
    # Tokens of a model's vocabulary.
    TOKENS = "tokens"


@dataclass(frozen=True, kw_only=True, slots=True)
class Branching:
    """The sizes of the admitted sets at all positions of some programs."""

    language: Language
    measure: Measure
    semantic: bool
    programs: int
    # Mean size of the alphabet, and of what of it was admitted.
    alphabet: float
    positions: int
    mean: float
    mean_log2: float
    # Share of positions of each class: forced, tight, open, wide.
    shares: tuple[float, float, float, float]
    # Positions at which the program's own next token was refused: 0, or the oracle prunes what is valid.
    refused: int
    seconds: float

    @classmethod
    def of(
        cls,
        language: Language,
        measure: Measure,
        *,
        semantic: bool,
        programs: int,
        sizes: Sequence[tuple[int, int]],
        refused: int,
        seconds: float,
    ) -> Branching:
        """Sum up the positions, each the size of its alphabet and of the admitted set."""
        if not sizes:
            raise StudyError(f"no position of {language} was measured")
        counted = [size for _, size in sizes]
        edges = [edge for _, edge in BINS]
        classes = [sum(size > edge for edge in edges) for size in counted]
        return cls(
            language=language,
            measure=measure,
            semantic=semantic,
            programs=programs,
            alphabet=sum(alphabet for alphabet, _ in sizes) / len(sizes),
            positions=len(sizes),
            mean=sum(counted) / len(counted),
            mean_log2=sum(math.log2(max(size, 1)) for size in counted) / len(counted),
            shares=tuple(classes.count(number) / len(classes) for number in range(4)),  # type: ignore[arg-type]
            refused=refused,
            seconds=seconds,
        )

    def to_data(self) -> dict[str, object]:
        """All figures by name."""
        return {
            "language": self.language.value,
            "measure": self.measure.value,
            "oracle": "semantic" if self.semantic else "syntactic",
            "programs": self.programs,
            "alphabet": round(self.alphabet, 1),
            "positions": self.positions,
            "mean": round(self.mean, 2),
            "mean_log2": round(self.mean_log2, 3),
            "shares": {
                name: round(share, 4)
                for name, share in zip([*(name for name, _ in BINS), "wide"], self.shares, strict=True)
            },
            "refused": self.refused,
            "seconds": round(self.seconds, 1),
        }


def sample(language: Language, corpora: Path, programs: int, seed: int) -> tuple[list[str], int]:
    """Valid programs drawn with a seed that the oracle takes whole, and how many drawn ones it does not take.

    What the twin refuses the oracle refuses too, so the programs are the same under both.
    """
    path = corpus_file(corpora, language, ProgramSet.VALID)
    if not path.is_file():
        raise StudyError(f"there is no {path}; CORPORA is the folder that holds it")
    try:
        known = [program.text for program in read_corpus(corpora, language, ProgramSet.VALID)]
    except CorpusError as error:
        raise StudyError(str(error)) from error
    random.Random(seed).shuffle(known)
    oracle = oracle_of(language.value)
    taken: list[str] = []
    passed_over = 0
    for text in known:
        if len(taken) >= programs:
            break
        if oracle.start().feed(text).verdict is Verdict.SATISFIED:
            taken.append(text.decode())
        else:
            passed_over += 1
    return taken, passed_over


def by_lexemes(language: Language, programs: Sequence[str], *, semantic: bool) -> Branching:
    """The paper's measure, over groups of programs of the paper's size."""
    oracle = _oracle(language, semantic)
    begun, sizes, refused = perf_counter(), [], 0
    size = GROUP[language]
    for place in range(0, len(programs), size):
        group = programs[place : place + size]
        alphabet = sorted({lexeme for text in group for _, lexeme in lexemes(language, text)})
        vocabulary = Vocabulary([f"{lexeme}\n".encode() for lexeme in alphabet])
        for text in group:
            for admitted, own in _walk_lexemes(oracle, language, text, alphabet, vocabulary):
                sizes.append((len(alphabet), admitted))
                refused += not own
    return Branching.of(
        language,
        Measure.LEXEMES,
        semantic=semantic,
        programs=len(programs),
        sizes=sizes,
        refused=refused,
        seconds=perf_counter() - begun,
    )


def _walk_lexemes(
    oracle: Oracle, language: Language, text: str, alphabet: Sequence[str], vocabulary: Vocabulary
) -> Iterator[tuple[int, bool]]:
    """At each position: how many lexemes are admitted, and whether the program's own is.

    A candidate stands between line ends, so that it neither joins what is before it nor grows: it is a whole lexeme.
    """
    prefix, at = oracle.start(), 0
    for place, lexeme in lexemes(language, text):
        prefix, at = prefix.feed(text[at:place]), place
        mask = oracle.mask(prefix.feed("\n") if prefix.text else prefix, vocabulary)
        yield int(mask.sum()), bool(mask[alphabet.index(lexeme)])


def by_tokens(
    language: Language, programs: Sequence[str], vocabulary: Vocabulary, tokenizer: object, *, semantic: bool
) -> Branching:
    """The measure over a model's vocabulary: each program is cut as its tokenizer cuts it."""
    oracle = _oracle(language, semantic)
    begun, sizes, refused = perf_counter(), [], 0
    for text in programs:
        prefix = oracle.start()
        encode = getattr(tokenizer, "encode")  # noqa: B009 - a tokenizer of transformers, which has no type here
        for token in encode(text, add_special_tokens=False):
            mask = oracle.mask(prefix, vocabulary)
            sizes.append((len(vocabulary), int(mask.sum())))
            refused += not mask[token]
            prefix = prefix.feed(vocabulary.spelling(token))
    return Branching.of(
        language,
        Measure.TOKENS,
        semantic=semantic,
        programs=len(programs),
        sizes=sizes,
        refused=refused,
        seconds=perf_counter() - begun,
    )


def _oracle(language: Language, semantic: bool) -> Oracle:
    oracle = oracle_of(language.value)
    return oracle if semantic else oracle.syntactic()


def measure_corpora(corpora: Path, output: Path, *, programs: int, seed: int, say: Callable[[str], None]) -> Path:
    """Measure both languages in both ways, and write `branching.json`. Raises `StudyError` for a missing corpus."""
    tokenizer = default_tokenizer()
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    found = []
    drawn = {}
    for language in Language:
        texts, passed_over = sample(language, corpora, programs, seed)
        drawn[language.value] = {"programs": len(texts), "not taken": passed_over}
        for semantic in (False, True):
            measured = (
                by_lexemes(language, texts, semantic=semantic),
                by_tokens(language, texts, vocabulary, tokenizer, semantic=semantic),
            )
            for one in measured:
                found.append(one)
                say(
                    f"{language} {one.measure.value} {'semantic' if semantic else 'syntactic'}: {one.mean:.1f} of"
                    f" {one.alphabet:.0f} a position, {one.shares[0]:.1%} forced ({one.seconds:.0f} s)"
                )
    output.mkdir(parents=True, exist_ok=True)
    path = output / "branching.json"
    data = {"seed": seed, "drawn": drawn, "branching": [one.to_data() for one in found]}
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return path
