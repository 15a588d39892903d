"""One forward pass for many sequences: their next tokens laid end to end, each attending to its own cache alone.

Nothing is padded and no cache is copied when the company changes: all but attention works on single tokens, so the
tokens of several sequences may share its matrices, and attention is computed for one sequence after the other over
the keys and values that its own `PackedReader` holds. A pass may hold single tokens of some sequences and portions
of the prompts of others.

Whether a model can be read so is asked of its configuration and then tried: `pack` compares the scores with those of
an ordinary pass, and refuses the model where they differ. A window, a state that is carried on, positions that are
scaled by length: such models are read one sequence at a time.

Rounding. A matrix product over one token and one over several may be computed by different routines, whose results
differ in the last bits: then scores depend on the company, by some 1e-5 in float32, and where two tokens are as near
as that the choice may. With `reproducible` every pass is filled up to a number of tokens from which on the results
were found to be equal bit for bit on this machine, whatever else is in the pass.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from agentkit.models.errors import ModelError, ModelLoadError
from agentkit.models.extras import require

Scores = npt.NDArray[np.float32]


class UnpackableError(ModelError):
    """This model must be read one sequence at a time; the message says why."""


# The name under which transformers finds our attention; a model that is packed has it in its configuration.
ATTENTION = "agentkit_packed"
# Tokens of the filler; any that the model knows would do.
_FILLER = 0
# How far packed scores may be from ordinary ones, in standard deviations of the scores: by the bits of the number
# format. What is computed from the wrong keys differs by about one.
_TOLERANCE = {"float32": 0.01, "float64": 0.01}
_WIDE_TOLERANCE = 0.15
# Fewer tokens than these are read rather than copied; a pass costs more for its first tokens.
_WORTHWHILE = 8
# Sequences that are kept for their beginnings after their sessions have been closed.
_RETIRED = 2
# Numbers of tokens that are tried as the least of a reproducible pass.
_LEAST = (1, 2, 4, 8, 16, 32)


class PackedReader:
    """What one sequence has read: its tokens, and their keys and values in each layer."""

    def __init__(self, packing: Packing) -> None:
        self._packing = packing
        self._tokens: list[int] = []
        # Of each layer keys and values of shape (1, heads, capacity, size); valid up to the number of tokens.
        self._held: dict[int, tuple[Any, Any]] = {}

    @property
    def tokens(self) -> Sequence[int]:
        """What the cache holds."""
        return tuple(self._tokens)

    def __len__(self) -> int:
        return len(self._tokens)

    def rewind(self, series: Sequence[int]) -> int:
        """Keep the longest part that `series` begins with, short of its last token; returns how much that is.

        The last token is always read anew, since only reading it gives the scores that follow it.
        """
        limit = max(len(series) - 1, 0)
        del self._tokens[min(_common(self._tokens, series), limit) :]
        if self._packing.share_prefixes:
            self._borrow(series[:limit])
        return len(self._tokens)

    def _borrow(self, series: Sequence[int]) -> None:
        """Copy what another sequence has read of `series` beyond the part held."""
        begun = len(self._tokens)
        other, end = self._packing.longest(series)
        if other is None or end < begun + _WORTHWHILE:
            return
        place = slice(begun, end)
        with self._packing.inference():
            for layer, (keys, values) in other._held.items():
                self.append(layer, keys[:, :, place], values[:, :, place])
        self.commit(series[place])

    def extend(self, tokens: Sequence[int]) -> Scores:
        """Read `tokens` after the ones held; returns the scores of what follows the last of them."""
        return self._packing.read([(self, tokens)])[0]

    def append(self, layer: int, keys: Any, values: Any) -> tuple[Any, Any]:
        """Put keys and values behind the ones held, in one layer; returns all of them.

        They count from `commit` on: after a pass that failed, the reader is what it was.
        """
        begun, end = len(self._tokens), len(self._tokens) + keys.shape[2]
        held = self._held.get(layer)
        if held is None or held[0].shape[2] < end:
            old = held or (None, None)
            held = self._held[layer] = self._grown(old[0], keys, end), self._grown(old[1], values, end)
        for whole, part in zip(held, (keys, values), strict=True):
            whole[:, :, begun:end] = part
        return held[0][:, :, :end], held[1][:, :, :end]

    def _grown(self, held: Any, like: Any, end: int) -> Any:
        """Room for a quarter more than is needed, beginning with what is held."""
        room = like.new_empty((*like.shape[:2], end + max(64, end // 4), like.shape[3]))
        if held is not None:
            room[:, :, : len(self._tokens)] = held[:, :, : len(self._tokens)]
        return room

    def commit(self, tokens: Sequence[int]) -> None:
        """The pass that read `tokens` has succeeded."""
        self._tokens.extend(tokens)


class Packing:
    """A model whose passes may hold several sequences; they run one at a time."""

    def __init__(
        self, model: Any, *, max_batch: int = 1, reproducible: bool = False, share_prefixes: bool = False
    ) -> None:
        """Use `pack`, which asks and tries whether the model can be read so."""
        self.max_batch = max_batch
        self.share_prefixes = share_prefixes
        self._living: weakref.WeakSet[PackedReader] = weakref.WeakSet()
        self._retired: deque[PackedReader] = deque(maxlen=_RETIRED)
        self.portion = portion(model)
        self._model = model
        self._torch = require("torch")
        self._lock = threading.Lock()
        self._least = 1
        if reproducible:
            self._least = self._find_least()

    def reader(self) -> PackedReader:
        """An empty sequence."""
        reader = PackedReader(self)
        if self.share_prefixes:
            self._living.add(reader)
        return reader

    def inference(self) -> Any:
        """The mode of torch in which caches may be written to."""
        return self._torch.inference_mode()

    def retire(self, reader: PackedReader) -> None:
        """A sequence is not used any more; where prefixes are shared, the last few remain to begin others with."""
        if self.share_prefixes and reader not in self._retired:
            self._retired.append(reader)

    def longest(self, series: Sequence[int]) -> tuple[PackedReader | None, int]:
        """Who has read the longest beginning of `series`, and how long that is."""
        common = {reader: _common(reader._tokens, series) for reader in self._living}
        best = max(common, key=lambda reader: common[reader], default=None)
        return best, 0 if best is None else common[best]

    def read(self, parts: Sequence[tuple[PackedReader, Sequence[int]]]) -> list[Scores]:
        """Read tokens after those of several readers, in one pass; the scores of what follows each of them."""
        torch = self._torch
        filler = max(self._least - sum(len(tokens) for _, tokens in parts), 0)
        whole = [*parts, (self.reader(), [_FILLER] * filler)] if filler else parts
        ids = [token for _, tokens in whole for token in tokens]
        positions = [len(reader) + place for reader, tokens in whole for place in range(len(tokens))]
        ends = [int(end) - 1 for end in np.cumsum([len(tokens) for _, tokens in parts])]
        # As many scores as there are tokens at least, since they are a product of matrices too.
        ends += ends[-1:] * (self._least - len(ends))
        device = self._model.device
        with self._lock, self.inference():
            output = self._model(
                input_ids=torch.tensor([ids], device=device),
                position_ids=torch.tensor([positions], device=device),
                # Of the shape that the library takes as it is; our attention has no use for it.
                attention_mask=torch.ones(1, 1, 1, 1, dtype=torch.bool, device=device),
                use_cache=False,
                logits_to_keep=torch.tensor(ends, device=device),
                agentkit_parts=[(reader, len(tokens)) for reader, tokens in whole],
            )
            logits: Scores = output.logits[0].float().cpu().numpy()
        for reader, tokens in parts:
            reader.commit(tokens)
        return list(logits[: len(parts)])

    # What is tried

    def agrees(self) -> bool:
        """Has a pass over two sequences the scores of ordinary passes?"""
        torch = self._torch
        draw = np.random.default_rng(0)
        first, second = (draw.integers(0, self._model.config.vocab_size, size).tolist() for size in (23, 17))
        one, other = self.reader(), self.reader()
        self.read([(one, first[:9]), (other, second[:4])])
        self.read([(other, second[4:5]), (one, first[9:10])])
        packed = self.read([(one, first[10:]), (other, second[5:])])
        with self.inference():
            for series, scores in zip((first, second), packed, strict=True):
                ids = torch.tensor([series], device=self._model.device)
                usual = self._model(input_ids=ids, use_cache=False).logits[0, -1].float().cpu().numpy()
                name = str(self._model.dtype).removeprefix("torch.")
                allowed = _TOLERANCE.get(name, _WIDE_TOLERANCE) * float(usual.std())
                if not np.abs(usual - scores).max() <= allowed:
                    return False
        return True

    def _find_least(self) -> int:
        """The least number of tokens from which on company was found to change no bit."""
        for least in _LEAST:
            first = self._in_company(least)
            if all(np.array_equal(first, self._in_company(size)) for size in (least + 1, 2 * least + 1, 32, 75)):
                return least
        raise ModelLoadError(
            "on this device the scores of a sequence depend on what else is in the pass, in the last bits; leave out"
            " reproducible=True, or load the model with device='cpu' and dtype='float32'"
        )

    def _in_company(self, size: int) -> npt.NDArray[np.float32]:
        """Scores of one sequence, token by token, in passes of `size` tokens of as many sequences."""
        draw = np.random.default_rng(1)
        series = draw.integers(0, self._model.config.vocab_size, 3).tolist()
        reader, others = self.reader(), [self.reader() for _ in range(size - 1)]
        company = [(other, [_FILLER + 1]) for other in others]
        return np.array([self.read([(reader, [token]), *company])[0] for token in series])


def _common(first: Sequence[int], second: Sequence[int]) -> int:
    """How long both begin alike."""
    limit, place = min(len(first), len(second)), 0
    # Slices are compared some thirty times faster than single tokens.
    while place < limit and first[place : place + 64] == second[place : place + 64]:
        place += 64
    return next((i for i in range(place, limit) if first[i] != second[i]), limit)


def portion(model: Any) -> int:
    """Tokens of prompts that one pass should read: enough to be quick, and few enough that nobody waits for long.

    On a CPU 128 tokens take 4.0 ms each and 512 take 4.1 (SmolLM2, one thread).
    """
    return 128 if model.device.type == "cpu" else 512


def pack(model: Any, *, max_batch: int, reproducible: bool = False, share_prefixes: bool = False) -> Packing:
    """A packing of the model. Raises `UnpackableError` where it must be read one sequence at a time.

    Raises `ModelLoadError` where `reproducible` results are asked for and cannot be had on its device.
    """
    if (reason := _obstacle(model)) is not None:
        raise UnpackableError(reason)
    _register()
    usual = model.config._attn_implementation
    model.config._attn_implementation = ATTENTION
    try:
        _try(model)
    except UnpackableError:
        model.config._attn_implementation = usual
        raise
    return Packing(model, max_batch=max_batch, reproducible=reproducible, share_prefixes=share_prefixes)


def _try(model: Any) -> None:
    try:
        agrees = Packing(model).agrees()
    except (AttributeError, IndexError, KeyError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
        # Code that does not hand our arguments on, or lacks what they ask for, may fail in any of these ways.
        raise UnpackableError(f"a pass over two sequences failed: {type(error).__name__}: {error}") from error
    if not agrees:
        raise UnpackableError("a pass over two sequences has other scores than ordinary passes")


def _obstacle(model: Any) -> str | None:
    """Why tokens of several sequences may not share a pass of this model, by its configuration."""
    config = model.config
    if not getattr(model, "_supports_attention_backend", False):
        return "its attention cannot be replaced"
    if config._attn_implementation not in ("sdpa", ATTENTION):
        return f"its attention is {config._attn_implementation!r}, not 'sdpa'"
    if getattr(config, "vocab_size", None) is None:
        return "its configuration has parts, and not one vocabulary"
    layers = getattr(config, "layer_types", None) or ()
    if set(layers) - {"full_attention"}:
        return f"some layers are of the kind {min(set(layers) - {'full_attention'})!r}"
    if not layers and (getattr(config, "sliding_window", None) or getattr(config, "attention_chunk_size", None)):
        return "its attention has a window"
    # The longest sequence would set the scale of all.
    rope = getattr(config, "rope_parameters", None) or {}
    if rope.get("rope_type") in ("dynamic", "longrope"):
        return f"its positions are scaled by length ({rope['rope_type']})"
    return None


def _register() -> None:
    """Make our attention known to transformers: it is the library's own for whoever passes no parts."""
    torch, transformers = require("torch"), require("transformers")
    usual = transformers.modeling_utils.ALL_ATTENTION_FUNCTIONS["sdpa"]
    masks = transformers.masking_utils.ALL_MASK_ATTENTION_FUNCTIONS["sdpa"]

    def attend(
        module: Any,
        query: Any,
        key: Any,
        value: Any,
        mask: Any,
        *,
        agentkit_parts: Sequence[tuple[PackedReader, int]] = (),
        **settings: Any,
    ) -> tuple[Any, None]:
        if not agentkit_parts:
            return usual(module, query, key, value, mask, **settings)  # type: ignore[no-any-return]
        outputs, begun = [], 0
        for reader, size in agentkit_parts:
            place = slice(begun, begun + size)
            held, own = len(reader), None
            keys, values = reader.append(module.layer_idx, key[:, :, place], value[:, :, place])
            if held and size > 1:
                own = torch.ones(size, held + size, dtype=torch.bool, device=query.device).tril(held)[None, None]
            outputs.append(usual(module, query[:, :, place], keys, values, own, **settings)[0])
            begun += size
        return (outputs[0] if len(outputs) == 1 else torch.cat(outputs, 1)), None

    transformers.AttentionInterface.register(ATTENTION, attend)
    transformers.AttentionMaskInterface.register(ATTENTION, masks)
