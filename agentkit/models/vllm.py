"""vLLM's engine under the oracle: an adapter to the logits processor interface of its V1 engine.

The engine is started with the class by name, and each request says in its `extra_args` what may be written:

    llm = LLM(model, logits_processors=["agentkit.models.vllm:AufbauVllmProcessor"])
    llm.generate(prompt, SamplingParams(extra_args=constraint(grammar="fun", goal="Int -> Int")))

Requests without that entry are left alone. Since an engine serves many, no request can bring it down: what a request
asks is checked before it is admitted, and where nothing may follow its text, the text is ended.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from typing import Any, Final, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from agentkit.models.base import StopPolicy
from agentkit.models.errors import ProcessorError
from agentkit.models.extras import require
from agentkit.models.masking import masked
from agentkit.models.rows import Row, Rows
from aufbau import AufbauError, Grammar, Oracle, Prefix, Verdict
from aufbau.grammar.grammar import shipped
from aufbau.vocabulary import Vocabulary

try:
    _Interface: Any = import_module("vllm.v1.sample.logits_processor").LogitsProcessor
except ModuleNotFoundError:
    # Without vLLM there is no engine to ask whether this is one of its processors.
    _Interface = object

KEY: Final = "aufbau"
"""The entry of `extra_args` that holds a constraint."""

_log = logging.getLogger(__name__)


class Constraint(BaseModel):
    """What a request may write, as plain data, since it goes from process to process."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    # A shipped grammar by name, or the text of one. No paths: requests read no files.
    grammar: str | None = None
    source: str | None = None
    # The arguments of `Oracle.start`.
    context: dict[str, str] = {}
    goal: str | None = None
    symbol: str | None = None
    ambient: dict[str, str] = {}
    # What the prompt already holds of the text.
    text: str = ""
    # Without typing rules.
    syntactic: bool = False
    stop_policy: Literal["strict", "paper"] = "strict"

    @model_validator(mode="after")
    def _one_grammar(self) -> Self:
        if (self.grammar is None) == (self.source is None):
            raise ValueError("a constraint names a shipped grammar, or has the source of one; give one of the two")
        if self.grammar is not None and self.grammar not in shipped():
            raise ValueError(f"there is no shipped grammar {self.grammar!r}; there are {', '.join(shipped())}")
        return self

    def start(self) -> Prefix:
        """The prefix that the request begins with. Raises `AufbauError` for what the grammar does not have."""
        oracle = _oracle(self.grammar, self.source)
        prefix = (oracle.syntactic() if self.syntactic else oracle).start(
            context=self.context, goal=self.goal, symbol=self.symbol, ambient=self.ambient
        )
        return prefix.feed(self.text)


def constraint(**fields: Any) -> dict[str, Any]:
    """The `extra_args` of a request under a constraint; `Constraint` describes the fields."""
    return {KEY: Constraint(**fields).model_dump(exclude_defaults=True)}


@dataclass(frozen=True, slots=True)
class _Request:
    """One constrained request of the running batch."""

    rows: Rows
    row: Row
    # The engine's own list, which grows as the request does.
    written: Sequence[int]
    read: int = 0


class AufbauVllmProcessor(_Interface):  # type: ignore[misc]
    """A logits processor of vLLM's V1 engine; the engine itself makes and calls it."""

    def __init__(self, vllm_config: Any, device: Any, is_pin_memory: bool) -> None:
        """Reads the tokenizer that the engine is configured with."""
        model = vllm_config.model_config
        tokenizer = require("transformers").AutoTokenizer.from_pretrained(
            model.tokenizer, revision=model.tokenizer_revision, trust_remote_code=model.trust_remote_code
        )
        self._vocabulary = Vocabulary.from_tokenizer(tokenizer)
        self._requests: dict[int, _Request] = {}

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Refuse a request whose constraint cannot be used, by `ValueError`; the engine answers with it."""
        asked = _asked(sampling_params)
        if asked is None:
            return
        try:
            prefix = Constraint.model_validate(asked).start()
        except (ValidationError, AufbauError) as error:
            raise ValueError(f"extra_args[{KEY!r}] cannot be used: {error}") from error
        if prefix.verdict is Verdict.LOST:
            raise ValueError(f"extra_args[{KEY!r}] begins with a text that nothing completes: {prefix.explain()}")

    def is_argmax_invariant(self) -> bool:
        """A mask changes which token is the best."""
        return False

    def update_state(self, batch_update: Any) -> None:
        """Follow the requests that leave, join and move within the batch; in this order, as the interface says."""
        if batch_update is None:
            return
        held = self._requests
        for index in batch_update.removed:
            held.pop(index, None)
        for index, params, _prompt, written in batch_update.added:
            # A request may take the place of another.
            held.pop(index, None)
            asked = _asked(params)
            if asked is not None:
                held[index] = self._joined(asked, params, written)
        for one, other, direction in batch_update.moved:
            mover, place = held.pop(one, None), held.pop(other, None)
            if mover is not None:
                held[other] = mover
            if place is not None and direction.name == "SWAP":
                held[one] = place

    def apply(self, logits: Any) -> Any:
        """The scores, with -inf where a token may not follow; in place."""
        if not self._requests:
            return logits
        places = sorted(self._requests)
        mask = np.empty((len(places), logits.shape[-1]), np.bool_)
        for index, out in zip(places, mask, strict=True):
            self._admit(index, out)
        # Only the masks travel to the device.
        logits[places] = masked(logits[places], mask)
        return logits

    def _joined(self, asked: Mapping[str, Any], params: Any, written: Sequence[int]) -> _Request:
        wish = Constraint.model_validate(asked)
        ends = [token for token in self._vocabulary.stop if token in params.all_stop_token_ids]
        rows = Rows(self._vocabulary, stop_policy=StopPolicy(wish.stop_policy), stop=ends or None)
        return _Request(rows, Row(wish.start()), written)

    def _admit(self, index: int, out: Any) -> None:
        request = self._requests[index]
        fresh = list(request.written[request.read :])
        if -1 in fresh:
            raise ProcessorError(
                f"request {index} of the batch has tokens that are not known yet; this engine calls its processors"
                " before it has sampled, start it with async_scheduling=False"
            )
        try:
            row = request.rows.replay(request.row, fresh)
            self._requests[index] = replace(request, row=row, read=request.read + len(fresh))
            if request.rows.mask(row, out):
                return
            why = "nothing may follow"
        except AufbauError as error:
            why = str(error)
        _log.warning("request %d of the batch is ended: %s after %r", index, why, request.row.prefix.text[-60:])
        out[:] = False
        out[list(request.rows.stop)] = True


def _asked(params: Any) -> Any:
    return (params.extra_args or {}).get(KEY)


@lru_cache(maxsize=64)
def _oracle(grammar: str | None, source: str | None) -> Oracle:
    return Oracle(Grammar.load(grammar) if source is None and grammar is not None else Grammar.parse(source or ""))
