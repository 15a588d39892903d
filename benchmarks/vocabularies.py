"""The vocabularies that masks are measured over, and texts in their tokens."""

from __future__ import annotations

from base64 import b64encode
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from aufbau.vocabulary import Vocabulary


def smollm2() -> Vocabulary:
    """The default model's vocabulary; obtains the model if need be."""
    from agentkit.models import default_tokenizer

    return Vocabulary.from_tokenizer(default_tokenizer())


def from_file(path: Path) -> Vocabulary:
    """A vocabulary from a tiktoken file or a tokenizer.json."""
    if path.suffix == ".tiktoken":
        return Vocabulary.from_tiktoken(path)
    import transformers

    fast: Any = transformers.PreTrainedTokenizerFast  # it has no types
    return Vocabulary.from_tokenizer(fast(tokenizer_file=str(path)))


def packaged_qwen() -> Path | None:
    """The Qwen vocabulary that the package `dashscope` carries, where that is installed."""
    found = find_spec("dashscope")
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent / "resources" / "qwen.tiktoken"


def spelled_out(vocabulary: Vocabulary, path: Path) -> int:
    """Write the spellings as a tiktoken file, which every engine reads, and give the id of a stop token after them.

    So no engine is charged for a tokenizer library, and all see the same tokens.
    """
    lines = (b"%s %d\n" % (b64encode(text), token) for token, text in enumerate(vocabulary) if text)
    path.write_bytes(b"".join(lines))
    return len(vocabulary)


def greedy(vocabulary: Vocabulary, text: bytes) -> list[int]:
    """The text in tokens, the longest spelling first."""
    ids = {spelling: token for token, spelling in enumerate(vocabulary) if spelling}
    found, at = [], 0
    while at < len(text):
        length = min(vocabulary.longest, len(text) - at)
        while text[at : at + length] not in ids:
            length -= 1
        found.append(ids[text[at : at + length]])
        at += length
    return found
