"""The exact set of tokens that a prefix admits: the series of a vocabulary walked by the parser, one step for a node.

Where a group of tokens is decided by terminals alone, it is decided at once. Where a rule asks Γ about an unfinished
or finished name, the names in scope are looked up among the tokens, not the tokens among the names.
"""

from __future__ import annotations

import sys
from typing import final

import numpy as np
import numpy.typing as npt

from aufbau.beginnings import ALL
from aufbau.earley.chart import ItemSet
from aufbau.lexer.state import Hypothesis, Reader
from aufbau.lookahead import UNTOUCHED, Explorer
from aufbau.named import Names
from aufbau.places import TEXT, Spot, Step
from aufbau.plans import KEPT, NOTHING, Left, Named, Plan, Readings, Whole
from aufbau.vocabulary.series import Bools, Ended, Ending, Ids, Node, Part, Split, union

Words = npt.NDArray[np.int32]


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

    __slots__ = ("_explorer", "_ignorable", "_plans", "_reader", "_readings", "_series")

    def __init__(self, explorer: Explorer, reader: Reader, readings: Readings) -> None:
        self._explorer = explorer
        self._reader = reader
        self._readings = readings
        self._series = readings.series
        self._plans = readings.plans(explorer)
        self._ignorable = reader.ignorable(False)

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
        plan = self._plans.get(spot.place, split, gap)
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
            if len(left.known) >= KEPT:
                left.known.clear()
            known = left.known[key] = self._looked_up(left, names)
        found.append(known.begun)
        if not known.whole:
            return
        gammas = explorer.gammas(spot, left.masks)
        whole = known.by_gammas.get(gammas)
        if whole is None:
            if len(known.by_gammas) >= KEPT:
                known.by_gammas.clear()
            whole = known.by_gammas[gammas] = self._finished(known, spot)
        found.append(whole.certain)
        for step, tokens in whole.steps:
            if explorer.lives(spot, step)[0]:
                found.append(tokens)

    def _finished(self, known: Named, spot: Spot) -> Whole:
        certain: list[Ids] = []
        steps: list[tuple[Step, Ids]] = []
        for accepts, text, tokens in known.whole:
            step = self._explorer.taken(spot, accepts, text)
            if step is not None:
                alive, always = self._explorer.lives(spot, step)
                if not always:
                    steps.append((step, tokens))
                elif alive:
                    certain.append(tokens)
        return Whole(self._readings.joined(certain), steps)

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
        called = explorer.called(spot, split.terminals)
        if called is not None:
            plan = self._plans.get(called.place, split, gap)
            if plan is None:
                self._first_visit(split, called, gap, read)
                plan = self._plans.get(called.place, split, gap)
                assert plan is not None, "a visit leaves one"
            alone += plan.tokens
            if plan.here is not None:
                endings, ended = plan.here.endings + plan.here.named, plan.here.ended
                below = self._sift(endings, ended, called, gap, read, spot.level, alone, found)
        explorer.touched = min(before, explorer.touched)
        if not (alone or here or below):
            self._plans.put(spot.place, split, gap, NOTHING)  # as most are
            return found
        alone = self._readings.packed(alone)
        self._plans.put(spot.place, split, gap, Plan(alone, here, below))
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
        if not ended.node.split.terminals:
            return  # what follows is no lexeme of the language
        explorer, place = self._explorer, spot.place
        if ended.accepts & self._reader.ignorable(gap):
            once = gap or bool(ended.accepts & self._reader.parser.machine.ignore_once_mask)
            found += self._visit(ended.node.split, spot, once)
        judging = [mask for mask in place.judging if mask & ended.accepts]
        if not judging:
            if ended.accepts & place.plain_mask:
                self._go_on(ended.node, spot, ended.accepts, b"", True, found)
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
                self._go_on(node, spot, ended.accepts, read + text, False, found)

    def _go_on(self, node: Node, spot: Spot, accepts: int, text: bytes, plain: bool, found: list[Part]) -> None:
        """Add the tokens that can be read on after a lexeme."""
        split = node.split
        wanted = ALL if split.terminals & self._ignorable else split.terminals
        for after in self._explorer.after(spot, accepts, text, plain=plain, wanted=wanted):
            found += self._visit(split, after, False)
