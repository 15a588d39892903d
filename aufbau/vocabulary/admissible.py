"""The exact set of tokens that a prefix admits, by walking the vocabulary's trie with the oracle."""

from __future__ import annotations

from typing import Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from aufbau.verdict import Verdict
from aufbau.vocabulary.vocabulary import Vocabulary


@runtime_checkable
class PrefixLike(Protocol):
    """All that a vocabulary needs of an oracle's prefix."""

    @property
    def verdict(self) -> Verdict:
        """What the oracle says of the text consumed so far."""
        ...

    def feed(self, data: bytes, /) -> Self:
        """The prefix after `data`; this one is unchanged."""
        ...


def admissible(prefix: PrefixLike, vocabulary: Vocabulary) -> npt.NDArray[np.bool_]:
    """For every token: is `prefix` not LOST after its spelling? Special tokens are no text, so never.

    Exhaustive, hence exact: the walk leaves out only what lies behind a LOST byte, and LOST is final.
    """
    mask = np.zeros(len(vocabulary), dtype=np.bool_)
    if prefix.verdict is Verdict.LOST:
        return mask
    trie = vocabulary.trie
    pending = [(trie.root, prefix)]
    while pending:
        node, reached = pending.pop()
        for token in trie.tokens(node):
            mask[token] = True
        for byte, child in trie.children(node):
            after = reached.feed(bytes((byte,)))
            if after.verdict is not Verdict.LOST:
                pending.append((child, after))
    return mask
