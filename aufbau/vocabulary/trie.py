"""A byte trie over token spellings, held as one sorted array instead of a node per byte."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final


@dataclass(frozen=True, slots=True)
class Node:
    """All spellings that share their first `depth` bytes: the slice `low:high` of the sorted array."""

    low: int
    high: int
    depth: int


@final
class Trie:
    """The spellings of a vocabulary, walked byte by byte; several tokens may share one spelling.

    Sorting the 49,152 spellings of SmolLM2 costs about 30 ms, where a node for each of their bytes costs
    half a second and 50 MB. Empty spellings stand for no text and are left out.
    """

    __slots__ = ("_spellings", "_tokens", "root")

    def __init__(self, spellings: Sequence[bytes]) -> None:
        order = sorted((token for token, text in enumerate(spellings) if text), key=lambda token: spellings[token])
        self._tokens = order
        self._spellings = [spellings[token] for token in order]
        self.root = Node(0, len(order), 0)

    def tokens(self, node: Node) -> Sequence[int]:
        """The tokens spelled exactly by the path to `node`, ascending."""
        end = node.low
        # A spelling sorts before its extensions, so the exact ones stand at the front of the slice.
        while end < node.high and len(self._spellings[end]) == node.depth:
            end += 1
        return self._tokens[node.low : end]

    def children(self, node: Node) -> Iterator[tuple[int, Node]]:
        """Each byte that continues the path, ascending, with the node it leads to."""
        low = node.low + len(self.tokens(node))
        while low < node.high:
            byte = self._spellings[low][node.depth]
            high = bisect_left(self._spellings, byte + 1, low, node.high, key=lambda text: text[node.depth])
            yield byte, Node(low, high, node.depth + 1)
            low = high

    def extends(self, text: bytes) -> bool:
        """Whether some spelling begins with `text` and is longer."""
        place = bisect_right(self._spellings, text)
        return place < len(self._spellings) and self._spellings[place].startswith(text)
