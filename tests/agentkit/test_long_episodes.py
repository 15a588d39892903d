"""Long episodes: a turn reads only what is new."""

from __future__ import annotations

from itertools import pairwise

import pytest

from benchmarks.turns import climbed, table
from tests.agentkit.models_toys import byte_level_tokenizer, tiny_llama

pytest.importorskip("torch")


def test_a_turn_reads_only_what_is_new() -> None:
    from agentkit.models import TransformersModel

    tokenizer = byte_level_tokenizer()
    model = TransformersModel(tiny_llama(len(tokenizer), context=16_384), tokenizer, name="tiny")
    turns = climbed(model, 5)
    assert turns[0].usage.prefilled_tokens == turns[0].usage.prompt_tokens
    for before, turn in pairwise(turns):
        assert turn.usage.prefilled_tokens <= turn.usage.prompt_tokens - before.usage.prompt_tokens
    assert len(table(turns).splitlines()) == 2 + 5 + 5
