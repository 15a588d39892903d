"""The conditions under which a grammar has no dead ends (paper, Definition 2.5), decided where that can be done.

(P) Every reachable nonterminal has a text, and so has every terminal after reservation.
(T) Every demand that can stand after something read is met by a closed text (`aufbau.coverage`).
(F) What a rule asks of a child is known when the child begins, and no name that is read later decides an earlier type.

With all three, every live prefix has a witness. What isn't proved isn't claimed. Where coverage fails, dead ends are
looked for, and a text is an example only when `witness` proves that nothing continues it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from itertools import islice
from typing import Final

from aufbau.completion import Search
from aufbau.coverage import Gap, Proof
from aufbau.earley.machine import NO_SLOT, Machine, Position, Production
from aufbau.expected import expectations
from aufbau.grammar.model import GrammarModel
from aufbau.reading import Reading
from aufbau.surface import NEVER, surface
from aufbau.typesystem.terms import variables
from aufbau.verdict import Verdict
from aufbau.witness import Outcome, witness

_TRIES: Final = 200  # texts of which it is asked whether they are dead ends
_VISITS: Final = 3  # texts that lead to one uncovered place,
_BEYOND: Final = 6  # and lexemes after each
_STEPS: Final = 4_000  # of the search that leads there
_PROOF: Final = 120  # steps of the search for a proof that a text is a dead end
_SHOWN: Final = 8  # lines of evidence, and their width, where a report is printed
_WIDTH: Final = 160


class Cover(Enum):
    """How the demands of a grammar are met."""

    UNIVERSAL = "universal inhabitant"  # one closed text has every type that is demanded of it
    DISTRIBUTED = "distributed cover"  # a text for each base type, and induction over constructors
    FINITE = "finitely many types"  # each of which has a closed text
    UNTYPED = "no demands"  # nothing is demanded that has a type
    NONE = "none"  # some demand was not proved to be met


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """One of (P), (T), (F): whether it holds (None: not decided) and why."""

    name: str
    holds: bool | None
    evidence: tuple[str, ...]
    against: tuple[str, ...] = ()  # what was not proved

    def __str__(self) -> str:
        verdict = {True: "holds", False: "fails", None: "not decided"}[self.holds]
        return "\n".join((f"{self.name}: {verdict}", *_lines("+", self.evidence), *_lines("?", self.against)))


def _lines(mark: str, texts: tuple[str, ...]) -> list[str]:
    """The first of these texts, none too wide."""
    lines = [f"  {mark} {text if len(text) <= _WIDTH else text[:_WIDTH] + ' …'}" for text in texts[:_SHOWN]]
    return lines + ([f"  {mark} … and {len(texts) - _SHOWN} more"] if len(texts) > _SHOWN else [])


@dataclass(frozen=True, kw_only=True, slots=True)
class GrammarReport:
    """What `Grammar.check` found."""

    productivity: Condition
    coverage: Condition
    flow: Condition
    cover: Cover
    dead_end_free: bool | None
    uncovered: tuple[str, ...]  # types that are demanded, and that no closed text was proved to have
    example: str | None  # a live prefix that provably has no continuation
    reason: str  # why the verdict is what it is

    def __str__(self) -> str:
        verdict = {True: "no dead ends", False: "has dead ends", None: "dead ends not excluded"}[self.dead_end_free]
        lines = [f"{verdict}: {self.reason}", *(str(c) for c in (self.productivity, self.coverage, self.flow))]
        if self.uncovered:
            lines.append("uncovered: " + ", ".join(self.uncovered))
        if self.example is not None:
            lines.append(f"dead end: {self.example}")
        return "\n".join(lines)


def check(
    model: GrammarModel, machine: Callable[[str], Machine], context: Mapping[str, str] | None = None
) -> GrammarReport:
    """Classify a grammar, which `machine` compiles for a start symbol. This is `Grammar.check`.

    A proof holds for starts without a goal, in every Γ that the grammar builds from one whose types are of its first
    starred sort, or of a sort that it binds itself; `context` is what examples are looked for in.
    """
    proofs = [_proof(model, machine(root)) for root in (model.start, *model.roots)]
    productivity = _productivity(proofs)
    flow = _flow(proofs)
    gaps = [gap for proof in proofs for gap in proof.gaps]
    uncovered = tuple(dict.fromkeys(name for gap in gaps for name in gap.types))
    places = tuple(dict.fromkeys(str(gap) for gap in gaps))
    met = tuple(dict.fromkeys(line for proof in proofs for line in proof.evidence()))
    met += tuple(dict.fromkeys(line for proof in proofs for line in _inhabited(proof, machine, context)))
    coverage = Condition(name="(T) type coverage", holds=None if gaps else True, evidence=met, against=places)
    example = None
    if gaps:
        cover, free = Cover.NONE, None
        example = next(filter(None, (_dead_end(proof, context) for proof in proofs)), None)
        if example is not None:
            coverage = replace(coverage, holds=False)
            free, reason = False, "a live prefix has no continuation"
        else:
            reason = "some demands were not proved to be met, and no dead end was found"
    else:
        cover = _cover(proofs)
        free = True if productivity.holds and flow.holds else None
        reason = f"(P), (T) and (F) hold, by {cover.value}" if free else "the conditions were not all proved"
        keys = sorted({key for proof in proofs for key in proof.ambient})
        if free and keys:
            reason += f", where the caller sets {' and '.join(keys)}"
    if free and model.bottom_up:
        free, reason = None, f"%bottom-up {' '.join(model.bottom_up)} is read without a demand, so late"
    return GrammarReport(
        productivity=productivity,
        coverage=coverage,
        flow=flow,
        cover=cover,
        dead_end_free=free,
        uncovered=uncovered,
        example=example,
        reason=reason,
    )


def _proof(model: GrammarModel, machine: Machine) -> Proof:
    """A proof that holds whatever ambient keys the caller sets, or else, where that helps, when it sets all."""
    proof = Proof(model, machine)
    if proof.gaps and model.ambient:
        all_set = Proof(model, machine, frozenset(model.ambient))
        return all_set if len(all_set.gaps) < len(proof.gaps) else proof
    return proof


def _productivity(proofs: list[Proof]) -> Condition:
    lacking = [
        name
        for proof in proofs
        for name, least in zip(proof.machine.names, surface(proof.machine).least, strict=True)
        if least >= NEVER
    ]
    against = tuple(f"{name} has no text once words are reserved" for name in dict.fromkeys(lacking))
    evidence = () if lacking else ("every nonterminal derives a finite text, and no state of the lexer is a dead end",)
    return Condition(name="(P) surface productivity", holds=not lacking, evidence=evidence, against=against)


def _flow(proofs: list[Proof]) -> Condition:
    late = dict.fromkeys(
        f"{production.name}: the type of {production.positions[earlier].binding or earlier} must be what Γ says of "
        f"{position.binding or position.symbol}, which stands after it"
        for proof in proofs
        for production in proof.productions
        for at, position in enumerate(production.positions)
        for earlier in range(at)
        if _decides(production, earlier, position)
    )
    evidence = () if late else ("each child's demand is known from what stands to its left, its parent and Γ",)
    return Condition(
        name="(F) left-to-right flow", holds=None if late else True, evidence=evidence, against=tuple(late)
    )


def _decides(production: Production, earlier: int, position: Position) -> bool:
    child = production.positions[earlier]
    if child.nonterminal < 0 or child.slot == NO_SLOT:
        return False
    before = set(variables([production.template[child.slot]]))
    return any(before & set(variables([production.template[lookup.slot]])) for lookup in position.lookups)


def _cover(proofs: list[Proof]) -> Cover:
    demanded = [(proof, n) for proof in proofs for n in proof.demanded]
    if not demanded:
        return Cover.UNTYPED
    if all(proof.absolute(n) for proof, n in demanded):
        return Cover.UNIVERSAL
    return Cover.DISTRIBUTED if any(case.args for proof, n in demanded for case in proof.cases[n]) else Cover.FINITE


def _inhabited(proof: Proof, machine: Callable[[str], Machine], context: Mapping[str, str] | None) -> Iterator[str]:
    """Where there are finitely many types: which of them an uncovered nonterminal has a text of in this Γ."""
    for symbol in dict.fromkeys(gap.symbol for gap in proof.gaps if gap.types):
        cases = proof.cases[proof.machine.names.index(symbol)]
        if any(case.args or case.head.startswith("\0") for case in cases):
            continue
        found = []
        for shown in sorted(map(proof.syntax.render, cases)):
            reading = Reading.begin(machine(symbol), context=context, goal=shown)
            if witness(reading, max_steps=_PROOF).outcome is Outcome.FOUND:
                found.append(shown)
        yield f"{symbol} has texts of the types {', '.join(found) or '(none)'} in this context"


# Examples of dead ends


def _dead_end(proof: Proof, context: Mapping[str, str] | None) -> str | None:
    """A live prefix that provably has no continuation, looked for at the uncovered places."""
    leaves = [case for cases in proof.cases for case in cases if not case.args and not case.head.startswith("\0")]
    ambients: list[dict[str, str]] = [{}]
    if leaves and proof.ambient:
        ambients.append(dict.fromkeys(sorted(proof.ambient), proof.syntax.render(leaves[0])))
    for ambient in ambients:
        start = Reading.begin(proof.machine, context=context, ambient=ambient)
        for reading in islice(_leading(start, proof.gaps), _TRIES):
            if reading.verdict is Verdict.LIVE and witness(reading, max_steps=_PROOF).outcome is Outcome.NONE:
                return reading.text.decode() + (f" (with {', '.join(ambient)} set)" if ambient else "")
    return None


def _leading(start: Reading, gaps: list[Gap]) -> Iterator[Reading]:
    """Texts that lead to one of the gaps, short ones first, and one lexeme beyond it."""
    left = {(gap.production, gap.dot): _VISITS for gap in gaps}
    search = Search(start.reader, start.hypotheses, max_bytes=200)
    search.max_steps = _STEPS
    for step in search.steps():
        place = (step.item.production, step.item.dot)
        if left.get(place, 0):
            left[place] -= 1
            reached = start.feed(next(search.spelled(step)))
            yield reached
            for expected in islice(expectations(reached.reader, reached.hypotheses), _BEYOND):
                yield reached.feed(expected.text.encode())
