"""Text that is known ahead, as the tokens that the tokenizer itself would choose.

A model has seen texts cut by its tokenizer. Forced text is therefore cut together with what stands before it, and the
last tokens are left to the model wherever what follows could still merge with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aufbau.vocabulary.vocabulary import Vocabulary


@dataclass(frozen=True, kw_only=True, slots=True)
class FastForward:
    """What to do with the tokens written so far: keep the first `keep`, drop the others, append `append`."""

    keep: int
    append: tuple[int, ...]


def settled(vocabulary: Vocabulary, tokens: Sequence[int]) -> int:
    """How many of the tokens no further text can change.

    A token is open when the text from it to the end is a proper beginning of some spelling: more text could make them
    one token.
    """
    tail = b""
    first_open = len(tokens)
    for place in range(len(tokens) - 1, -1, -1):
        tail = vocabulary.spelling(tokens[place]) + tail
        if len(tail) > vocabulary.longest:
            break
        if vocabulary.begins(tail):
            first_open = place
    return first_open


def fast_forward(
    vocabulary: Vocabulary, encode: Callable[[bytes], Sequence[int]], written: Sequence[int], forced: bytes
) -> FastForward:
    """The tokens after `written` has been followed by forced text; `encode` is the tokenizer, without special tokens.

    Nothing changes where no token more is certain, and where the text can't be cut as it is (it ends inside a
    character, and the tokenizer reads characters only).
    """
    text = b"".join(map(vocabulary.spelling, written))
    tokens = encode(text + forced)
    unchanged = FastForward(keep=len(written), append=())
    if b"".join(map(vocabulary.spelling, tokens)) != text + forced:
        return unchanged
    certain = list(tokens[: settled(vocabulary, tokens)])
    if sum(len(vocabulary.spelling(token)) for token in certain) <= len(text):
        return unchanged
    keep = 0
    while keep < min(len(written), len(certain)) and written[keep] == certain[keep]:
        keep += 1
    return FastForward(keep=keep, append=tuple(certain[keep:]))
