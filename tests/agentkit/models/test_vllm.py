"""The adapter to vLLM, driven as its engine drives it: requests that join, leave and change places in the batch.

The updates come from types of the same form as vLLM declares them; where its wheel is there (the environment variable
AUFBAU_VLLM_WHEEL names it), from its own modules, which are loaded without the rest of it.
"""

from __future__ import annotations

import importlib.util
import inspect
import logging
import os
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import anyio
import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from agentkit.models import Message, PrefixLike, Sampling, StopPolicy, TransformersModel
from agentkit.models import vllm as adapter
from agentkit.models.errors import ProcessorError
from agentkit.models.prompt import prompt_tokens
from agentkit.models.vllm import AufbauVllmProcessor, Constraint, constraint
from tests.agentkit.models_toys import byte_level_tokenizer, tiny_llama

WHEEL = os.environ.get("AUFBAU_VLLM_WHEEL", "")
INTERFACE = "vllm.v1.sample.logits_processor"
BUDGET = 10
TOKENIZER = byte_level_tokenizer()
torch.set_num_threads(1)


class Move(Enum):
    """As `MoveDirectionality` of vLLM."""

    UNIDIRECTIONAL = 1
    SWAP = 2


@dataclass(frozen=True)
class Update:
    """As `BatchUpdate` of vLLM."""

    batch_size: int
    removed: Sequence[int]
    added: Sequence[tuple[int, Any, list[int] | None, list[int]]]
    moved: Sequence[tuple[int, int, Any]]


@dataclass
class Params:
    """What the adapter reads of vLLM's `SamplingParams`."""

    extra_args: dict[str, Any] | None = None
    all_stop_token_ids: set[int] = field(default_factory=set)


def unpacked(name: str) -> ModuleType:
    """One module of the wheel, by its path below the interface; what it imports must be there already."""
    with zipfile.ZipFile(WHEEL) as wheel:
        source = wheel.read(f"{INTERFACE.replace('.', '/')}/{name}.py").decode()
    module = ModuleType(f"{INTERFACE}.{name}")
    sys.modules[module.__name__] = module
    exec(compile(source, f"{name}.py", "exec"), module.__dict__)
    return module


@pytest.fixture
def declared() -> Iterator[SimpleNamespace]:
    """The interface that vLLM declares: its own source, with stand-ins for what it takes from the rest of vLLM."""
    if not Path(WHEEL).is_file():
        pytest.skip("vLLM's wheel is not here; AUFBAU_VLLM_WHEEL names the file (pip download --no-deps vllm)")
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "vllm"}
    try:
        for name in ("vllm", "vllm.v1", "vllm.v1.sample", INTERFACE):
            sys.modules[name] = ModuleType(name)
        sys.modules["vllm"].SamplingParams = Params  # type: ignore[attr-defined]
        interface, state = unpacked("interface"), unpacked("state")
        sys.modules[INTERFACE].LogitsProcessor = interface.LogitsProcessor  # type: ignore[attr-defined]
        # Ours anew, as the engine imports it by name.
        spec = importlib.util.spec_from_file_location("adapter_under_vllm", adapter.__file__)
        assert spec is not None
        assert spec.loader is not None
        ours = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = ours
        spec.loader.exec_module(ours)
        yield SimpleNamespace(interface=interface, state=state, ours=ours)
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] in ("vllm", "adapter_under_vllm")]:
            del sys.modules[name]
        sys.modules.update(before)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("tokenizer")
    TOKENIZER.save_pretrained(path)
    return path


def made(kind: Any, folder: Path) -> Any:
    config = SimpleNamespace(tokenizer=str(folder), tokenizer_revision=None, trust_remote_code=False)
    return kind(SimpleNamespace(model_config=config), torch.device("cpu"), False)


class Engine:
    """A batch as the V1 engine keeps one: without holes, joined and left at any step, its rows moved about."""

    def __init__(self, model: TransformersModel, processor: Any, build: Callable[..., Any], move: Any) -> None:
        self.model = model
        self.processor = processor
        self.build = build
        self.move = move
        self.batch: list[tuple[list[int], list[int], Params]] = []
        self.waiting: list[tuple[str, Params]] = []
        self.random = np.random.default_rng(0)

    def run(self, asked: Sequence[tuple[str, Params]]) -> dict[str, list[int]]:
        """The tokens that each prompt was answered with."""
        self.waiting = list(asked)
        answers: dict[str, list[int]] = {}
        while self.waiting or self.batch:
            over = [i for i, (_, written, _) in enumerate(self.batch) if len(written) >= BUDGET or self._ended(written)]
            added, moved = [], []
            # One joins at a time. A place that is taken again at once is not told of as left.
            if self.waiting:
                prompt, params = self.waiting.pop(0)
                tokens = prompt_tokens(TOKENIZER, [Message(role="user", content=prompt)], "")
                written: list[int] = []
                answers[prompt] = written
                index = over.pop(0) if over else len(self.batch)
                self.batch[index : index + 1] = [(tokens, written, params)]
                added.append((index, params, tokens, written))
            removed = sorted(over, reverse=True)
            for hole in removed:
                last = len(self.batch) - 1
                if hole != last:
                    moved.append((last, hole, self.move.UNIDIRECTIONAL))
                    self.batch[hole] = self.batch[last]
                self.batch.pop()
            if len(self.batch) > 1 and self.random.integers(2):
                one, other = (int(i) for i in self.random.choice(len(self.batch), 2, replace=False))
                moved.append((one, other, self.move.SWAP))
                self.batch[one], self.batch[other] = self.batch[other], self.batch[one]
            changes = {"removed": removed, "added": added, "moved": moved}
            update = self.build(batch_size=len(self.batch), **changes) if any(changes.values()) else None
            self.processor.update_state(update)
            self._step()
        return answers

    def _ended(self, written: list[int]) -> bool:
        return bool(written) and written[-1] in self.model.vocabulary.stop

    def _step(self) -> None:
        if not self.batch:
            return
        with torch.inference_mode():
            rows = [
                self.model._model(torch.tensor([tokens + written])).logits[0, -1] for tokens, written, _ in self.batch
            ]
            scores = self.processor.apply(torch.stack(rows))
        for (_, written, _), row in zip(self.batch, scores, strict=True):
            written.append(int(row[: len(self.model.vocabulary)].argmax()))


def alone(model: TransformersModel, prompt: str, start: PrefixLike | None) -> list[int]:
    """What our own decoder answers."""

    async def main() -> list[int]:
        result = await model.session().generate(
            [Message(role="user", content=prompt)],
            prefix=start,
            sampling=Sampling(),
            max_tokens=BUDGET,
            stop_policy=StopPolicy.STRICT,
        )
        return [record.token for record in result.tokens if record.token is not None and record.text]

    return anyio.run(main)


FIELDS: dict[str, dict[str, Any] | None] = {
    "hello": {"grammar": "fun", "context": {"n": "Int"}, "goal": "Int -> Int"},
    "the cat sat": None,
    "12 345": {"grammar": "fun", "goal": "Bool", "syntactic": True},
    "(ab)": {"source": "Word ::= /[ab]+/\nWords ::= Word | Word Words\n"},
    "mat [on] the mat": {"grammar": "stlc", "goal": "A -> A"},
    "again hello": {"grammar": "fun", "goal": "Int"},
}


def check(model: TransformersModel, processor: Any, build: Callable[..., Any], move: Any) -> None:
    ends = set(model.vocabulary.stop)
    asked = [(p, Params(constraint(**fields) if fields else None, ends)) for p, fields in FIELDS.items()]
    for _, params in asked:
        processor.validate_params(params)
    answers = Engine(model, processor, build, move).run(asked)
    for prompt, fields in FIELDS.items():
        start = Constraint(**fields).start() if fields else None
        tokens = [token for token in answers[prompt] if token not in model.vocabulary.special]
        assert tokens == alone(model, prompt, start), prompt


def tiny() -> TransformersModel:
    return TransformersModel(tiny_llama(len(TOKENIZER) + 13), TOKENIZER, name="tiny")


def test_a_moving_batch_is_followed(folder: Path) -> None:
    check(tiny(), made(AufbauVllmProcessor, folder), Update, Move)


def test_the_declared_interface(declared: SimpleNamespace, folder: Path) -> None:
    base, ours = declared.interface.LogitsProcessor, declared.ours.AufbauVllmProcessor
    assert issubclass(ours, base)
    for name in (*base.__abstractmethods__, "validate_params"):
        theirs = list(inspect.signature(getattr(base, name)).parameters)
        assert list(inspect.signature(getattr(ours, name)).parameters) == theirs, name
    assert [f for f in declared.interface.BatchUpdate.__dataclass_fields__] == list(Update.__dataclass_fields__)
    assert set(Move.__members__) == set(declared.interface.MoveDirectionality.__members__)

    def build(*, batch_size: int, **changes: Any) -> Any:
        return declared.state.BatchUpdateBuilder(**changes).get_and_reset(batch_size)

    processor = made(ours, folder)
    assert processor.is_argmax_invariant() is False
    assert list(declared.state.LogitsProcessors([processor]).all) == [processor]
    check(tiny(), processor, build, declared.interface.MoveDirectionality)


REFUSED: list[tuple[Any, str]] = [
    ({"grammar": "no such"}, "no shipped grammar"),
    ({"grammar": "/etc/passwd"}, "no shipped grammar"),
    ({}, "give one of the two"),
    ({"grammar": "fun", "source": "a ::= 'b'"}, "give one of the two"),
    ({"grammar": "fun", "goal": "Nope"}, "goal"),
    ({"source": "Words ::= Word+"}, "unexpected"),
    ({"grammar": "fun", "temperature": 1}, "temperature"),
    ({"grammar": "fun", "text": "let 1"}, "nothing completes"),
    ("fun", "cannot be used"),
]


@pytest.mark.parametrize(("asked", "words"), REFUSED)
def test_what_cannot_be_used_is_refused_before_it_runs(asked: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        AufbauVllmProcessor.validate_params(Params({"aufbau": asked}))


@pytest.mark.parametrize("extra", [None, {}, {"other": 1}])
def test_other_requests_are_left_alone(extra: dict[str, Any] | None, folder: Path) -> None:
    AufbauVllmProcessor.validate_params(Params(extra))
    processor = made(AufbauVllmProcessor, folder)
    processor.update_state(Update(1, [], [(0, Params(extra), [1], [])], []))
    scores = torch.zeros((1, len(TOKENIZER)))
    assert processor.apply(scores) is scores
    assert torch.isfinite(scores).all()


def test_a_request_that_cannot_go_on_is_ended(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    processor = made(AufbauVllmProcessor, folder)
    written: list[int] = []
    params = Params(constraint(grammar="fun", goal="Int"), {2})
    processor.update_state(Update(2, [], [(1, params, [1], written)], []))
    written.append(int(TOKENIZER.convert_tokens_to_ids(")")))  # the engine did not obey
    with caplog.at_level(logging.WARNING, "agentkit.models.vllm"):
        scores = processor.apply(torch.zeros((2, len(TOKENIZER) + 3)))
    assert torch.isfinite(scores[0]).all()
    assert torch.isfinite(scores[1]).nonzero().flatten().tolist() == [2]
    assert "request 1 of the batch is ended" in caplog.text


def test_tokens_that_are_not_known_yet_are_refused(folder: Path) -> None:
    processor = made(AufbauVllmProcessor, folder)
    processor.update_state(Update(1, [], [(0, Params(constraint(grammar="fun")), [1], [-1])], []))
    with pytest.raises(ProcessorError, match="async_scheduling"):
        processor.apply(torch.zeros((1, len(TOKENIZER))))
