"""Partitions of the scalar values as trees over UTF-8 bytes.

A *block* is the code points that share leading bytes; a node lists what follows each next byte. Blocks that
lie inside one class share their nodes, so a tree is small: `[^"]` has 7 nodes, `\\p{L}` about 280.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import final

# (first lead byte, last lead byte, bits under one lead byte, smallest code point of this length)
_LEADS = ((0xC2, 0xDF, 6, 0x80), (0xE0, 0xEF, 12, 0x800), (0xF0, 0xF4, 18, 0x10000))
_LEAD_BASE = {6: 0xC0, 12: 0xE0, 18: 0xF0}

NO_CLASS = -1


@final
class ClassTree:
    """Which class a character belongs to, as a tree over its UTF-8 bytes.

    A node's runs are (first byte, last byte, child): in a node of depth 1 a child is a class, above that
    another node. `roots` are the runs of lead bytes from 0xC2 on, `ascii` has the class of bytes below 0x80.
    """

    __slots__ = ("_cut", "_cut_class", "_known", "ascii", "classes", "depth", "roots", "runs")

    def __init__(self, cuts: Sequence[int], cut_class: Sequence[int]) -> None:
        """Class `cut_class[i]`, or NO_CLASS, holds from `cuts[i]` up to the next cut; `cuts[0]` is 0."""
        self._cut = cuts
        self._cut_class = cut_class
        self._known: dict[tuple[int, tuple[tuple[int, int, int], ...]], int] = {}
        self.runs: list[tuple[tuple[int, int, int], ...]] = []
        self.depth: list[int] = []
        self.classes: list[tuple[int, ...]] = []
        self.ascii = [self._class_at(code) for code in range(0x80)]
        self.roots: list[tuple[int, int, int]] = []
        for first, last, width, smallest in _LEADS:
            for lead in range(first, last + 1):
                child = self._block((lead - _LEAD_BASE[width]) << width, width, smallest)
                if child != NO_CLASS:
                    _extend(self.roots, lead, child)

    def _class_at(self, code: int) -> int:
        return self._cut_class[bisect_right(self._cut, code) - 1]

    def _block(self, low: int, width: int, smallest: int) -> int:
        """The node for the code points low … low + 2**width - 1 from `smallest` on, or NO_CLASS."""
        end = low + (1 << width)
        if end <= smallest:
            return NO_CLASS  # these have a shorter encoding
        index = bisect_right(self._cut, low) - 1
        if low >= smallest and (index + 1 == len(self._cut) or self._cut[index + 1] >= end):
            return self._uniform(self._cut_class[index], width // 6)
        runs: list[tuple[int, int, int]] = []
        step = width - 6
        for byte in range(0x80, 0xC0):
            start = low + ((byte - 0x80) << step)
            child = self._block(start, step, smallest) if step else self._class_at(start)
            if child != NO_CLASS:
                _extend(runs, byte, child)
        return self._node(width // 6, tuple(runs))

    def _uniform(self, number: int, depth: int) -> int:
        """The node of a block that lies in one class as a whole."""
        if number == NO_CLASS or depth == 0:
            return number
        return self._node(depth, ((0x80, 0xBF, self._uniform(number, depth - 1)),))

    def _node(self, depth: int, runs: tuple[tuple[int, int, int], ...]) -> int:
        if not runs:
            return NO_CLASS
        found = self._known.get((depth, runs))
        if found is not None:
            return found
        number = len(self.runs)
        self._known[depth, runs] = number
        self.runs.append(runs)
        self.depth.append(depth)
        below: set[int] = set()
        for _, _, child in runs:
            if depth == 1:
                below.add(child)
            else:
                below.update(self.classes[child])
        self.classes.append(tuple(sorted(below)))
        return number


def _extend(runs: list[tuple[int, int, int]], byte: int, child: int) -> None:
    """Append a byte, merging it with the run before when that is adjacent and leads to the same child."""
    if runs and runs[-1][2] == child and runs[-1][1] == byte - 1:
        runs[-1] = (runs[-1][0], byte, child)
    else:
        runs.append((byte, byte, child))
