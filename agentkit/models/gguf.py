"""GGUF files as plain `transformers` models: dequantised to float32, with the tokenizer of the file."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentkit.models.extras import require

# Enough of a file to hold the key that names its pre-tokenizer, which stands before the token list.
_HEAD_BYTES = 1 << 16
_PRE_KEY = b"tokenizer.ggml.pre"
_STRING = 8  # the GGUF value type of a string


def read_gguf(path: Path, progress: Callable[[float], None] | None = None) -> tuple[Any, Any]:
    """Load the model in float32, which holds every quantised weight exactly, and its tokenizer.

    `progress` is told which part of the tensors is dequantised.
    """
    transformers = require("transformers")
    torch = require("torch")
    for package in ("gguf", "accelerate"):
        require(package)
    where: dict[str, Any] = {"gguf_file": path.name, "local_files_only": True}
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(path.parent), **where)
    if pre_tokenizer_name(path) == "smollm":
        _split_digits(tokenizer)
    with _tensors_reported(progress or (lambda _part: None)):
        loaded = transformers.AutoModelForCausalLM.from_pretrained(str(path.parent), dtype=torch.float32, **where)
    return _plain(loaded), tokenizer


def pre_tokenizer_name(path: Path) -> str | None:
    """The name of the pre-tokenizer that the file asks for; None where it names none."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    place = head.find(_PRE_KEY)
    if place < 0:
        return None
    place += len(_PRE_KEY)
    kind, length = struct.unpack_from("<IQ", head, place)
    if kind != _STRING:
        return None
    return head[place + 12 : place + 12 + length].decode()


@contextmanager
def _tensors_reported(progress: Callable[[float], None]) -> Iterator[None]:
    """Take the place of the bar that transformers draws here whatever its own setting for bars says."""
    module = require("transformers.modeling_gguf_pytorch_utils")
    bar = getattr(module, "tqdm", None)
    if bar is None:
        yield
        return

    def reported(tensors: Sequence[Any], **_settings: Any) -> Iterator[Any]:
        for place, tensor in enumerate(tensors):
            progress(place / len(tensors))
            yield tensor

    module.tqdm = reported
    try:
        yield
    finally:
        module.tqdm = bar


def _split_digits(tokenizer: Any) -> None:
    """Read each digit alone, as the model was trained; transformers cuts every byte-level file like GPT-2.

    The difference shows where white space stands before a digit: "\\n    12" must keep the four spaces
    together.
    """
    pre = require("tokenizers").pre_tokenizers
    tokenizer.backend_tokenizer.pre_tokenizer = pre.Sequence(
        [pre.Digits(individual_digits=True), pre.ByteLevel(add_prefix_space=False)]
    )


def _plain(loaded: Any) -> Any:
    """The same weights without the marks of quantisation, with which transformers refuses to save a model."""
    settings = {key: value for key, value in loaded.config.to_dict().items() if key != "quantization_config"}
    config = type(loaded.config).from_dict(settings)
    model = require("transformers").AutoModelForCausalLM.from_config(config, dtype=loaded.dtype)
    model.load_state_dict(loaded.state_dict())
    model.generation_config = loaded.generation_config
    return model
