"""What tokens read to: series of finished lexemes and an unfinished one, grouped over a whole vocabulary with numpy.

From a state of the lexer's automaton a token reads to lexemes that end inside it and to one that its last byte leaves
unfinished. That depends on bytes alone, so it is worked out once per state, for all tokens at a time, when it is first
asked for. Where an end is uncertain the token has a reading for each end; a reading that a later byte of the token
refutes (a longer match comes true after all) is left out here, so whoever walks the groups needs no obligations.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Protocol, final

import numpy as np
import numpy.typing as npt

from aufbau.vocabulary.spelled import Bytes
from aufbau.vocabulary.texts import TextIndex

Ids = npt.NDArray[np.int32]
Bits = npt.NDArray[np.uint8]  # token i is bit i % 8 of byte i // 8
Bools = npt.NDArray[np.bool_]
_Pieces = list[tuple[npt.NDArray[np.int32], ...]]
_MANY = 128  # ids of one token in so many are slower to set than the bits of all are to add


class Automaton(Protocol):
    """All that is asked of the lexer: masks of terminals per state, and a row of transitions (-1: dead) per state.

    The last row of each table stands for the dead state.
    """

    @property
    def start(self) -> int:
        """The state before a lexeme."""
        ...

    @property
    def transitions(self) -> Sequence[Sequence[int]]:
        """The next state by state and byte."""
        ...

    @property
    def accepts(self) -> Sequence[int]:
        """The terminals that match exactly here."""
        ...

    @property
    def more(self) -> Sequence[int]:
        """The terminals that match after at least one more byte."""
        ...

    @property
    def infinite(self) -> Sequence[int]:
        """The terminals that match after infinitely many continuations."""
        ...


@final
class Ending:
    """Tokens that leave an unfinished lexeme behind, in states that say the same of it."""

    __slots__ = ("_bytes", "_texts", "_written", "accepts", "begun", "infinite", "more", "tokens")

    def __init__(self, source: Bytes, masks: tuple[int, ...], tokens: Ids, begun: Ids) -> None:
        self.more, self.accepts, self.infinite = masks
        self.tokens = tokens
        self.begun = begun  # offset in the buffer at which the lexeme begins
        self._bytes = source
        self._texts: TextIndex | None = None
        self._written: Part | None = None

    @property
    def written(self) -> Part:
        """The tokens as they are fastest to put into a mask."""
        if self._written is None:
            self._written = compact(self.tokens, self._bytes.count)
        return self._written

    @property
    def texts(self) -> TextIndex:
        """The tokens by the text of the unfinished lexeme."""
        if self._texts is None:
            self._texts = TextIndex(self._bytes.buffer, self.tokens, self.begun, self._bytes.ends[self.tokens])
        return self._texts


@final
class Ended:
    """Tokens whose first lexeme (from where the split began) ends inside them, matching the same terminals."""

    __slots__ = ("_by_text", "_series", "accepts", "begun", "node", "texts")

    def __init__(self, series: Series, accepts: int, tokens: Ids, begun: Ids, end: Ids) -> None:
        self.accepts = accepts
        self.node = Node(series, tokens, end)  # what follows, whatever the lexeme's text was
        self.begun = begun
        self.texts = TextIndex(series.bytes.buffer, tokens, begun, end)
        self._series = series
        self._by_text: dict[bytes, Node] = {}

    def after(self, text: bytes) -> Node | None:
        """What follows a lexeme with this text; None when no token has it."""
        found = self._by_text.get(text)
        if found is None:
            places = self.texts.places(text)
            if not len(places):
                return None
            found = self._by_text[text] = Node(self._series, self.node.tokens[places], self.node.at[places])
        return found


@final
class Node:
    """Tokens read up to the beginning of a lexeme."""

    __slots__ = ("_series", "_split", "at", "tokens")

    def __init__(self, series: Series, tokens: Ids, at: Ids) -> None:
        self.tokens = tokens
        self.at = at  # offset in the buffer up to which each is read
        self._series = series
        self._split: Split | None = None

    @property
    def split(self) -> Split:
        """The next lexeme of each token."""
        if self._split is None:
            self._split = self._series.split(self._series.automaton.start, self.tokens, self.at)
        return self._split


@final
class Split:
    """The next lexeme of some tokens: finished inside them, or left unfinished by them."""

    __slots__ = ("ended", "endings", "nbytes", "terminals")

    def __init__(self, endings: list[Ending], ended: list[Ended]) -> None:
        self.endings = endings
        self.ended = ended
        self.terminals = 0  # that the lexeme can be
        for ending in endings:
            self.terminals |= ending.more | ending.accepts
        for one in ended:
            self.terminals |= one.accepts
        # Two or three offsets a token, and as much again for looking up texts.
        tokens = sum(len(ending.tokens) for ending in endings) + sum(len(one.begun) for one in ended)
        self.nbytes = 24 * tokens


@final
class Series:
    """The readings of a vocabulary by one automaton, worked out lazily. Safe to share."""

    def __init__(self, automaton: Automaton, source: Bytes, *, limit: int = 64_000_000) -> None:
        self.automaton = automaton
        self.bytes = source
        self._limit = limit  # bytes of arrays for continuations of begun lexemes
        self._used = 0
        self._table = np.array(automaton.transitions, dtype=np.int32)
        self._accepting = np.array([bool(mask) for mask in automaton.accepts])
        accepts, more, infinite = automaton.accepts, automaton.more, automaton.infinite
        # States that say the same of what they have read are one class.
        self._ends, self._end_class = _classes(list(zip(more, accepts, infinite, strict=True)))
        self._stops, self._stop_class = _classes([(mask,) for mask in accepts])
        self.root = Node(self, source.written, source.starts[source.written])
        self._inside: OrderedDict[int, Split] = OrderedDict()
        self._kept: OrderedDict[int, Bools] = OrderedDict()

    @property
    def states(self) -> int:
        """How many states have their continuations kept."""
        return len(self._inside)

    @property
    def nbytes(self) -> int:
        """About what the arrays take."""
        kept = sum(mask.nbytes for mask in list(self._kept.values()))
        # From the root, two readings a token: it is read whole, and mostly once more behind white space.
        return self._used + kept + self._table.nbytes + 48 * len(self.root.tokens)

    def inside(self, state: int) -> Split:
        """How tokens go on with a lexeme that has led to `state`; that it ends before them is not among it."""
        found = self._inside.get(state)
        if found is None:
            found = self._inside[state] = self.split(state, self.root.tokens, self.root.at)
            self._used += found.nbytes
            while self._used > self._limit and len(self._inside) > 1:
                self._used -= self._inside.popitem(last=False)[1].nbytes
        return found

    def kept(self, state: int) -> Bools:
        """Tokens along which no lexeme that is in `state` before them comes to an end: those that a lexeme leaves
        whole which has ended there, and those that keep an obligation."""
        found = self._kept.get(state)
        if found is None:
            tokens, at = self.root.tokens, self.root.at
            refuted = self._comes_true(np.full(len(tokens), state, np.int32), tokens, at)
            found = np.ones(self.bytes.count, np.bool_)
            found[tokens[refuted]] = False
            self._kept[state] = found
            if len(self._kept) > 16 + self._limit // (4 * self.bytes.count):
                self._kept.popitem(last=False)
        return found

    def split(self, state: int, tokens: Ids, begun: Ids) -> Split:
        """The lexemes that go on from `state` at these offsets of the tokens."""
        ends = self.bytes.ends
        buffer, table, accepting = self.bytes.buffer, self._table, self._accepting
        at, here = begun, np.full(len(tokens), state, np.int32)
        finals: _Pieces = []
        stops: _Pieces = []
        first = True
        while len(tokens):
            over = at == ends[tokens]
            if over.any():
                finals.append((tokens[over], begun[over], here[over]))
                going = ~over
                tokens, begun, at, here = tokens[going], begun[going], at[going], here[going]
            following = table[here, buffer[at]]
            if not first:
                stop = accepting[here] & ~accepting[following]
                if stop.any():
                    stops.append((tokens[stop], begun[stop], at[stop], here[stop], following[stop]))
            alive = following >= 0
            tokens, begun, at, here = tokens[alive], begun[alive], at[alive] + 1, following[alive]
            first = False
        return Split(self._endings(finals), self._ended(stops))

    def _endings(self, pieces: _Pieces) -> list[Ending]:
        if not pieces:
            return []
        tokens, begun, here = (np.concatenate(column) for column in zip(*pieces, strict=True))
        return [
            Ending(self.bytes, self._ends[kind], tokens[rows], begun[rows])
            for kind, rows in _grouped(self._end_class[here])
        ]

    def _ended(self, pieces: _Pieces) -> list[Ended]:
        if not pieces:
            return []
        tokens, begun, end, here, longer = (np.concatenate(column) for column in zip(*pieces, strict=True))
        # Most of what ends before a byte that begins no lexeme (in a character, say) is of no use to anyone.
        useful = self._table[self.automaton.start, self.bytes.buffer[end]] >= 0
        tokens, begun, end, here, longer = (column[useful] for column in (tokens, begun, end, here, longer))
        unsure = np.flatnonzero(longer >= 0)
        if len(unsure):
            refuted = self._comes_true(longer[unsure], tokens[unsure], end[unsure] + 1)
            sure = np.ones(len(tokens), np.bool_)
            sure[unsure[refuted]] = False
            tokens, begun, end, here = tokens[sure], begun[sure], end[sure], here[sure]
        return [
            Ended(self, self._stops[kind][0], tokens[rows], begun[rows], end[rows])
            for kind, rows in _grouped(self._stop_class[here])
        ]

    def _comes_true(self, here: Ids, tokens: Ids, at: Ids) -> Bools:
        """Which tokens, read on from these states and offsets, come to an accepting state."""
        found = np.zeros(len(tokens), np.bool_)
        rows = np.arange(len(tokens))
        ends = self.bytes.ends[tokens]
        while len(rows):
            going = at < ends
            rows, here, at, ends = rows[going], here[going], at[going], ends[going]
            here, at = self._table[here, self.bytes.buffer[at]], at + 1
            found[rows[self._accepting[here]]] = True
            going = (here >= 0) & ~self._accepting[here]
            rows, here, at, ends = rows[going], here[going], at[going], ends[going]
        return found


@final
class Many:
    """Many of some tokens, as bits: faster to add to a mask than their ids are to set."""

    __slots__ = ("bits",)

    def __init__(self, tokens: Ids, count: int) -> None:
        mask = np.zeros(count, np.bool_)
        mask[tokens] = True
        self.bits: Bits = np.packbits(mask, bitorder="little")


Part = Ids | Many


def compact(tokens: Ids, count: int) -> Part:
    """Some of `count` tokens as they are fastest to put into a mask."""
    return Many(tokens, count) if len(tokens) * _MANY >= count else tokens


def union(parts: Iterable[Part], out: Bools) -> None:
    """Set the tokens of all parts."""
    few: list[Ids] = []
    many: set[Many] = set()
    for part in parts:
        if isinstance(part, Many):
            many.add(part)
        else:
            few.append(part)
    if many:
        bits = many.pop().bits
        if many:
            bits = bits.copy()
            for one in many:
                np.bitwise_or(bits, one.bits, out=bits)
        out |= np.unpackbits(bits, count=len(out), bitorder="little").view(np.bool_)
    if few:
        out[np.concatenate(few)] = True


def _classes(facts: Sequence[tuple[int, ...]]) -> tuple[list[tuple[int, ...]], npt.NDArray[np.int16]]:
    """The distinct facts, and for each state the number of its fact."""
    numbers: dict[tuple[int, ...], int] = {}
    of_state = [numbers.setdefault(fact, len(numbers)) for fact in facts]
    return list(numbers), np.array(of_state, dtype=np.int16)


def _grouped(kinds: npt.NDArray[np.int16]) -> list[tuple[int, npt.NDArray[np.intp]]]:
    """Each kind with the places where it stands."""
    if not len(kinds):
        return []
    order = np.argsort(kinds, kind="stable")
    ordered = kinds[order]
    cuts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    return [(int(kinds[rows[0]]), rows) for rows in np.split(order, cuts)]
