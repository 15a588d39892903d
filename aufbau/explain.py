"""Why a prefix was lost: the place, the rule and premise that refused, the clash, and what is near.

The parser keeps no record of its refusals, since almost all of them are of no interest. To explain one, the last set
that was not lost is built again with an observer, and the refusals that concern the offending lexeme are picked out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, final

from aufbau.earley.chart import ItemSet, Lexeme
from aufbau.earley.failure import Failure
from aufbau.earley.machine import NO_SLOT, Machine, Production
from aufbau.expected import Expectation, ExpectationKind, expectations
from aufbau.grammar.model import Equality, Judgement, Premise
from aufbau.grammar.render import render_premise
from aufbau.lexer.state import Hypothesis, Reader
from aufbau.typesystem.terms import Term

_SHOWN = 12  # expectations listed in a message
_CLASHES = 5  # refusals that an explanation keeps, the most telling first


@dataclass(frozen=True, kw_only=True, slots=True)
class Clash:
    """One refusal: the rule, its premise, and what was demanded against what was found."""

    rule: str | None
    nonterminal: str
    premise: str | None  # as the grammar writes it
    message: str
    wanted: str | None = None
    found: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """What is wrong with a lost prefix; for one that is not lost, only `expected` tells something."""

    text: str
    lost_at: int | None  # byte offset
    line: int  # of `lost_at`, from 1
    column: int  # in characters, from 1
    lexeme: str  # the lexeme in which the text was lost
    message: str
    clashes: tuple[Clash, ...]
    near: tuple[str, ...]  # names and words that may have been meant
    expected: tuple[Expectation, ...]  # what could have come instead

    def __str__(self) -> str:
        if self.lost_at is None:
            return "not lost" + _listed("; next: ", self.expected)
        lines = [f"lost at line {self.line}, column {self.column} (byte {self.lost_at}): {self.message}"]
        source = self.text.split("\n")[self.line - 1] if self.text else ""
        lines += [f"  {source}", "  " + " " * (self.column - 1) + "^"]
        for clash in self.clashes:
            rule = f"rule ({clash.rule})" if clash.rule else clash.nonterminal
            premise = f", premise  {clash.premise}" if clash.premise else ""
            lines.append(f"  {rule}{premise}: {clash.message}")
        if self.near:
            lines.append(f"  near: {', '.join(self.near)}")
        if self.expected:
            lines.append(_listed("  expected: ", self.expected))
        return "\n".join(lines)


def _listed(lead: str, expected: Iterable[Expectation]) -> str:
    shown = [str(e) for e in expected]
    if not shown:
        return ""
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return lead + ", ".join(shown[:_SHOWN]) + more


def explain(reader: Reader, hypotheses: tuple[Hypothesis, ...], text: bytes, lost_at: int | None) -> Explanation:
    """Explain a prefix; `hypotheses` are those of the last state that was not lost."""
    return _Explainer(reader, hypotheses, text, lost_at).explanation()


@final
class _Explainer:
    def __init__(self, reader: Reader, hypotheses: tuple[Hypothesis, ...], text: bytes, lost_at: int | None) -> None:
        self.reader: Final = reader
        self.machine: Final[Machine] = reader.parser.machine
        self.hypotheses: Final = hypotheses
        self.text: Final = text
        self.lost_at: Final = lost_at
        self.candidates: Final = self._candidates()

    def explanation(self) -> Explanation:
        shown = self.text.decode(errors="replace")
        if self.lost_at is None:
            expected = expectations(self.reader, self.hypotheses)
            line, column = _place(self.text, len(self.text))
            return self._made(shown, line, column, "", "", (), (), expected)
        expected = self._alternatives()
        start, lexeme = self._offender()
        line, column = _place(self.text, start if lexeme else self.lost_at)
        invalid = self._invalid_utf8()
        if invalid:
            return self._made(shown, line, column, "", invalid, (), (), expected)
        clashes = self._clashes(start, lexeme)
        near = self._near(lexeme, expected)
        return self._made(shown, line, column, lexeme, self._message(lexeme, clashes), clashes, near, expected)

    def _made(
        self,
        text: str,
        line: int,
        column: int,
        lexeme: str,
        message: str,
        clashes: tuple[Clash, ...],
        near: tuple[str, ...],
        expected: list[Expectation],
    ) -> Explanation:
        return Explanation(
            text=text,
            lost_at=self.lost_at,
            line=line,
            column=column,
            lexeme=lexeme,
            message=message,
            clashes=clashes,
            near=near,
            expected=tuple(expected),
        )

    # The offending lexeme

    def _candidates(self) -> list[Hypothesis]:
        """The hypotheses in which the offending lexeme begins: it may be one that had begun, or the next one."""
        found = list(self.hypotheses)
        start = self.machine.automaton.start
        for hypothesis in self.hypotheses:
            if hypothesis.length:
                end = hypothesis.start + hypothesis.length
                found += [Hypothesis(items, start, end, gap, ()) for items, gap in self.reader.finished(hypothesis)]
        return found

    def _offender(self) -> tuple[int, str]:
        """Where the offending lexeme begins, and the longest lexeme there (a single character if there is none)."""
        assert self.lost_at is not None
        best: tuple[int, str] | None = None
        for hypothesis in self.candidates:
            begin = hypothesis.start
            end = self._lexeme_end(begin)
            ended = bool(hypothesis.length) and end == self.lost_at and not self.reader.finished(hypothesis)
            if (end > self.lost_at or ended) and (best is None or begin < best[0]):
                best = (begin, self.text[begin:end].decode(errors="replace"))
        if best is not None:
            return best
        rest = self.text[self.lost_at :].decode(errors="replace")
        return self.lost_at, rest[:1]

    def _lexeme_end(self, begin: int) -> int:
        automaton, state, end = self.machine.automaton, self.machine.automaton.start, begin
        for at in range(begin, len(self.text)):
            state = automaton.transitions[state][self.text[at]]
            if state < 0:
                break
            if automaton.accepts[state] or at == len(self.text) - 1:
                end = at + 1
        return end

    def _invalid_utf8(self) -> str:
        assert self.lost_at is not None
        try:
            self.text.decode()
        except UnicodeDecodeError as error:
            if error.start <= self.lost_at and error.reason != "unexpected end of data":
                return f"byte 0x{self.text[self.lost_at]:02x} is not valid UTF-8 here"
        return ""

    # What refused it

    def _clashes(self, start: int, lexeme: str) -> tuple[Clash, ...]:
        """Refusals that concern the lexeme: items that would read it, and productions that would begin with it."""
        mask = self.machine.automaton.classify(lexeme.encode()) or self._partial(lexeme)
        # A weakened demand is refused beside the real one; the demand without holes is the telling one.
        found: dict[tuple[str, str | None, str | None], Clash] = {}
        for hypothesis in self.candidates:
            if hypothesis.start != start:
                continue
            failures: list[Failure] = []
            items = self._rebuilt(hypothesis.items, failures)
            relevant = [f for f in failures if f.dot < 0 and self._begins(f.production, mask)]
            failures.clear()
            kernel = self.reader.parser.scan(items, mask, Lexeme(lexeme, 0, 0), failures.append)
            if kernel:
                self.reader.parser.close(self.reader.root, kernel, 0, failures.append)
                relevant += [f for f in failures if f.dot >= 0]
            else:
                relevant += failures
            for failure in relevant:
                clash = self._clash(failure, lexeme)
                if clash is not None:
                    key = (clash.nonterminal, clash.premise, clash.found)
                    if key not in found or "?" in (found[key].wanted or ""):
                        found[key] = clash
        return tuple(sorted(found.values(), key=lambda clash: "?" in (clash.wanted or "")))[:_CLASHES]

    def _partial(self, lexeme: str) -> int:
        """Terminals that a lexeme which is none yet may become."""
        automaton = self.machine.automaton
        return automaton.live[automaton.run(lexeme.encode())]

    def _rebuilt(self, items: ItemSet, failures: list[Failure]) -> ItemSet:
        if items.kernel:
            return self.reader.parser.close(self.reader.root, items.kernel, 0, failures.append)
        return self.reader.parser.reopen(self.reader.root, failures.append)

    def _begins(self, production: Production, mask: int, seen: frozenset[int] = frozenset()) -> bool:
        """Whether a production can begin with one of these terminals, without consuming others."""
        for position in production.positions[:1]:
            if position.nonterminal < 0:
                return bool(position.mask & mask)
            if position.nonterminal in seen:
                return False
            inner = seen | {position.nonterminal}
            return production.label is None and any(
                self._begins(p, mask, inner) for p in self.machine.productions[position.nonterminal]
            )
        return False

    def _clash(self, failure: Failure, lexeme: str) -> Clash | None:
        production = failure.production
        premise = self._premise(failure)
        wanted = None if failure.wanted is None else self._shown(failure.wanted)
        found = None if failure.found is None else self._shown(failure.found)
        position = production.positions[failure.dot] if failure.dot >= 0 else None
        if failure.dot < 0 and wanted is None:
            message = "an ambient entry that it needs is not set"
        elif position is not None and position.fresh and failure.wanted is None and failure.found is not None:
            message = f"{lexeme} is in scope already, and a fresh name is needed"
        elif position is not None and failure.found is None:
            message = f"{lexeme} is not in scope"
        elif wanted is not None and found is not None and wanted != found:
            what = lexeme if position is not None and position.nonterminal < 0 else f"a {production.name}"
            message = f"{what} has type {found}, but {wanted} is demanded"
            if position is not None and position.nonterminal < 0 and not position.lookups:
                message = f"{found} is not {wanted}"
        else:
            return None
        rule = production.label
        if rule is None and not (position is not None and position.slot != NO_SLOT):
            return None
        return Clash(
            rule=rule,
            nonterminal=production.name,
            premise=premise,
            message=message,
            wanted=wanted,
            found=found,
        )

    def _shown(self, term: Term) -> str:
        return self.machine.syntax.render(self.reader.parser.arena.terms.rename(term, {}))

    def _premise(self, failure: Failure) -> str | None:
        premises: list[Premise] = []
        if failure.lookup is not None and failure.lookup.premise is not None:
            premises = [failure.lookup.premise]
        elif failure.lookup is None and failure.dot >= 0:
            premises = failure.production.positions[failure.dot].premises
            typed: list[Premise] = [p for p in premises if isinstance(p, Judgement | Equality)]
            premises = typed if failure.found is not None and typed else premises
        return render_premise(premises[0]) if premises else None

    # What may have been meant

    def _alternatives(self) -> list[Expectation]:
        """What could have come at the beginning of the offending lexeme."""
        start, _ = self._offender()
        automaton = self.machine.automaton
        opened = tuple(
            Hypothesis(h.items, automaton.start, h.start, h.gap, ())
            for h in self.candidates
            if h.start == start or not h.length
        )
        return expectations(self.reader, opened or self.hypotheses)

    def _near(self, lexeme: str, expected: list[Expectation]) -> tuple[str, ...]:
        kinds = (ExpectationKind.NAME, ExpectationKind.LITERAL)
        known = [e.text for e in expected if e.kind in kinds]
        return tuple(dict.fromkeys(get_close_matches(lexeme, known, 3, 0.6)))

    def _message(self, lexeme: str, clashes: tuple[Clash, ...]) -> str:
        if clashes:
            return clashes[0].message
        accepted = self.machine.automaton.classify(lexeme.encode())
        if any(accepted >> t & 1 and self.machine.terminal_is_literal[t] for t in range(accepted.bit_length())):
            return f"the word {lexeme!r} can't stand here"
        return f"{lexeme!r} can't stand here" if lexeme else "no continuation is left"


def _place(text: bytes, offset: int) -> tuple[int, int]:
    before = text[:offset]
    line = before.count(b"\n") + 1
    column = len(before[before.rfind(b"\n") + 1 :].decode(errors="replace")) + 1
    return line, column
