"""Where the engine and the reference must agree, and a comparison that finds where they do not.

The engine may say LOST earlier than a contradiction on each branch: it looks ahead at the names in scope, at the next
lexeme, and through left recursion. So the two correspond when, on every prefix,

1. the engine is SATISFIED if and only if the reference is; then they find the same types, and what the engine's first
   reading leaves in scope is what one of the reference's readings does;
2. where the engine says LOST and the reference does not, there is no completion: the reference looks for one that is a
   few lexemes longer, in the order of their number, and finds none within its bound (safe pruning, Theorem 2.4);
3. where the reference says LOST (a stable contradiction on every compatible branch), the engine says LOST.

The reference bounds the open part of left recursion by a depth; before (3) is held against the engine the prefix is
judged once more at thrice that depth. What then is still late is a delay, not a false prune, and is told apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import final

from aufbau.grammar.grammar import Grammar
from aufbau.oracle import Oracle, Prefix
from aufbau.reference.evaluator import DEPTH, Finding, Reference
from aufbau.reference.evidence import OutOfSteps
from aufbau.reference.terms import TOP, Term, canonical
from aufbau.reference.typetext import UnreadableType
from aufbau.verdict import Verdict


class Kind(Enum):
    """How the engine and the reference differ."""

    VERDICT = "verdict"  # one is satisfied, the other is not
    TYPES = "types"  # both are satisfied, with other types
    NAMES = "names"  # both are satisfied, with other names in scope
    FALSE_PRUNE = "false prune"  # the engine is lost, but there is a completion
    LATE = "late"  # every branch has a contradiction, but the engine is not lost


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """One prefix on which they differ."""

    kind: Kind
    text: bytes
    engine: str
    reference: str

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.text!r}: engine {self.engine}, reference {self.reference}"


@dataclass(kw_only=True, slots=True)
class Tally:
    """What a comparison met."""

    verdicts: dict[Verdict, int] = field(default_factory=lambda: dict.fromkeys(Verdict, 0))  # of the engine
    ahead: int = 0  # prefixes that only the engine calls lost; no completion was found
    skipped: int = 0  # prefixes that the reference gave up
    differences: list[Difference] = field(default_factory=list)

    @property
    def compared(self) -> int:
        """Prefixes on which both spoke."""
        return sum(self.verdicts.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """What is in scope and demanded at the start of the texts of a grammar, how some of them begin, and some."""

    context: Mapping[str, str] = field(default_factory=dict)
    ambient: Mapping[str, str] = field(default_factory=dict)
    goal: str | None = None
    symbol: str | None = None
    openings: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()  # whole ones, of which prefixes and spoiled ones are made too


@final
class Comparison:
    """A grammar and a start, seen by the engine and by the reference."""

    def __init__(self, grammar: Grammar, start: Start, *, steps: int = 20_000, lexemes: int = 4) -> None:
        self.start = start
        self.empty: Prefix = Oracle(grammar).start(
            context=start.context, ambient=start.ambient, goal=start.goal, symbol=start.symbol
        )
        self.reference = Reference(
            grammar.model, context=start.context, ambient=start.ambient, goal=start.goal, symbol=start.symbol
        )
        self.tally = Tally()
        self._steps, self._lexemes = steps, lexemes

    def compare(self, text: bytes) -> Difference | None:
        """Judge a prefix by both, and count."""
        prefix = self.empty.feed(text)
        try:
            finding = self.reference.judge(text, steps=self._steps)
            found = self._difference(prefix, finding)
        except OutOfSteps:
            self.tally.skipped += 1
            return None
        self.tally.verdicts[prefix.verdict] += 1
        if found is not None:
            self.tally.differences.append(found)
        return found

    def _difference(self, prefix: Prefix, finding: Finding) -> Difference | None:
        engine, reference = prefix.verdict, finding.verdict
        if Verdict.SATISFIED in (engine, reference):
            if engine is not reference:
                return _difference(Kind.VERDICT, prefix, engine, reference)
            return self._satisfied(prefix, finding)
        if engine is Verdict.LOST and reference is not Verdict.LOST:
            self.tally.ahead += 1
            completion = self.reference.completion(prefix.text, lexemes=self._lexemes, steps=self._steps // 10)
            if completion is not None:
                return _difference(Kind.FALSE_PRUNE, prefix, engine, f"satisfied by {completion!r}")
        if reference is Verdict.LOST and engine is not Verdict.LOST:
            deeper = self.reference.judge(prefix.text, depth=3 * DEPTH, steps=3 * self._steps)
            if deeper.verdict is Verdict.LOST:
                return _difference(Kind.LATE, prefix, engine, reference)
        return None

    def _satisfied(self, prefix: Prefix, finding: Finding) -> Difference | None:
        spelled = [self._readings(text) for text in prefix.types]
        same = len(spelled) == len(finding.types) and all(readings & finding.types for readings in spelled)
        if not same or not all(any(own in readings for readings in spelled) for own in finding.types):
            return _difference(Kind.TYPES, prefix, prefix.types, sorted(map(repr, finding.types)))
        names = {name: self._readings(text) for name, text in prefix.context.items()}
        for reading in finding.readings:
            own = dict(reading.names)
            if own.keys() == names.keys() and all(own[name] in names[name] for name in own):
                return None
        return _difference(Kind.NAMES, prefix, prefix.context, sorted(map(repr, finding.readings)))

    def _readings(self, text: str) -> frozenset[Term]:
        """The types that a rendering of the engine spells; several where the grammar's type syntax is ambiguous."""
        if text == "⊤":
            return frozenset([TOP])
        try:
            return frozenset(canonical([term], {})[0] for term in self.reference.firings.reader.readings(text, {}))
        except UnreadableType:
            return frozenset()

    # Texts

    def prefixes(self, random: Random, length: int) -> Iterator[bytes]:
        """Prefixes of one sampled text of some lexemes: a program, a spoiled one, or noise."""
        kind = random.randrange(10)
        if kind == 0:
            text = random.randbytes(random.randint(0, 8))
        elif kind == 1:
            text = b"".join(random.choices(self._pieces(), k=random.randint(1, length)))
        else:
            known = self.start.texts and kind % 3 == 0
            text = (
                random.choice(self.start.texts).encode() if known else self._program(random, random.randint(1, length))
            )
            if kind < 6:
                text = spoiled(random, text)
        cuts = range(len(text) + 1)
        yield from (text[:cut] for cut in sorted({len(text), *random.sample(cuts, min(len(cuts), 8))}))

    def _program(self, random: Random, length: int) -> bytes:
        """Lexemes that may follow each other, as far as the engine knows."""
        prefix = self.empty
        if self.start.openings and random.random() < 0.7:
            prefix = prefix.feed(random.choice(self.start.openings))
        for step in range(length):
            expected = [expectation.text.encode() for expectation in prefix.expected()]
            options = random.sample(expected, min(len(expected), 12)) + random.sample(_SAMPLES, 4)
            fed = (prefix.feed(random.choice((b"", b" ", b" ", b"\n")) + option) for option in options)
            kept = [following for following in fed if following.verdict is not Verdict.LOST]
            # Towards the end of the text what finishes it is preferred.
            finished = [following for following in kept if following.verdict is Verdict.SATISFIED]
            prefix = random.choice((finished if 3 * step > 2 * length else []) or kept or [prefix])
        return prefix.text

    def _pieces(self) -> list[bytes]:
        literals = [value.encode() for _, value in self.reference.lexer.terminals.languages]
        return [*literals, *_SAMPLES, *(name.encode() for name in self.start.context), b" ", b" "]


_SAMPLES = [b"x", b"y1", b"foo", b"A", b"f", b"7", b"42", b"1.5", b'"a"', b"'a'", "é".encode(), b"-3", b" ", b"\n"]


def spoiled(random: Random, text: bytes) -> bytes:
    """The text with a few bytes dropped, doubled, replaced or cut off."""
    data = bytearray(text)
    for _ in range(random.randint(1, 2)):
        if data:
            at = random.randrange(len(data))
            data[at : at + 1] = random.choice(
                (b"", data[at : at + 1] * 2, bytes([random.randrange(256)]), random.choice(_SAMPLES))
            )
    return bytes(data[: random.randint(0, len(data))] if random.random() < 0.2 else data)


def _difference(kind: Kind, prefix: Prefix, engine: object, reference: object) -> Difference:
    return Difference(kind=kind, text=prefix.text, engine=str(engine), reference=str(reference))
