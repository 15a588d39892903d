"""Small prefixes written by hand, a tiny random Llama and its tokenizer: what the tests of models share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentkit.models import Message
from aufbau.verdict import Verdict
from aufbau.witness import Outcome, Witness

HELLO = [Message(role="user", content="hello")]


@dataclass(frozen=True, slots=True)
class Brackets:
    """One balanced group such as `(a[é]b)`, at most four deep, then nothing; bytes decide, even in `é`."""

    text: bytes = b""
    # Closing brackets that are due, and the second byte of `é` where its first has been read.
    due: bytes = b""
    lost: bool = False

    @property
    def verdict(self) -> Verdict:
        if self.lost:
            return Verdict.LOST
        return Verdict.SATISFIED if self.text and not self.due else Verdict.LIVE

    @property
    def extensible(self) -> bool:
        return not self.lost and self.verdict is not Verdict.SATISFIED

    def feed(self, data: bytes, /) -> Brackets:
        state = self
        for byte in data:
            state = state._byte(byte)
        return state

    def try_feed(self, data: bytes, /) -> Verdict:
        return self.feed(data).verdict

    def _byte(self, byte: int) -> Brackets:
        text, one, closers = self.text + bytes((byte,)), bytes((byte,)), {b"(": b")", b"[": b"]"}
        if self.lost or (self.text and not self.due):
            return Brackets(text, self.due, True)
        if self.due[-1:] == one:
            return Brackets(text, self.due[:-1])
        if self.due[-1:] != b"\xa9" and one in closers and len(self.due) < 4:
            return Brackets(text, self.due + closers[one])
        if self.due and self.due[-1:] != b"\xa9":
            if one == b"\xc3":
                return Brackets(text, self.due + b"\xa9")
            if one.isalpha():
                return Brackets(text, self.due)
        return Brackets(text, self.due, True)


@dataclass(frozen=True, slots=True)
class Digits:
    """One to four digits: SATISFIED from the first on, and extensible up to the third."""

    text: bytes = b""

    @property
    def verdict(self) -> Verdict:
        if not self.text:
            return Verdict.LIVE
        return Verdict.SATISFIED if self.text.isdigit() and len(self.text) <= 4 else Verdict.LOST

    @property
    def extensible(self) -> bool:
        return len(self.text) < 4 and self.verdict is not Verdict.LOST

    def feed(self, data: bytes, /) -> Digits:
        return Digits(self.text + data)

    def try_feed(self, data: bytes, /) -> Verdict:
        return self.feed(data).verdict


@dataclass(frozen=True, slots=True)
class Nothing:
    """A prefix that is not lost and admits no byte at all."""

    text: bytes = b""

    @property
    def verdict(self) -> Verdict:
        return Verdict.LOST if self.text else Verdict.LIVE

    @property
    def extensible(self) -> bool:
        return False

    def feed(self, data: bytes, /) -> Nothing:
        return Nothing(self.text + data)

    def try_feed(self, data: bytes, /) -> Verdict:
        return self.feed(data).verdict


@dataclass(frozen=True, slots=True)
class Counted:
    """Some `a`s, then a `b`; a witness is only known from some length on, and with `trap` an `x` is a dead end."""

    text: bytes = b""
    known_from: int = 0
    trap: bool = False

    @property
    def verdict(self) -> Verdict:
        body = self.text.rstrip(b"x") if self.trap else self.text
        if body.strip(b"a") or (self.trap and self.text.count(b"x") > 1):
            ended = body.endswith(b"b") and not body[:-1].strip(b"a") and body == self.text
            return Verdict.SATISFIED if ended else Verdict.LOST
        return Verdict.LIVE

    @property
    def extensible(self) -> bool:
        return self.verdict is Verdict.LIVE

    def feed(self, data: bytes, /) -> Counted:
        return Counted(self.text + data, self.known_from, self.trap)

    def try_feed(self, data: bytes, /) -> Verdict:
        return self.feed(data).verdict

    def witness(self, max_bytes: int, max_steps: int, *, prove: bool = True) -> Witness:
        if self.verdict is Verdict.SATISFIED:
            return Witness(outcome=Outcome.FOUND, text=b"", reason="")
        if len(self.text) < self.known_from or b"x" in self.text:
            return Witness(outcome=Outcome.UNKNOWN, text=None, reason="too dark to see")
        return Witness(outcome=Outcome.FOUND, text=b"b", reason="")


CORPUS = [
    "(a) [b] ((a)) ([a][b]) (ab[ba]ab) (é[é]) hello 12 345 6789",
    "the cat (sat [on] the) mat, naïve café; ((())) [[[]]] )) ]] ([])",
    "user assistant system hello world 0123456789 ab ba aa bb ((ab)(ba))",
] * 4
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def byte_level_tokenizer(vocab_size: int = 400) -> Any:
    """A byte-level BPE tokenizer trained on the toy corpus, with ChatML's tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    wrap: Any = PreTrainedTokenizerFast
    fast = wrap(tokenizer_object=tokenizer, eos_token="<|im_end|>")
    fast.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|endoftext|>"]})
    fast.chat_template = CHAT_TEMPLATE
    return fast


def tiny_llama(vocab_size: int, *, seed: int = 0, context: int = 4096) -> Any:
    """Two layers of random weights, large enough that its preferences differ clearly from one text to another."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocab_size,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        initializer_range=0.6,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    model: Any = LlamaForCausalLM(config)
    return model.eval()
