"""The conditions under which a grammar has no dead ends (paper, Definition 2.5), decided where that can be done.

(P) Every reachable nonterminal has a text, and so has every terminal after reservation.
(T) Every demand that can stand before something unread is met by a closed text (`aufbau.coverage`).
(F) What a rule asks of a child is known when the child begins, and no name that is read later decides an earlier type.

With all three, every live prefix has a witness. What isn't proved isn't claimed. Where coverage fails, dead ends are
looked for, and a text is an example only when `witness` proves that nothing continues it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from itertools import islice
from typing import Final

from aufbau.completion import Search
from aufbau.coverage import Gap, Proof
from aufbau.earley.machine import NO_SLOT, Position, Production
from aufbau.grammar.grammar import Grammar
from aufbau.oracle import Oracle, Prefix
from aufbau.surface import NEVER, surface
from aufbau.typesystem.terms import variables
from aufbau.verdict import Verdict
from aufbau.witness import Outcome, witness

_PLACES: Final = 6  # uncovered places at which a dead end is looked for
_TRIES: Final = 16  # texts that lead to one of them
_STEPS: Final = 1_500  # of the search that leads there
_PROOF: Final = 300  # steps of the search for a proof that a text is a dead end
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


def check(grammar: Grammar, context: Mapping[str, str] | None = None) -> GrammarReport:
    """Classify a grammar. A proof holds for every Γ, and for starts without a goal; `context` is for the examples."""
    proofs = [Proof(grammar, root) for root in (grammar.model.start, *grammar.model.roots)]
    productivity = _productivity(proofs)
    flow = _flow(grammar, proofs)
    gaps = [gap for proof in proofs for gap in proof.gaps]
    uncovered = tuple(dict.fromkeys(name for gap in gaps for name in gap.types))
    places = tuple(dict.fromkeys(str(gap) for gap in gaps))
    met = tuple(dict.fromkeys(line for proof in proofs for line in proof.evidence()))
    met += tuple(dict.fromkeys(line for proof in proofs for line in _inhabited(grammar, proof, context)))
    coverage = Condition(name="(T) type coverage", holds=None if gaps else True, evidence=met, against=places)
    example = None
    if gaps:
        cover, free = Cover.NONE, None
        example = next(filter(None, (_dead_end(grammar, proof, context) for proof in proofs)), None)
        if example is not None:
            coverage = replace(coverage, holds=False)
            free, reason = False, "a live prefix has no continuation"
        else:
            reason = "some demands were not proved to be met, and no dead end was found"
    else:
        cover = _cover(proofs)
        free = True if productivity.holds and flow.holds else None
        reason = f"(P), (T) and (F) hold, by {cover.value}" if free else "the conditions were not all proved"
    if free and grammar.model.bottom_up:
        free, reason = None, f"%bottom-up {' '.join(grammar.model.bottom_up)} is read without a demand, so late"
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


def _flow(grammar: Grammar, proofs: list[Proof]) -> Condition:
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
    return Cover.DISTRIBUTED if any(case.args for proof in proofs for case in proof.cases) else Cover.FINITE


def _inhabited(grammar: Grammar, proof: Proof, context: Mapping[str, str] | None) -> Iterator[str]:
    """Where there are finitely many types: which of them an uncovered nonterminal has a text of in this Γ."""
    if any(case.args or case.head.startswith("\0") for case in proof.cases):
        return
    oracle = Oracle(grammar)
    for symbol in dict.fromkeys(gap.symbol for gap in proof.gaps if gap.types):
        found = []
        for case in proof.cases:
            prefix = oracle.start(symbol=symbol, context=context, goal=proof.syntax.render(case))
            if witness(prefix, max_steps=_PROOF).outcome is Outcome.FOUND:
                found.append(proof.syntax.render(case))
        yield f"{symbol} has texts of the types {', '.join(found) or '(none)'} in this context"


# Examples of dead ends


def _dead_end(grammar: Grammar, proof: Proof, context: Mapping[str, str] | None) -> str | None:
    """A live prefix that provably has no continuation, looked for at the uncovered places."""
    oracle = Oracle(grammar)
    some = next((proof.syntax.render(c) for c in proof.cases if not c.args and not c.head.startswith("\0")), None)
    ambients = [{}] if some is None or not proof.caller else [{}, dict.fromkeys(sorted(proof.caller), some)]
    for ambient in ambients:
        start = oracle.start(symbol=proof.root, context=context, ambient=ambient)
        found = next(filter(None, (_dead_end_at(start, gap) for gap in _places(proof))), None)
        if found is not None:
            return found + (f" (with {', '.join(ambient)} set)" if ambient else "")
    return None


def _places(proof: Proof) -> list[Gap]:
    """Places to look at: those with uncovered types first, each nonterminal once."""
    found: dict[str, Gap] = {}
    for gap in sorted(proof.gaps, key=lambda gap: not gap.types):
        found.setdefault(gap.symbol, gap)
    return list(found.values())[:_PLACES]


def _dead_end_at(start: Prefix, gap: Gap) -> str | None:
    for prefix in islice(_leading(start, gap), _TRIES):
        if prefix.verdict is Verdict.LIVE and witness(prefix, max_steps=_PROOF).outcome is Outcome.NONE:
            return prefix.text.decode()
    return None


def _leading(start: Prefix, gap: Gap) -> Iterator[Prefix]:
    """Short texts that lead to a position, and one lexeme beyond it."""
    search = Search(start._start.reader, start._state.hypotheses, max_bytes=200)
    search.max_steps = _STEPS
    for step in search.steps():
        if step.item.dot == gap.dot and step.item.production is gap.production:
            reached = start.feed(next(search.spelled(step)))
            yield reached
            for expected in reached.expected():
                yield reached.feed(expected.text)
