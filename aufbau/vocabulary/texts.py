"""Parts of tokens, found by their text."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import final

import numpy as np
import numpy.typing as npt

_FACTOR = 0x9E3779B97F4A7C15  # odd, so multiplication loses nothing
_FEW = 48  # parts that are tried one by one rather than looked up
_REMEMBERED = 4096  # texts looked up, for each index
Beginnings = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]  # tokens: begun, whole


@lru_cache(maxsize=8192)
def prefix_hashes(text: bytes) -> tuple[int, ...]:
    """The hashes of the beginnings of a text, the shortest (one byte) first."""
    found, hashes = 0, []
    for byte in text:
        found = (found + byte + 1) * _FACTOR & 0xFFFFFFFFFFFFFFFF
        hashes.append(found)
    return tuple(hashes)


@final
class TextIndex:
    """Looks up the parts `buffer[begin[i]:end[i]]`, i being a place, by their text.

    A sorted array of 64-bit hashes: 12 bytes a part, where a dict of the 60,000 word parts of a 151k vocabulary takes
    9 MB. What a hash finds is compared, so the answer is exact.
    """

    __slots__ = ("_begin", "_buffer", "_end", "_few", "_hashes", "_known", "_order", "tokens")

    def __init__(
        self,
        buffer: npt.NDArray[np.uint8],
        tokens: npt.NDArray[np.int32],
        begin: npt.NDArray[np.int32],
        end: npt.NDArray[np.int32],
    ) -> None:
        self.tokens = tokens
        self._buffer, self._begin, self._end = buffer, begin, end
        self._order: npt.NDArray[np.int32] | None = None
        self._hashes: npt.NDArray[np.uint64] = np.zeros(0, np.uint64)
        self._known: dict[bytes, Beginnings] = {}
        self._few: list[tuple[bytes, npt.NDArray[np.int32]]] | None = None

    def _built(self) -> npt.NDArray[np.int32]:
        if self._order is None:
            hashes = np.zeros(len(self.tokens), np.uint64)
            rows, at, end = np.arange(len(self.tokens)), self._begin, self._end
            while len(rows):
                going = at < end
                rows, at, end = rows[going], at[going], end[going]
                hashes[rows] = (hashes[rows] + self._buffer[at] + np.uint64(1)) * np.uint64(_FACTOR)
                at = at + 1
            order = np.argsort(hashes, kind="stable").astype(np.int32)
            self._hashes = hashes[order]
            self._order = order
        return self._order

    def text(self, place: int) -> bytes:
        """The part at a place."""
        return self._buffer[self._begin[place] : self._end[place]].tobytes()

    def places(self, text: bytes) -> npt.NDArray[np.int32]:
        """The places of the parts with this text."""
        order = self._built()
        key = np.uint64(prefix_hashes(text)[-1]) if text else np.uint64(0)
        low, high = np.searchsorted(self._hashes, key, "left"), np.searchsorted(self._hashes, key, "right")
        return self._checked(order[low:high], text)

    def _checked(self, places: npt.NDArray[np.int32], text: bytes) -> npt.NDArray[np.int32]:
        return places[[self.text(place) == text for place in places.tolist()]] if len(places) else places

    def beginnings(self, texts: Iterable[bytes]) -> list[Beginnings]:
        """For each text, which parts are a beginning of it, and which the whole of it. Remembered by text."""
        wanted = list(texts)
        missing = [text for text in wanted if text not in self._known]
        if missing:
            if len(self._known) + len(missing) > _REMEMBERED:
                self._known.clear()
                missing = wanted
            self._look_up(missing)
        return [self._known[text] for text in wanted]

    def _look_up(self, texts: list[bytes]) -> None:
        order = self._built()
        hashes = [prefix_hashes(text) for text in texts]
        keys = np.array([key for each in hashes for key in each], np.uint64)
        low = np.searchsorted(self._hashes, keys, "left")
        hit = np.zeros(len(keys), np.bool_)
        if len(order):
            hit = self._hashes[np.minimum(low, len(order) - 1)] == keys
        high = np.zeros(len(keys), np.int64)
        high[hit] = np.searchsorted(self._hashes, keys[hit], "right")
        where = np.flatnonzero(hit).tolist()
        first, at = 0, 0
        for text in texts:
            begun: list[npt.NDArray[np.int32]] = []
            whole = self.tokens[:0]
            while at < len(where) and where[at] < first + len(text):
                length = where[at] - first + 1
                tokens = self.tokens[self._checked(order[low[where[at]] : high[where[at]]], text[:length])]
                if length < len(text):
                    begun.append(tokens)
                else:
                    whole = tokens
                at += 1
            first += len(text)
            self._known[text] = (np.concatenate(begun) if begun else self.tokens[:0], whole)

    def few(self) -> list[tuple[bytes, npt.NDArray[np.int32]]] | None:
        """All texts with their tokens, where they are few."""
        if self._few is None and len(self.tokens) <= _FEW:
            self._few = [(text, self.tokens[self.places(text)]) for text in self.distinct()]
        return self._few

    def distinct(self) -> list[bytes]:
        """The texts of the parts, each once."""
        order = self._built()
        if not len(order):
            return []
        firsts = order[np.concatenate([[True], self._hashes[1:] != self._hashes[:-1]])]
        return [self.text(place) for place in firsts.tolist()]
