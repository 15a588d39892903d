"""The cheapest ways to finish what a chart has begun: lightest derivations of the calls that are still open.

What follows a prefix has no positions yet, so a call (nonterminal, Γ, demand) is explored once, wherever it stands:
nested parentheses or `0 + 0 + …` lead back to calls whose answers are known. Items leave the queue in the order of a
lower bound on the whole text (Knuth 1977; Klein and Manning 2003): the bytes of the item itself, the shortest texts
of what it still needs, and the least that its call's surroundings need. So the first answer of the root is a lightest.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Any, Final, final

from aufbau.earley.chart import Answer, Item, ItemSet, Lexeme, Record, Waiter
from aufbau.earley.demand import live_predictions
from aufbau.earley.machine import NO_SLOT, RESULT, Machine, Position, Production
from aufbau.earley.parser import Parser
from aufbau.lexer.state import Hypothesis, Reader
from aufbau.regex import DEAD
from aufbau.surface import NEVER, bits, clings, surface
from aufbau.typesystem.terms import variables

_SPELLINGS: Final = 256  # of a name that are tried until one is free
_NONE: Final = b""

_Parts = tuple[Any, Any]  # texts of lexemes, as a tree of concatenations: pairs of such trees or bytes


@final
class Lead:
    """What finishes the lexeme or the ignorable text that the prefix breaks off in, and where that leaves the lexer."""

    __slots__ = ("state", "text")

    def __init__(self, text: bytes, state: int) -> None:
        self.text: Final = text
        self.state: Final = state


@final
class Step:
    """An item with the text that brought it here: its own children, for an item of the chart since the prefix."""

    __slots__ = ("bound", "cost", "head", "item", "lead", "parts", "surcharge", "tail", "waiter")

    def __init__(
        self,
        item: Item,
        cost: int,
        bound: int,
        parts: _Parts | bytes,
        head: bytes,
        tail: int,
        lead: Lead | None,
    ) -> None:
        self.item: Final = item
        self.cost: Final = cost  # bytes
        self.bound: Final = bound  # on the whole continuation
        self.parts: Final = parts
        self.head: Final = head  # the first lexeme
        self.tail: Final = tail  # state of the automaton after the last one
        self.lead: Final = lead  # of items of the chart
        self.waiter: Waiter | None = None  # once it waits for a call
        self.surcharge = 0  # for that call


@final
class Derivation:
    """An answer with a lightest text."""

    __slots__ = ("answer", "cost", "step")

    def __init__(self, answer: Answer, step: Step) -> None:
        self.answer: Final = answer
        self.step: Final = step
        self.cost: Final = step.cost


@final
class Search:
    """The queue of one prefix. Iterate `steps` for items in the order of their bounds, `finals` for whole texts."""

    __slots__ = (
        "_answers",
        "_best",
        "_callers",
        "_calls",
        "_caution",
        "_cut",
        "_haste",
        "_leaves",
        "_needed",
        "_queue",
        "_spent",
        "_surface",
        "_ticket",
        "_waiting",
        "automaton",
        "gap",
        "gaps",
        "machine",
        "max_bytes",
        "max_steps",
        "parser",
        "reader",
        "spent",
    )

    def __init__(
        self, reader: Reader, hypotheses: tuple[Hypothesis, ...], *, max_bytes: int, caution: int = 0, haste: int = 1
    ) -> None:
        """`caution` is what a call costs, beside its bytes, when its type is left open; `haste` weighs what is left.

        Such calls (the function of an application, the annotation of a parameter) have a choice of types without end,
        and seldom help. Without caution and haste the first final text is a lightest; with them, one is found sooner.
        """
        self.reader: Final = reader
        self.parser: Final[Parser] = reader.parser
        self.machine: Final[Machine] = reader.parser.machine
        self.automaton: Final = self.machine.automaton
        self.max_bytes: Final = max_bytes
        self.max_steps = 0  # may be raised, and the search goes on
        self.spent = 0  # steps
        self._caution: Final = caution
        self._haste: Final = haste
        self._cut = False  # whether something was left out because of a bound
        self._surface: Final = surface(self.machine)
        self.gaps: Final = self._surface.gaps
        self.gap: Final[int] = len(self.gaps[0]) if self.gaps else NEVER
        # What stands before and after a call: bytes that were spent, and the least that are needed.
        self._spent: Final[dict[Record, int]] = {}
        self._needed: Final[dict[Record, int]] = {}
        self._calls: Final[dict[tuple[object, ...], Record]] = {}
        self._callers: Final[dict[Record, Step]] = {}
        self._waiting: Final[dict[Record, list[Step]]] = {}
        self._answers: Final[dict[Record, list[Derivation]]] = {}
        self._best: Final[dict[tuple[object, ...], list[tuple[int, bytes, int]]]] = {}
        self._leaves: list[bytes] | None = None  # of all terms, when they were first asked for
        self._queue: list[tuple[int, int, int, Step]] = []
        self._ticket = 0
        self._begin(hypotheses)

    # Where the prefix left off

    def _begin(self, hypotheses: tuple[Hypothesis, ...]) -> None:
        starts: list[tuple[ItemSet, Lead]] = []
        taken: list[tuple[Item, Lead]] = []
        for hypothesis in hypotheses:
            if not hypothesis.length:
                starts.append((hypothesis.items, Lead(_NONE, DEAD)))
                continue
            starts += [(items, Lead(_NONE, hypothesis.state)) for items, _ in self.reader.finished(hypothesis)]
            taken += self._longer(hypothesis)
            for terminal in bits(self.automaton.more[hypothesis.state] & self.reader.ignorable(hypothesis.gap)):
                for rest in self.automaton.extensions(hypothesis.state, terminal, 2):
                    if rest:
                        lead = Lead(rest, self.automaton.run(rest, hypothesis.state))
                        starts.append((hypothesis.items, lead))
                        break
        records = [item.record for items, _ in starts for group in items.expected.values() for item in group]
        self._needed.update(_distances(self.reader.root, [*records, *(i.record for i, _ in taken)], self._surface.rest))
        for items, lead in starts:
            for group in items.expected.values():
                for item in group:
                    self._push(item, len(lead.text), _NONE, _NONE, lead.state, lead, 0)
        for item, lead in taken:
            self._push(item, len(lead.text), _NONE, _NONE, lead.state, lead, 0)

    def _longer(self, hypothesis: Hypothesis) -> Iterator[tuple[Item, Lead]]:
        """The items that take the unfinished lexeme once it is longer."""
        text, state = hypothesis.text, hypothesis.state
        for mask, expecting in hypothesis.items.expected.items():
            for item in expecting:
                if not self.reader.takes(item, mask, state, text):
                    continue
                for whole in self._spellings(item, mask, state, text):
                    following = self.parser.take(item, Lexeme(whole.decode(), 0, 0))
                    if following is not None:
                        rest = whole[len(text) :]
                        yield following, Lead(rest, self.automaton.run(rest, state))

    # The queue

    def _push(
        self, item: Item, cost: int, parts: _Parts | bytes, head: bytes, tail: int, lead: Lead | None, floor: int
    ) -> None:
        needed = self._needed.get(item.record)
        if needed is None:
            return  # nobody waits for this call any longer
        key = (item.production, item.dot, item.record, item.slots, item.effect)
        if self._dominated(key, cost, head, tail):
            return
        todo = self._surface.rest(item.production, item.dot) + needed
        bound = cost + self._spent.get(item.record, 0) + self._haste * todo
        if self._haste == 1:
            bound = max(bound, floor)  # an item is never better than what it came from
        if bound > self.max_bytes:
            self._cut = True
            return
        self._ticket += 1
        step = Step(item, cost, bound, parts, head, tail, lead)
        heapq.heappush(self._queue, (bound, todo, self._ticket, step))

    def _dominated(self, key: tuple[object, ...], cost: int, head: bytes, tail: int) -> bool:
        """Whether a known text serves as well, also where a blank more is needed at its ends."""
        known = self._best.setdefault(key, [])
        gap, more = self.gap, self.automaton.more
        for other, first, last in known:
            slack = (first[:1] != head[:1]) + (last != tail and bool(more[last]))
            if other + slack * gap <= cost:
                return True
        known.append((cost, head, tail))
        return False

    @property
    def exhausted(self) -> bool:
        """Whether all that may follow was tried."""
        return not self._queue and not self._cut

    @property
    def waiting(self) -> bool:
        """Whether there are items left to carry on."""
        return bool(self._queue)

    def steps(self) -> Iterator[Step]:
        """Items in the order of their bounds; each is carried on when the next one is asked for."""
        while self._queue and self.spent < self.max_steps:
            self.spent += 1
            step = heapq.heappop(self._queue)[3]
            yield step
            positions = step.item.production.positions
            if step.item.dot == len(positions):
                self._complete(step)
            elif positions[step.item.dot].nonterminal < 0:
                self._take(step, positions[step.item.dot])
            else:
                self._call(step, positions[step.item.dot])

    def finals(self) -> Iterator[Step]:
        """Complete items of the root, in the order of the least that their whole texts can cost."""
        for step in self.steps():
            if step.item.record is self.reader.root and step.item.dot == len(step.item.production.positions):
                yield step

    # One step

    def _take(self, step: Step, position: Position) -> None:
        for text in self._spellings(step.item, position.mask, self.automaton.start, _NONE):
            following = self.parser.take(step.item, Lexeme(text.decode(), 0, 0))
            if following is not None:
                cost = step.cost + self.glue(step.tail, text) + len(text)
                tail = self.automaton.run(text)
                self._push(following, cost, _joined(step.parts, text), step.head or text, tail, step.lead, step.bound)

    def _complete(self, step: Step) -> None:
        record = step.item.record
        answer = self.parser.answer(step.item)
        if self._dominated((record, answer.type, answer.values, answer.effect), step.cost, step.head, step.tail):
            return
        for waiter in record.waiters:  # those of the chart
            following = self.parser.resume(waiter, answer)
            if following is not None:
                self._push(following, step.cost, step.parts, step.head, step.tail, step.lead, step.bound)
        if record in self._callers:
            derivation = Derivation(answer, step)
            self._answers[record].append(derivation)
            for waiting in tuple(self._waiting[record]):
                self._combine(waiting, derivation)

    def _combine(self, waiting: Step, child: Derivation) -> None:
        assert waiting.waiter is not None
        following = self.parser.resume(waiting.waiter, child.answer)
        if following is None:
            return
        inner = child.step
        cost = waiting.cost + self.glue(waiting.tail, inner.head) + child.cost + waiting.surcharge
        self._push(
            following,
            cost,
            _joined(waiting.parts, inner.parts),
            waiting.head or inner.head,
            inner.tail if inner.head else waiting.tail,
            waiting.lead,
            waiting.bound,
        )

    def _call(self, step: Step, position: Position) -> None:
        """Wait for the child at the dot; the same as in a set, but calls are shared by the whole text to come."""
        item = step.item
        step.waiter, gamma, demand, sieve, holes = self.parser.call(item, position)
        if position.slot not in (NO_SLOT, RESULT) and (demand is None or not demand.ground):
            step.surcharge = self._caution
        key = (position.nonterminal, gamma, demand, sieve)
        record = self._calls.get(key)
        if record is None:
            record = self._calls[key] = Record(position.nonterminal, gamma, demand, sieve, holes)
            self._spent[record] = step.cost + step.surcharge + self._spent.get(item.record, 0)
            self._needed[record] = self._surface.rest(item.production, item.dot + 1) + self._needed[item.record]
            self._callers[record] = step
            self._waiting[record], self._answers[record] = [step], []
            self._predict(record, step.bound)
            return
        self._waiting[record].append(step)
        for derivation in tuple(self._answers[record]):
            self._combine(step, derivation)

    def _predict(self, record: Record, bound: int) -> None:
        for prediction in live_predictions(self.parser.arena, record):
            item = self.parser.enter(prediction.production, record, prediction.slots)
            if item is not None:
                self._push(item, 0, _NONE, _NONE, DEAD, None, bound)

    # Lexemes

    def _spellings(self, item: Item, mask: int, state: int, text: bytes) -> Iterator[bytes]:
        """Lexemes that go on from `text`, which led to `state`, each for all that the item can't tell from it.

        Rules see of a text only whether it is equal to another and what Γ says of it. So the names of one type, and
        all new names, are one case each; known texts are tried one by one where a rule compares them.
        """
        position = item.production.positions[item.dot]
        open_slot = False
        if position.slot != NO_SLOT:
            required = item.slots[item.record.holes + position.slot]
            open_slot = required.index >= 0
            if not open_slot:
                whole = required.head.encode()
                if whole.startswith(text) and len(whole) > len(text) and self.automaton.classify(whole) & mask:
                    yield whole
                return
        if position.member or position.lookups:
            yield from self._names(item, mask, text, alike=position.slot == NO_SLOT and not position.fresh)
            return
        gamma = self.parser.context(item) if item.record.context is not None else None
        if open_slot and _compared(item.production, position.slot):
            yield from self._known(mask, text)
        for terminal in bits(self.automaton.live[state] & mask):
            fresh = 0
            for rest in self.automaton.extensions(state, terminal, _SPELLINGS):
                name = (text + rest).decode() if rest else ""
                if not name:
                    continue
                bound = gamma is not None and open_slot and gamma.lookup(position.fresh_prefix + name) is not None
                if not bound or not fresh:
                    yield name.encode()
                if not bound:
                    break
                fresh += 1

    def _names(self, item: Item, mask: int, text: bytes, alike: bool) -> Iterator[bytes]:
        """Names in scope; where only the type matters, the shortest of each type and edge."""
        shortest: dict[tuple[object, ...], bytes] = {}
        for name, bound in self.reader.names(item, mask, text):
            spelled = name.encode()
            key = (bound, spelled[:1], self.automaton.run(spelled)) if alike else (name,)
            if len(shortest.get(key, spelled)) >= len(spelled):
                shortest[key] = spelled
        yield from shortest.values()

    def _known(self, mask: int, text: bytes) -> Iterator[bytes]:
        """Texts that some term of the prefix, of Γ or of a rule holds."""
        if self._leaves is None:
            self._leaves = [head.encode() for head in self.parser.arena.terms.leaves()]
        for spelled in self._leaves:
            if len(spelled) > len(text) and spelled.startswith(text) and self.automaton.classify(spelled) & mask:
                yield spelled

    def glue(self, state: int, text: bytes) -> int:
        """Bytes of the gap that `text` needs after a lexeme that left the automaton in `state`."""
        if state == DEAD or not text:
            return 0
        known = self._surface.glue.get((state, text))
        if known is None:
            known = self._surface.glue[state, text] = self.gap if clings(self.machine, state, text) else 0
        return known

    # Texts

    def lexemes(self, step: Step) -> tuple[Lead, list[bytes]]:
        """What ends the lexeme that the prefix breaks off in, and the lexemes after it, up to this step's dot."""
        chain = [step.parts]
        lead = step.lead
        while lead is None:
            step = self._callers[step.item.record]
            chain.append(step.parts)
            lead = step.lead
        found: list[bytes] = []
        stack: list[_Parts | bytes] = list(chain)
        while stack:
            part = stack.pop()
            if isinstance(part, bytes):
                if part:
                    found.append(part)
            else:
                stack += (part[1], part[0])
        return lead, found

    def spelled(self, step: Step) -> Iterator[bytes]:
        """The text up to a step's dot, with as few blanks as it needs, and with more where the lexer may ask for it."""
        lead, lexemes = self.lexemes(step)
        yield lead.text + self._assembled(lead.state, lexemes)
        if self.gaps:
            yield lead.text + self.gaps[0] + self._assembled(DEAD, lexemes)
            yield lead.text + self.gaps[0].join([_NONE, *lexemes])

    def _assembled(self, state: int, lexemes: list[bytes]) -> bytes:
        text = _NONE
        for i in range(len(lexemes) - 1, -1, -1):
            text = lexemes[i] + text
            before = self.automaton.run(lexemes[i - 1]) if i else state
            if before != DEAD and clings(self.machine, before, text):
                text = self._gap(before, text) + text
        return text

    def _gap(self, before: int, text: bytes) -> bytes:
        for gap in self.gaps:
            after = self.automaton.run(gap)
            if not clings(self.machine, before, gap + text) and not clings(self.machine, after, text):
                return gap
        return _NONE


def _distances(root: Record, records: list[Record], rest: Callable[[Production, int], int]) -> dict[Record, int]:
    """For each call above these ones, the least bytes between its end and that of the text (Dijkstra from the root)."""
    below: dict[Record, list[tuple[Record, int]]] = {}
    stack, seen = list(dict.fromkeys(records)), set(records)
    while stack:
        record = stack.pop()
        for waiter in record.waiters:
            above = waiter.item.record
            below.setdefault(above, []).append((record, rest(waiter.item.production, waiter.item.dot + 1)))
            if above not in seen:
                seen.add(above)
                stack.append(above)
    found: dict[Record, int] = {}
    queue = [(0, 0, root)]
    ticket = 0  # settles ties, since calls have no order
    while queue:
        distance, _, record = heapq.heappop(queue)
        if record in found:
            continue
        found[record] = distance
        for child, cost in below.get(record, ()):
            if child not in found:
                ticket += 1
                heapq.heappush(queue, (distance + cost, ticket, child))
    return found


def _joined(left: _Parts | bytes, right: _Parts | bytes) -> _Parts | bytes:
    if left == _NONE:
        return right
    return left if right == _NONE else (left, right)


def _compared(production: Production, slot: int) -> bool:
    """Whether a slot's text has a part in anything but the binding of a name."""
    name = production.template[slot]
    return any(name.index in variables([term]) for at, term in enumerate(production.template) if at != slot)
