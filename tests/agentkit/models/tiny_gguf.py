"""A GGUF file with random weights and the toy tokenizer, for tests of llama.cpp."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.agentkit.models_toys import CHAT_TEMPLATE

WIDTH, LAYERS, HEADS, INNER, CONTEXT = 32, 2, 4, 64, 512


def write_gguf(path: Path, tokenizer: Any, *, seed: int = 0) -> None:
    """Write a llama of a few thousand weights."""
    import gguf

    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    _tokenizer(writer, tokenizer)
    random = np.random.default_rng(seed)

    def add(name: str, *shape: int) -> None:
        writer.add_tensor(name, (random.standard_normal(shape) * 0.6).astype(np.float32))

    add("token_embd.weight", len(tokenizer), WIDTH)
    add("output.weight", len(tokenizer), WIDTH)
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    for layer in range(LAYERS):
        for norm in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{norm}.weight", np.ones(WIDTH, np.float32))
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"blk.{layer}.{name}.weight", WIDTH, WIDTH)
        add(f"blk.{layer}.ffn_gate.weight", INNER, WIDTH)
        add(f"blk.{layer}.ffn_up.weight", INNER, WIDTH)
        add(f"blk.{layer}.ffn_down.weight", WIDTH, INNER)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _tokenizer(writer: Any, tokenizer: Any) -> None:
    import gguf

    model = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    control = set(tokenizer.all_special_tokens)
    texts = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(texts)
    writer.add_token_types([gguf.TokenType.CONTROL if t in control else gguf.TokenType.NORMAL for t in texts])
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in model["merges"]])
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)
