"""Maximal-munch lexing as it happens: hypotheses about an unfinished lexeme, obligations, and its judgement.

A hypothesis says: the lexemes so far led to this set, and this text is the beginning of the next one. At each byte the
lexeme goes on, or it ended before the byte; the latter is right only as long as no longer match comes true, and that
obligation travels with the hypothesis as a state of the automaton until it dies (the hypothesis stays) or accepts
(the hypothesis falls).

An unfinished lexeme is judged too: some terminal that it can still be must be taken by some item, with a text that
the item's rule can accept (paper, section 2.2, regular leaves).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from aufbau.earley.chart import Item, ItemSet, Lexeme, Record
from aufbau.earley.machine import NO_SLOT, Position
from aufbau.earley.parser import Parser
from aufbau.regex import DEAD
from aufbau.typesystem.context import Scope
from aufbau.typesystem.terms import Term


@final
class Hypothesis:
    """One reading of the text so far; immutable but for what it remembers."""

    __slots__ = ("_before", "_byte", "_finished", "gap", "items", "length", "obligations", "start", "state")

    def __init__(
        self,
        items: ItemSet,
        state: int,
        start: int,
        gap: bool,
        obligations: tuple[int, ...],
        before: Hypothesis | None = None,
        byte: int = -1,
    ) -> None:
        self.items: Final = items
        self.state: Final = state  # of the automaton, after the bytes of the unfinished lexeme
        self.start: Final = start  # byte offset at which that lexeme begins
        self.gap: Final = gap  # whether an ignore-once lexeme was read since the last real one
        self.obligations: Final = obligations
        # The lexeme's bytes as a chain, so that a lexeme of n bytes costs O(n) and not O(n²).
        self._before: Final = before
        self._byte: Final = byte
        length = 0 if byte < 0 else 1
        self.length: Final[int] = length if before is None else before.length + length
        self._finished: list[tuple[ItemSet, bool]] | None = None

    @property
    def text(self) -> bytes:
        """The unfinished lexeme."""
        found = bytearray()
        current: Hypothesis | None = self
        while current is not None and current._byte >= 0:
            found.append(current._byte)
            current = current._before
        found.reverse()
        return bytes(found)

    def known(self) -> list[tuple[ItemSet, bool]] | None:
        """What `Reader.finished` found, if it was asked."""
        return self._finished

    def remember(self, finished: list[tuple[ItemSet, bool]]) -> list[tuple[ItemSet, bool]]:
        """Keep what `Reader.finished` found."""
        self._finished = finished
        return finished


@final
class Reader:
    """Steps hypotheses; shared by the prefixes of one start, without state of its own."""

    __slots__ = ("parser", "root")

    def __init__(self, parser: Parser, root: Record) -> None:
        self.parser: Final = parser
        self.root: Final = root

    def finished(self, hypothesis: Hypothesis) -> list[tuple[ItemSet, bool]]:
        """The sets after the lexeme, if it ends here, each with its `gap`."""
        known = hypothesis.known()
        return known if known is not None else hypothesis.remember(self._finish(hypothesis))

    def _finish(self, hypothesis: Hypothesis) -> list[tuple[ItemSet, bool]]:
        machine, items = self.parser.machine, hypothesis.items
        accepted = machine.automaton.accepts[hypothesis.state]
        found: list[tuple[ItemSet, bool]] = []
        if accepted & self.ignorable(hypothesis.gap):
            found.append((items, hypothesis.gap or bool(accepted & machine.ignore_once_mask)))
        if accepted & items.mask:
            text = hypothesis.text.decode()
            lexeme = Lexeme(text, hypothesis.start, hypothesis.start + hypothesis.length)
            kernel = self.parser.scan(items, accepted, lexeme)
            if kernel:
                following = self.parser.close(self.root, kernel, items.total)
                if following.roots or self.viable(following):
                    found.append((following, False))
        return found

    def ignorable(self, gap: bool) -> int:
        """Terminals that may be read and left out here; `gap` says whether an ignore-once one was read."""
        machine = self.parser.machine
        return machine.ignore_mask & ~machine.ignore_once_mask if gap else machine.ignore_mask

    def viable(self, items: ItemSet) -> bool:
        """Whether some lexeme can follow a set."""
        if items.viable is None:
            automaton = self.parser.machine.automaton
            items.viable = bool(items.free_mask) or any(
                self.takes(item, mask, automaton.start, b"")
                for mask, expecting in items.expected.items()
                for item in expecting
            )
        return items.viable

    def step(self, hypotheses: tuple[Hypothesis, ...], byte: int, offset: int) -> tuple[Hypothesis, ...]:
        """The hypotheses after one more byte, which stands at `offset`; empty when the text is lost."""
        automaton = self.parser.machine.automaton
        found: list[Hypothesis] = []
        for hypothesis in hypotheses:
            obligations = self._obligations(hypothesis.obligations, byte)
            if obligations is None:
                continue
            state = automaton.transitions[hypothesis.state][byte]
            if state != DEAD:
                longer = Hypothesis(
                    hypothesis.items, state, hypothesis.start, hypothesis.gap, obligations, hypothesis, byte
                )
                if self.hopeful(longer):
                    found.append(longer)
                if automaton.accepts[state]:
                    continue  # a longer match came true, so the lexeme did not end before this byte
            if automaton.accepts[hypothesis.state]:
                fresh = automaton.transitions[automaton.start][byte]
                if fresh == DEAD:
                    continue
                if state != DEAD:
                    obligations = (*obligations, state)
                for items, gap in self.finished(hypothesis):
                    following = Hypothesis(items, fresh, offset, gap, obligations, None, byte)
                    if self.hopeful(following):
                        found.append(following)
        return tuple(found)

    def _obligations(self, obligations: tuple[int, ...], byte: int) -> tuple[int, ...] | None:
        if not obligations:
            return obligations
        automaton = self.parser.machine.automaton
        left = []
        for state in obligations:
            after = automaton.transitions[state][byte]
            if automaton.accepts[after]:
                return None
            if after != DEAD:
                left.append(after)
        return tuple(left)

    def hopeful(self, hypothesis: Hypothesis) -> bool:
        """Whether the unfinished lexeme can go on to one that is taken, or is one already."""
        automaton, items, state = self.parser.machine.automaton, hypothesis.items, hypothesis.state
        more = automaton.more[state]
        if more & (items.free_mask | self.ignorable(hypothesis.gap)):
            return True
        if items.mask & more:
            text = hypothesis.text
            for mask, expecting in items.expected.items():
                if mask & more and any(self.takes(item, mask, state, text) for item in expecting):
                    return True
        return bool(automaton.accepts[state] and self.finished(hypothesis))

    # Judgement of unfinished lexemes

    def takes(self, item: Item, mask: int, state: int, text: bytes) -> bool:
        """Whether an item accepts some lexeme that is strictly longer than `text`, which led to `state`."""
        position = item.production.positions[item.dot]
        more = self.parser.machine.automaton.more[state] & mask
        if not more:
            return False
        if position.slot != NO_SLOT:
            required = item.slots[item.record.holes + position.slot]
            if required.index < 0:
                data = required.head.encode()
                return len(data) > len(text) and data.startswith(text) and self._accepts(item, mask, required.head)
        if position.member or position.lookups:
            return next(self.names(item, mask, text), None) is not None
        return not position.fresh or self._fresh(item, more, state, text)

    def _accepts(self, item: Item, mask: int, name: str) -> bool:
        if not self.parser.machine.automaton.classify(name.encode()) & mask:
            return False
        return self.parser.take(item, Lexeme(name, 0, 0)) is not None

    def names(self, item: Item, mask: int, text: bytes) -> Iterator[tuple[str, Term]]:
        """Names in scope that the item takes and that are longer than `text`, which they begin with; with types."""
        position = item.production.positions[item.dot]
        prefix = position.lookups[0].prefix if position.lookups else position.member_prefix
        gamma, begun = self.parser.context(item), prefix.encode() + text
        scope = gamma.beginning(begun)
        if scope is None:
            return
        skipped = len(prefix)
        verdicts: dict[Term, bool] = {}

        def fits(bound: Term, name: str) -> bool:
            known = verdicts.get(bound)
            if known is None:
                known = verdicts[bound] = self.parser.take(item, Lexeme(name, 0, 0)) is not None
            return known

        textual = not by_type(position)
        stack: list[Scope] = [scope]
        while stack:
            node = stack.pop()
            if node.type is not None and node.name.encode() != begun:
                name = node.name[skipped:]
                fitting = (
                    self._accepts(item, mask, name)
                    if textual
                    else (fits(node.type, name) and bool(self.parser.machine.automaton.classify(name.encode()) & mask))
                )
                if fitting:
                    yield name, node.type
            if all(verdicts.get(bound) is False for bound in node.types):
                continue
            # A zero byte leads to another name space.
            stack.extend(reversed(node.nodes[1:] if node.following[:1] == b"\0" else node.nodes))

    def _fresh(self, item: Item, more: int, state: int, text: bytes) -> bool:
        """Whether a binder that must be fresh has a longer spelling that no name in scope has."""
        automaton = self.parser.machine.automaton
        if automaton.infinite[state] & more:
            return True
        gamma = self.parser.context(item)
        position = item.production.positions[item.dot]
        inside, prefix = position.fresh_inside, position.fresh_prefix
        limit = self.parser.arena.limits.fresh_extensions
        for terminal in range(more.bit_length()):
            if more >> terminal & 1:
                tried = 0
                for rest in automaton.extensions(state, terminal, limit):
                    tried += 1
                    name = prefix + (text + rest).decode() if rest else ""
                    if rest and (gamma.lookup(name) is None or (inside and not gamma.in_scope(name))):
                        return True
                if tried >= limit:
                    return True
        return False


def by_type(position: Position) -> bool:
    """Whether the type that Γ holds for a name decides whether it is taken.

    Not so where its text is compared as well, or where more than one look-up takes part.
    """
    prefix = position.lookups[0].prefix if position.lookups else position.member_prefix
    return not (
        position.slot != NO_SLOT
        or position.fresh
        or (position.member and position.member_prefix != prefix)
        or any(lookup.prefix != prefix for lookup in position.lookups)
    )
