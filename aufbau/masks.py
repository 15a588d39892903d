"""The exact set of tokens that a prefix admits: the series of a vocabulary walked by the parser, one step for a node.

Where a group of tokens is decided by terminals alone, it is decided at once. Where a rule asks Γ about an unfinished
or finished name, the names in scope are looked up among the tokens, not the tokens among the names.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from aufbau.lexer.automaton import LexerAutomaton
from aufbau.lexer.state import Hypothesis
from aufbau.lookahead import Explorer, Spot
from aufbau.vocabulary.series import Bools, Ended, Ending, Series, Split
from aufbau.vocabulary.vocabulary import Vocabulary

Words = npt.NDArray[np.int32]


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheReport:
    """What masks over one vocabulary keep between calls, for one automaton."""

    tokens: int
    states: int  # automaton states whose continuations are kept
    nbytes: int  # of arrays; about, since what was only looked up once is estimated


@final
class Masks:
    """The series that the masks of one oracle use: one for each automaton and vocabulary, as long as that lives."""

    __slots__ = ("_series",)

    def __init__(self) -> None:
        self._series: WeakKeyDictionary[Vocabulary, dict[LexerAutomaton, Series]] = WeakKeyDictionary()

    def series(self, automaton: LexerAutomaton, vocabulary: Vocabulary) -> Series:
        """The readings of a vocabulary."""
        known = self._series.setdefault(vocabulary, {})
        found = known.get(automaton)
        if found is None:
            found = known.setdefault(automaton, Series(automaton, vocabulary.bytes))
        return found

    def report(self) -> list[CacheReport]:
        """What is kept, a report for each vocabulary and automaton."""
        return [
            CacheReport(tokens=len(vocabulary), states=series.states, nbytes=series.nbytes)
            for vocabulary, known in list(self._series.items())
            for series in list(known.values())
        ]


def fill(explorer: Explorer, series: Series, hypotheses: tuple[Hypothesis, ...], out: Bools) -> None:
    """Say for every token whether some hypothesis admits it."""
    out[:] = False
    with explorer.lock:
        explorer.make_room()
        Walk(explorer, series).fill(hypotheses, out)


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

    __slots__ = ("_explorer", "_reader", "_series")

    def __init__(self, explorer: Explorer, series: Series) -> None:
        self._explorer = explorer
        self._reader = explorer.reader
        self._series = series

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
        explorer, series = self._explorer, self._series
        spot = explorer.spot(hypothesis.items)
        if not hypothesis.length:
            self._visit(series.root.split, spot, hypothesis.gap, b"", out)
            return
        self._visit(series.inside(hypothesis.state), spot, hypothesis.gap, hypothesis.text, out)
        if not series.automaton.accepts[hypothesis.state]:
            return
        finished = self._reader.finished(hypothesis)
        if finished:
            ended = np.zeros_like(out)
            for items, gap in finished:
                self._visit(series.root.split, explorer.spot(items), gap, b"", ended)
            ended &= series.kept(hypothesis.state)
            out |= ended

    def _visit(self, split: Split, spot: Spot, gap: bool, read: bytes, out: Bools) -> None:
        """Set the tokens of a split that can be read from a place; `read` is the lexeme's text before them."""
        items, ignorable = spot.place.items, self._reader.ignorable(gap)
        free = items.free_mask | ignorable
        for ending in split.endings:
            if ending.more & free or ending.accepts & ignorable:
                out[ending.tokens] = True
            elif (ending.more | ending.accepts) & items.mask:
                self._ending(ending, spot, gap, read, out)
        for ended in split.ended:
            if ended.accepts & ignorable:
                once = gap or bool(ended.accepts & self._reader.parser.machine.ignore_once_mask)
                self._visit(ended.node.split, spot, once, b"", out)
            if ended.accepts & items.mask:
                self._ended(ended, spot, read, out)

    def _ending(self, ending: Ending, spot: Spot, gap: bool, read: bytes, out: Bools) -> None:
        explorer = self._explorer
        if ending.accepts & spot.place.plain_mask:
            text = read + ending.texts.text(0)
            if explorer.viable(spot, ending.accepts, text, plain=True):
                out[ending.tokens] = True
                return
        whole: set[bytes] = set()
        for mask in spot.place.judging:
            if not mask & (ending.more | ending.accepts):
                continue
            names = explorer.names(spot.place, mask)
            if names is None:
                if ending.more & ending.infinite & mask:
                    out[ending.tokens] = True  # a binder that can still be fresh
                else:
                    self._one_by_one(ending, spot, gap, read, out)
                return
            tokens, ends = names.among(ending.texts, read)
            if ending.more & mask:
                out[tokens] = True
            if ending.accepts & mask:
                whole.update(ends)
        for text in whole:
            if explorer.viable(spot, ending.accepts, read + text, plain=False):
                out[ending.tokens[ending.texts.places(text)]] = True

    def _one_by_one(self, ending: Ending, spot: Spot, gap: bool, read: bytes, out: Bools) -> None:
        """Ask for each text, where a binder has only finitely many spellings left."""
        automaton = self._reader.parser.machine.automaton
        for text in ending.texts.distinct():
            hypothesis: Hypothesis | None = None
            state = automaton.start
            for byte in read + text:
                state = automaton.step(state, byte)
                hypothesis = Hypothesis(spot.place.items, state, 0, gap, (), hypothesis, byte)
            if hypothesis is not None and self._reader.hopeful(hypothesis):
                out[ending.tokens[ending.texts.places(text)]] = True

    def _ended(self, ended: Ended, spot: Spot, read: bytes, out: Bools) -> None:
        explorer = self._explorer
        if not (ended.node.split.endings or ended.node.split.ended):
            return  # what follows is no lexeme of the language
        judging = [mask for mask in spot.place.judging if mask & ended.accepts]
        if not judging:
            after = explorer.after(spot, ended.accepts, read + ended.texts.text(0), plain=True)
            if after is not None:
                self._visit(ended.node.split, after, False, b"", out)
            return
        texts: set[bytes] | None = set()
        if ended.accepts & spot.place.plain_mask:
            texts = None
        for mask in judging:
            names = explorer.names(spot.place, mask)
            if names is None:
                texts = None
            elif texts is not None:
                texts.update(names.among(ended.texts, read)[1])
        for text in ended.texts.distinct() if texts is None else texts:
            node = ended.after(text)
            after = explorer.after(spot, ended.accepts, read + text, plain=False)
            if node is not None and after is not None:
                self._visit(node.split, after, False, b"", out)
