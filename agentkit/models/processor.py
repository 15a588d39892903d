"""`AufbauLogitsProcessor`: the oracle as a logits processor of transformers, Outlines and llama.cpp."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import Any, Final

import numpy as np

from agentkit.models.base import PrefixLike, StopPolicy
from agentkit.models.errors import DeadEndError, HistoryError, ProcessorError
from agentkit.models.masking import from_mlx, masked, native, on_host, only, ranked_on_device, to_mlx
from agentkit.models.rows import Row, Rows
from aufbau.vocabulary import Vocabulary

# Which prompt a row belongs to, and what the row has generated.
_Key = tuple[int, tuple[int, ...]]


class AufbauLogitsProcessor:
    """Leaves to each row of a batch what the oracle admits after the text that the row has generated.

    It goes wherever a callable of token ids and scores goes: `outlines.Generator(model, processor=…)`, an entry of
    transformers' `LogitsProcessorList`, one of llama.cpp's or mlx-lm's. Scores come back in a new array; those past the
    vocabulary (padded embeddings) belong to no token and are refused.

    A row that is complete and can only grow by blanks is left nothing but the stop tokens, so it ends there. A row
    that has ended is padded by its decoder; it keeps its stop tokens, since a row of -inf alone breaks sampling.

    What a row generated is found in its token ids, not in its place in the batch. So rows may change places, be copied
    and go back. Ids that do not go on from those seen last are a new prompt and begin anew, as after `reset`.
    """

    def __init__(
        self,
        prefixes: PrefixLike | Sequence[PrefixLike],
        vocabulary: Vocabulary,
        *,
        stop_policy: StopPolicy = StopPolicy.STRICT,
        stop: Iterable[int] | None = None,
        prompt_lengths: int | Sequence[int] | None = None,
        greedy: bool = False,
        speculative: bool = False,
    ) -> None:
        """`prefixes` is what generated text goes on from: one for all prompts of a batch, or one for each.

        Where there are several rows for a prompt (`num_return_sequences`, beams), they stand side by side, as
        transformers puts them. What differs from the defaults:

        `stop` names the ids at which the decoder really ends, where they are fewer than the vocabulary's.
        `prompt_lengths` says how many ids of a row, padding included, are its prompt; without it, all that the first
        call shows.
        `greedy` leaves only the best admissible token of each row, found without a mask and so much cheaper. It is
        exact where the decoder takes the best one (`do_sample=False`), and wrong where it draws or searches.
        `speculative` is for decoders that ask about rows which they will not keep: beam search, whose spare beams may
        have no probability at all, and assisted decoding. Rows with inadmissible text are then left as they are, and
        a dead end is an error only when no other row of the prompt is left.
        """
        self._starts = (prefixes,) if isinstance(prefixes, PrefixLike) else tuple(prefixes)
        self._rows: Final = Rows(vocabulary, stop_policy=stop_policy, stop=stop)
        self._lengths = prompt_lengths
        self._greedy = greedy
        self._speculative = speculative
        # Seconds spent on finding out what is admissible and on masking, since this was made.
        self.seconds = 0.0
        # What was raised last. llama.cpp calls processors from C, where errors are only printed: so there the scores
        # themselves are changed and the text ends, and this says that it did not end well.
        self.error: Exception | None = None
        if not self._starts:
            raise ProcessorError("there is no prefix to decode from; give one for all prompts, or one for each")
        self.reset()

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokens that the scores are of."""
        return self._rows.vocabulary

    def reset(self) -> None:
        """Forget what was generated; the next call brings a new prompt. Outlines calls this by itself."""
        self._prompt: Any = None
        self._width = 0
        self.error = None
        self._now: dict[_Key, Row] = {}
        self._before: dict[_Key, Row] = {}

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """The scores, with -inf where a token may not follow."""
        if not native(scores):
            return to_mlx(self(np.array(input_ids), from_mlx(scores)))
        begun = perf_counter()
        try:
            # llama.cpp gives one row of each, mlx-lm of the ids alone.
            ids = input_ids[None] if len(input_ids.shape) == 1 else input_ids
            if len(scores.shape) == 1:
                return self._masked(ids, scores[None])[0]
            return self._masked(ids, scores)
        except Exception as error:
            self.error = error
            if isinstance(scores, np.ndarray) and scores.flags.writeable:
                scores[...] = -np.inf
                scores[..., list(self._rows.stop)] = 0.0
            raise
        finally:
            self.seconds += perf_counter() - begun

    # What the rows have generated

    def _masked(self, ids: Any, scores: Any) -> Any:
        size = scores.shape[-1]
        if size < len(self.vocabulary):
            raise ProcessorError(
                f"the model scores {size} tokens, but the vocabulary has {len(self.vocabulary)}; make it from the"
                " tokenizer that belongs to the model"
            )
        if len(ids) != len(scores):
            raise ProcessorError(
                f"there are {len(ids)} rows of token ids but {len(scores)} of scores; give one for each"
            )
        rows = self._reached(ids)
        return self._best(rows, scores) if self._greedy else self._all(rows, scores)

    def _reached(self, ids: Any) -> list[Row]:
        """Where each row stands; what no decoder may do is said at once."""
        count, width = ids.shape
        group, rest = divmod(count, len(self._starts))
        if rest or not group:
            raise ProcessorError(
                f"there are {count} rows but {len(self._starts)} prefixes; give one prefix for all, or one for each"
                " prompt, of which every one has equally many rows"
            )
        lengths = self._begun(ids, count, width)
        shortest = min(lengths)
        reached: dict[_Key, Row] = {}
        rows: list[Row] = []
        for place, tokens in enumerate(ids[:, shortest:].tolist()):
            key = (place // group, tuple(tokens[lengths[place] - shortest :]))
            row = reached.get(key)
            if row is None:
                row = reached[key] = self._found(key)
            if row.lost and not (self._speculative and key[1]):
                raise self._lost(place, key, row)
            rows.append(row)
        self._now, self._before, self._width = reached, self._now, width
        return rows

    def _begun(self, ids: Any, count: int, width: int) -> list[int]:
        """The length of each row's prompt, which is a new one where the ids do not go on from the last ones."""
        held = self._prompt
        goes_on = (
            held is not None
            and len(held) == count
            and held.shape[1] <= width <= self._width + 1
            and bool((ids[:, : held.shape[1]] == held).all())
        )
        given = self._lengths
        lengths = [given] * count if isinstance(given, int) else list(given or ())
        if given is not None and len(lengths) != count:
            # One for each prompt, as the prefixes are.
            lengths = [length for length in lengths for _ in range(count // max(1, len(lengths)))]
            if len(lengths) != count:
                raise ProcessorError(
                    f"there are {count} rows but prompt_lengths={given}; give one length for each prompt"
                )
        if not goes_on:
            self.reset()
            shortest = min(lengths, default=width)
            if max(lengths, default=0) > width:
                raise ProcessorError(
                    f"prompt_lengths={given} is longer than the {width} ids of a row; call it with prompts"
                )
            # The caller may go on writing into the array that it gave.
            self._prompt = ids[:, :shortest] + 0
        return lengths or [self._prompt.shape[1]] * count

    def _found(self, key: _Key) -> Row:
        """The row of a history: held since the last calls, one token further, or fed from its start."""
        for held in (self._now, self._before):
            if key in held:
                return held[key]
        start, tokens = key
        for held in (self._now, self._before):
            if tokens and (parent := held.get((start, tokens[:-1]))) is not None:
                return self._rows.after(parent, tokens[-1])
        return self._rows.replay(Row(self._starts[start]), tokens)

    # What they admit

    def _all(self, rows: list[Row], scores: Any) -> Any:
        mask = np.empty(scores.shape, np.bool_)
        done: dict[int, int] = {}
        for place, row in enumerate(rows):
            # Rows that are one object have one history: beams at their start, several answers to one prompt.
            like = done.setdefault(id(row), place)
            if like != place:
                mask[place] = mask[like]
            elif row.lost:
                mask[place] = True
            elif not self._rows.mask(row, mask[place]):
                self._dead(place, rows)
        return masked(scores, mask)

    def _best(self, rows: list[Row], scores: Any) -> Any:
        chosen: list[int | None] = []
        host = on_host(scores)
        if host is None:
            return self._best_on_device(rows, scores)
        for place, row in enumerate(rows):
            size = len(self.vocabulary)
            best = int(host[place].argmax()) if row.lost else self._rows.best(row, host[place, :size])
            if best is None:
                self._dead(place, rows)
            chosen.append(best)
        return only(scores, chosen)

    def _best_on_device(self, rows: list[Row], scores: Any) -> Any:
        """The same without the scores leaving their device: the best few are tried, then the mask goes there."""
        chosen: list[int | None] = []
        for place, (row, ranked) in enumerate(zip(rows, ranked_on_device(scores), strict=True)):
            best = ranked[0] if row.lost else self._rows.first(row, ranked)
            if best is None:
                mask = np.empty((1, scores.shape[-1]), np.bool_)
                if self._rows.mask(row, mask[0]):
                    best = int(masked(scores[place : place + 1], mask).argmax())
                else:
                    self._dead(place, rows)
            chosen.append(best)
        return only(scores, chosen)

    def _dead(self, place: int, rows: list[Row]) -> None:
        """Nothing may follow this row. That is the end, unless other rows of its prompt go on."""
        group = len(rows) // len(self._starts)
        first = place - place % group
        others = [row for at, row in enumerate(rows[first : first + group], first) if at != place and not row.lost]
        spare = np.empty(len(self.vocabulary), np.bool_)
        if not (self._speculative and any(self._rows.mask(row, spare) for row in others)):
            raise DeadEndError(place, rows[place].prefix.text)

    def _lost(self, place: int, key: _Key, row: Row) -> Exception:
        if not key[1]:
            return DeadEndError(place, row.prefix.text)
        return HistoryError(place, row.prefix.text, key[1])
