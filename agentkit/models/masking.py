"""Masks on tensors: booleans where the scores are in main memory, packed words where a device has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from agentkit.models.extras import require
from aufbau.masks import Words, pack

# On a device, how many of the best tokens are looked at before the whole mask is sent there.
LOOKED_AT = 64


def native(scores: Any) -> bool:
    """Whether an array is one of numpy or torch; others (mlx) are worked on as numpy sees them."""
    return isinstance(scores, np.ndarray) or hasattr(scores, "device")


def from_mlx(scores: Any) -> npt.NDArray[np.float32]:
    """The numbers of an mlx array, whose own 16-bit format numpy does not know."""
    return np.array(scores.astype(require("mlx.core").float32))


def to_mlx(scores: npt.NDArray[np.float32]) -> Any:
    """An array of mlx with these numbers."""
    return require("mlx.core").array(scores)


def masked(scores: Any, mask: npt.NDArray[np.bool_]) -> Any:
    """The scores (of a batch, numpy or torch) with -inf where the mask of the same shape is False."""
    if isinstance(scores, np.ndarray):
        return np.where(mask, scores, scores.dtype.type(-np.inf))
    torch = require("torch")
    if scores.device.type == "cpu":
        return scores.masked_fill(torch.from_numpy(~mask), -torch.inf)
    return masked_by_words(scores, packed(mask))


def packed(mask: npt.NDArray[np.bool_]) -> Words:
    """A batch of masks as words, token i of a row being bit i % 32 of its word i // 32."""
    words = np.empty((len(mask), (mask.shape[1] + 31) // 32), np.int32)
    for row, out in zip(mask, words, strict=True):
        pack(row, out)
    return words


def masked_by_words(scores: Any, words: Words) -> Any:
    """The same as `masked`, computed where the scores are: only the words travel, an eighth of a byte for a token."""
    torch = require("torch")
    there = sent(torch.from_numpy(words), scores.device)
    places = torch.arange(32, dtype=torch.int32, device=scores.device)
    bits = (there.unsqueeze(-1) >> places).bitwise_and_(1).flatten(1)[:, : scores.shape[-1]]
    return scores.masked_fill(bits == 0, -torch.inf)


def sent(tensor: Any, device: Any) -> Any:
    """A tensor on a device; from pinned memory where it is a GPU, so that nothing waits for the copy."""
    if device.type == "cuda":
        # Pinned anew each time: the allocator keeps a block until the copies out of it are done.
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def on_host(scores: Any) -> npt.NDArray[np.floating[Any]] | None:
    """A batch of scores as numpy sees it, without a copy where that is possible; None where a device has them."""
    if isinstance(scores, np.ndarray):
        return scores
    if scores.device.type != "cpu":
        return None
    wide = scores.float() if scores.dtype is require("torch").bfloat16 else scores
    found: npt.NDArray[np.floating[Any]] = wide.detach().numpy()
    return found


def ranked_on_device(scores: Any) -> list[list[int]]:
    """For each row of a batch its best tokens by falling score; only their ids leave the device."""
    ids: list[list[int]] = scores.topk(min(LOOKED_AT, scores.shape[-1]), dim=-1).indices.tolist()
    return ids


def only(scores: Any, chosen: list[int | None]) -> Any:
    """The scores with -inf at all but one token of each row; at all of them where it is None."""
    if isinstance(scores, np.ndarray):
        alone = np.full_like(scores, -np.inf)
        for row, token in enumerate(chosen):
            if token is not None:
                alone[row, token] = scores[row, token]
        return alone
    torch = require("torch")
    tokens = sent(torch.tensor([[0 if token is None else token] for token in chosen]), scores.device)
    kept = scores.gather(1, tokens)
    if None in chosen:
        empty = sent(torch.tensor([[token is None] for token in chosen]), scores.device)
        kept = kept.masked_fill(empty, -torch.inf)
    return torch.full_like(scores, -torch.inf).scatter_(1, tokens, kept)
