"""The exact set of tokens that a prefix admits: the series of a vocabulary walked by the parser, one step for a node.

Where a group of tokens is decided by terminals alone, it is decided at once. Where a rule asks Γ about an unfinished
or finished name, the names in scope are looked up among the tokens, not the tokens among the names.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Final, final
from weakref import ReferenceType, WeakKeyDictionary, ref

import numpy as np
import numpy.typing as npt

from aufbau.earley.chart import ItemSet
from aufbau.lexer.automaton import LexerAutomaton
from aufbau.lexer.state import Hypothesis, Reader
from aufbau.lookahead import UNTOUCHED, Explorer
from aufbau.named import Names
from aufbau.places import TEXT, Place, Spot
from aufbau.vocabulary.series import Bools, Ended, Ending, Ids, Many, Part, Series, Split, compact, union
from aufbau.vocabulary.vocabulary import Vocabulary

Words = npt.NDArray[np.int32]
_PLANNED: Final = 48_000_000  # bytes of plans kept, for each vocabulary
_KEPT: Final = 64  # lists of names for which a plan keeps what they come to
_NO_TOKENS: Final = np.zeros(0, np.int32)


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheReport:
    """What masks over one vocabulary keep between calls, for one automaton."""

    tokens: int
    states: int  # automaton states whose continuations are kept
    nbytes: int  # of arrays; about, since what was only looked up once is estimated


@final
class Named:
    """What some endings come to for given names: tokens that begin one, and texts that are all that is left of one."""

    __slots__ = ("begun", "whole")

    def __init__(self, begun: Part, whole: list[tuple[int, bytes, Ids]]) -> None:
        self.begun: Final = begun
        self.whole: Final = whole  # what the terminal is, the text, the tokens


@final
class Left:
    """What is left to ask wherever a place is reached."""

    __slots__ = ("ended", "endings", "known", "masks", "named")

    def __init__(self, place: Place, endings: list[Ending], ended: list[Ended]) -> None:
        self.ended: Final = ended
        self.endings: Final[list[Ending]] = []  # asked one by one
        self.named: Final[list[Ending]] = []  # looked up among the names that the place takes
        self.masks: Final[list[int]] = []  # of the terminals of those names
        self.known: dict[tuple[Names, ...], Named] = _UNASKED
        for ending in endings:
            ends = ending.more | ending.accepts
            masks = [mask for mask in place.judging if mask & ends]
            if ending.accepts & place.plain_mask or any(mask in place.endless for mask in masks):
                self.endings.append(ending)
            else:
                self.named.append(ending)
                self.masks.extend([mask for mask in masks if mask not in self.masks])
        if self.named:
            self.known = {}


_UNASKED: Final[dict[tuple[Names, ...], Named]] = {}


@final
class Plan:
    """What a place admits of a split: tokens that are certain, and what depends on where the place is reached."""

    __slots__ = ("below", "here", "tokens")

    def __init__(self, tokens: list[Part], here: Left | None, below: Left | None) -> None:
        self.tokens: Final = tokens
        self.here: Final = here
        self.below: Final = below  # what the calls that the place makes are to be asked


_NOTHING: Final = Plan([], None, None)
_Plans = dict[tuple[Place, Split, bool], Plan]


@final
class Readings:
    """The readings of a vocabulary, and the plans of the places of one explorer."""

    __slots__ = ("_epoch", "_explorer", "_nbytes", "_plans", "series")

    def __init__(self, series: Series) -> None:
        self.series: Final = series
        self._explorer: ReferenceType[Explorer] | None = None
        self._epoch = 0
        self._nbytes = 0
        self._plans: _Plans = {}

    def plans(self, explorer: Explorer) -> _Plans:
        """What is known for the places of this explorer; places that it has forgotten are forgotten here."""
        if self._explorer is None or self._explorer() is not explorer or self._nbytes > _PLANNED:
            self._explorer, self._nbytes = ref(explorer), 0
            self._plans = {}
        elif self._epoch != explorer.epoch:
            self._plans = {key: plan for key, plan in self._plans.items() if not key[0].gone}
        self._epoch = explorer.epoch
        return self._plans

    def packed(self, found: list[Part]) -> list[Part]:
        """The same tokens for keeping: many short arrays become one, the long ones are shared."""
        long: dict[int, Part] = {}
        short: list[Ids] = []
        for part in found:
            if isinstance(part, Many) or len(part) >= 512:
                long[id(part)] = part
            else:
                short.append(part)
        self._nbytes += 400
        return [*long.values(), *([self.joined(short)] if short else [])]

    def joined(self, found: list[Ids]) -> Part:
        """The same tokens as one part, for keeping."""
        tokens = np.unique(np.concatenate(found)) if found else _NO_TOKENS
        part = compact(tokens, self.series.bytes.count)
        self._nbytes += 400 + (part.bits if isinstance(part, Many) else part).nbytes
        return part

    @property
    def nbytes(self) -> int:
        """About what is kept."""
        return self.series.nbytes + self._nbytes


@final
class Masks:
    """The readings that the masks of one oracle use: for each automaton and vocabulary, as long as that lives."""

    __slots__ = ("_readings",)

    def __init__(self) -> None:
        self._readings: WeakKeyDictionary[Vocabulary, dict[LexerAutomaton, Readings]] = WeakKeyDictionary()

    def readings(self, automaton: LexerAutomaton, vocabulary: Vocabulary) -> Readings:
        """The readings of a vocabulary."""
        known = self._readings.setdefault(vocabulary, {})
        found = known.get(automaton)
        if found is None:
            found = known.setdefault(automaton, Readings(Series(automaton, vocabulary.bytes)))
        return found

    def report(self) -> list[CacheReport]:
        """What is kept, a report for each vocabulary and automaton."""
        return [
            CacheReport(tokens=len(vocabulary), states=one.series.states, nbytes=one.nbytes)
            for vocabulary, known in list(self._readings.items())
            for one in list(known.values())
        ]


def fill(
    explorer: Explorer, reader: Reader, readings: Readings, hypotheses: tuple[Hypothesis, ...], out: Bools
) -> None:
    """Say for every token whether some hypothesis admits it."""
    out[:] = False
    with explorer.lock:
        explorer.make_room()
        Walk(explorer, reader, readings).fill(hypotheses, out)


def pack(mask: Bools, out: Words | None = None) -> Words:
    """The mask as 32-bit words, token i being bit i % 32 of word i // 32: what llguidance, xgrammar and vLLM read."""
    words = (len(mask) + 31) // 32
    if out is None:
        out = np.zeros(words, np.int32)
    if out.dtype != np.int32 or out.ndim != 1 or len(out) < words or not out.flags.c_contiguous:
        raise ValueError(
            f"a packed mask over {len(mask)} tokens needs a contiguous row of at least {words} int32, not an array of"
            f" shape {out.shape} and type {out.dtype}"
        )
    bits = np.packbits(mask, bitorder="little")
    row = out.view(np.uint8)
    row[len(bits) :] = 0
    if sys.byteorder == "little":
        row[: len(bits)] = bits
    else:
        padded = np.zeros(words * 4, np.uint8)
        padded[: len(bits)] = bits
        out[:words] = padded.view("<i4")
    return out


@final
class Walk:
    """One mask in the making."""

    __slots__ = ("_explorer", "_plans", "_reader", "_readings", "_series")

    def __init__(self, explorer: Explorer, reader: Reader, readings: Readings) -> None:
        self._explorer = explorer
        self._reader = reader
        self._readings = readings
        self._series = readings.series
        self._plans = readings.plans(explorer)

    def fill(self, hypotheses: tuple[Hypothesis, ...], out: Bools) -> None:
        """Set what some hypothesis admits."""
        for hypothesis in hypotheses:
            kept = [self._series.kept(state) for state in hypothesis.obligations]
            target = np.zeros_like(out) if kept else out
            self._hypothesis(hypothesis, target)
            if kept:
                for mask in kept:
                    target &= mask
                out |= target

    def _hypothesis(self, hypothesis: Hypothesis, out: Bools) -> None:
        series, state = self._series, hypothesis.state
        if not hypothesis.length:
            union(self._fresh(hypothesis.items, hypothesis.gap), out)
            return
        found: list[Part] = []
        for spot in self._explorer.spots(hypothesis.items, self._reader.root):
            found += self._visit(series.inside(state), spot, hypothesis.gap, hypothesis.text)
        union(found, out)
        if not series.automaton.accepts[state]:
            return
        finished = self._reader.finished(hypothesis)
        if finished:
            ended = np.zeros_like(out)
            union([part for items, gap in finished for part in self._fresh(items, gap)], ended)
            ended &= series.kept(state)
            out |= ended

    def _fresh(self, items: ItemSet, gap: bool) -> list[Part]:
        """What can be read from a set of the text where no lexeme is begun."""
        found: list[Part] = []
        for spot in self._explorer.spots(items, self._reader.root):
            found += self._visit(self._series.root.split, spot, gap)
        return found

    def _visit(self, split: Split, spot: Spot, gap: bool, read: bytes = b"") -> list[Part]:
        """The tokens of a split that can be read from a spot; `read` is the lexeme's text before them."""
        plan = self._plans.get((spot.place, split, gap))
        if plan is None:
            return self._first_visit(split, spot, gap, read)
        found = list(plan.tokens)
        if plan.here is not None:
            self._ask(plan.here, spot, gap, read, found)
        if plan.below is not None:
            called = self._explorer.called(spot)
            assert called is not None, "only calls are asked below"
            self._ask(plan.below, called, gap, read, found)
        return found

    def _ask(self, left: Left, spot: Spot, gap: bool, read: bytes, found: list[Part]) -> None:
        for ending in left.endings:
            self._ending(ending, spot, read, found)
        if left.named:
            if read:
                for ending in left.named:
                    self._ending(ending, spot, read, found)
            else:
                self._named(left, spot, found)
        for ended in left.ended:
            self._ended(ended, spot, gap, read, found)

    def _named(self, left: Left, spot: Spot, found: list[Part]) -> None:
        """What is left is the same for the same names, but that they must be able to end."""
        explorer = self._explorer
        names: list[Names] = []
        for mask in left.masks:
            one = explorer.names(spot, mask)
            assert one is not None, "those without an end are asked one by one"
            names.append(one)
        key = tuple(names)
        known = left.known.get(key)
        if known is None:
            if len(left.known) >= _KEPT:
                left.known.clear()
            known = left.known[key] = self._looked_up(left, names)
        found.append(known.begun)
        for accepts, text, tokens in known.whole:
            if explorer.viable(spot, accepts, text, plain=False):
                found.append(tokens)

    def _looked_up(self, left: Left, names: list[Names]) -> Named:
        begun: list[Ids] = []
        whole: dict[tuple[int, bytes], list[Ids]] = {}
        for ending in left.named:
            ends: set[bytes] = set()
            for mask, one in zip(left.masks, names, strict=True):
                if mask & (ending.more | ending.accepts):
                    tokens, texts = one.among(ending.texts, b"")
                    if ending.more & mask and len(tokens):
                        begun.append(tokens)
                    if ending.accepts & mask:
                        ends.update(texts)
            for text in ends:
                tokens = ending.tokens[ending.texts.places(text)]
                whole.setdefault((ending.accepts, text), []).append(tokens)
        return Named(
            self._readings.joined(begun),
            [(accepts, text, np.concatenate(tokens)) for (accepts, text), tokens in whole.items()],
        )

    def _first_visit(self, split: Split, spot: Spot, gap: bool, read: bytes) -> list[Part]:
        """A visit that leaves a plan behind."""
        explorer = self._explorer
        before, explorer.touched = explorer.touched, UNTOUCHED
        alone, endings, ended = self._sorted(split, spot, gap)
        found: list[Part] = []
        here = self._sift(endings, ended, spot, gap, read, spot.level, alone, found)
        below: Left | None = None
        called = explorer.called(spot)
        if called is not None:
            plan = self._plans.get((called.place, split, gap))
            if plan is None:
                self._first_visit(split, called, gap, read)
                plan = self._plans[called.place, split, gap]
            alone += plan.tokens
            if plan.here is not None:
                endings, ended = plan.here.endings + plan.here.named, plan.here.ended
                below = self._sift(endings, ended, called, gap, read, spot.level, alone, found)
        explorer.touched = min(before, explorer.touched)
        if not (alone or here or below):
            self._plans[spot.place, split, gap] = _NOTHING  # as most are
            return found
        alone = self._readings.packed(alone)
        self._plans[spot.place, split, gap] = Plan(alone, here, below)
        return alone + found

    def _sorted(self, split: Split, spot: Spot, gap: bool) -> tuple[list[Part], list[Ending], list[Ended]]:
        """Tokens that only begin a lexeme which is taken whatever its text, and what else the place is to be asked."""
        ignorable, mask = self._reader.ignorable(gap), spot.place.mask
        free = spot.place.free | ignorable
        certain: list[Part] = []
        endings: list[Ending] = []
        for one in split.endings:
            if one.more & free or one.accepts & ignorable:
                certain.append(one.written)
            elif (one.more | one.accepts) & mask:
                endings.append(one)
        return certain, endings, [one for one in split.ended if one.accepts & (mask | ignorable)]

    def _sift(
        self,
        endings: list[Ending],
        ended: list[Ended],
        spot: Spot,
        gap: bool,
        read: bytes,
        level: int,
        alone: list[Part],
        found: list[Part],
    ) -> Left | None:
        """Ask one by one, and add what depends on no spot below a level to `alone`; the others are left to ask."""
        explorer, lowest = self._explorer, self._explorer.touched
        open_endings: list[Ending] = []
        open_ended: list[Ended] = []
        for ending in endings:
            part: list[Part] = []
            explorer.touched = UNTOUCHED
            self._ending(ending, spot, read, part)
            if explorer.touched < level:
                open_endings.append(ending)
            (found if explorer.touched < level else alone).extend(part)
            lowest = min(lowest, explorer.touched)
        for one in ended:
            part = []
            explorer.touched = UNTOUCHED
            self._ended(one, spot, gap, read, part)
            if explorer.touched < level:
                open_ended.append(one)
            (found if explorer.touched < level else alone).extend(part)
            lowest = min(lowest, explorer.touched)
        explorer.touched = lowest
        return Left(spot.place, open_endings, open_ended) if open_endings or open_ended else None

    def _ending(self, ending: Ending, spot: Spot, read: bytes, found: list[Part]) -> None:
        explorer, place = self._explorer, spot.place
        if ending.accepts & place.plain_mask and explorer.viable(spot, ending.accepts, b"", plain=True):
            found.append(ending.written)
            return
        if read:
            explorer.touched = TEXT  # the text read so far is judged
        whole: set[bytes] = set()
        for mask in place.judging:
            if not mask & (ending.more | ending.accepts):
                continue
            names = explorer.names(spot, mask)
            if names is None:
                if ending.more & ending.infinite & mask:
                    found.append(ending.written)  # a binder that can still be fresh
                else:
                    self._one_by_one(ending, spot, read, found)
                return
            tokens, ends = names.among(ending.texts, read)
            if ending.more & mask:
                found.append(tokens)
            if ending.accepts & mask:
                whole.update(ends)
        for text in whole:
            if explorer.viable(spot, ending.accepts, read + text, plain=False):
                found.append(ending.tokens[ending.texts.places(text)])

    def _one_by_one(self, ending: Ending, spot: Spot, read: bytes, found: list[Part]) -> None:
        """Ask for each text, where a binder has only finitely many spellings left."""
        explorer, automaton = self._explorer, self._reader.parser.machine.automaton
        for text in ending.texts.distinct():
            whole, state = read + text, automaton.start
            for byte in whole:
                state = automaton.step(state, byte)
            if explorer.takes(spot, ending.more, state, whole) or (
                ending.accepts and explorer.viable(spot, ending.accepts, whole, plain=False)
            ):
                found.append(ending.tokens[ending.texts.places(text)])

    def _ended(self, ended: Ended, spot: Spot, gap: bool, read: bytes, found: list[Part]) -> None:
        if not (ended.node.split.endings or ended.node.split.ended):
            return  # what follows is no lexeme of the language
        explorer, place = self._explorer, spot.place
        if ended.accepts & self._reader.ignorable(gap):
            once = gap or bool(ended.accepts & self._reader.parser.machine.ignore_once_mask)
            found += self._visit(ended.node.split, spot, once)
        judging = [mask for mask in place.judging if mask & ended.accepts]
        if not judging:
            if ended.accepts & place.plain_mask:
                for after in explorer.after(spot, ended.accepts, b"", plain=True):
                    found += self._visit(ended.node.split, after, False)
            return
        if read:
            explorer.touched = TEXT  # the text read so far is judged
        texts: set[bytes] | None = None if ended.accepts & place.plain_mask else set()
        for mask in judging:
            names = explorer.names(spot, mask)
            if names is None:
                texts = None
            elif texts is not None:
                texts.update(names.among(ended.texts, read)[1])
        for text in ended.texts.distinct() if texts is None else texts:
            node = ended.after(text)
            if node is not None:
                for after in explorer.after(spot, ended.accepts, read + text, plain=False):
                    found += self._visit(node.split, after, False)

