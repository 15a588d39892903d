"""Finding and loading a model and its tokenizer: a folder, a GGUF file, or a Hugging Face id."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentkit.models.errors import MissingExtraError, ModelLoadError, ModelNotFoundError
from agentkit.models.extras import require
from agentkit.models.gguf import read_gguf

# Seconds in which a model hub must answer whether it has an id; without an answer the id counts as not found.
HUB_SECONDS = 15.0

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def load_pretrained(spec: str, *, device: str | None = None, dtype: str | None = None) -> tuple[Any, Any]:
    """The model, on its device, and its fast tokenizer. `spec` is tried as a path first, then as an id."""
    torch = require("torch")
    require("transformers")
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if dtype is None:
        dtype = "float32" if torch.device(device).type == "cpu" else "auto"
    path = Path(spec).expanduser()
    if path.is_file():
        if path.suffix.lower() != ".gguf":
            raise ModelNotFoundError(
                f"{spec!r} is a file but not a GGUF file; give a .gguf file, a folder with config.json and"
                " weights, or a Hugging Face id"
            )
        model, tokenizer = _load_gguf(path)
        return (model if dtype == "auto" else model.to(getattr(torch, dtype))).to(device), tokenizer
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ModelNotFoundError(
                f"the folder {spec!r} has no config.json, so it holds no transformers model; give the folder"
                " that save_pretrained wrote, or a .gguf file"
            )
        return _load_local(str(path), device, dtype)
    return _load_id(spec, device, dtype)


def _load_gguf(path: Path) -> tuple[Any, Any]:
    try:
        with quiet_progress():
            return read_gguf(path)
    except MissingExtraError:
        raise
    except Exception as error:
        raise ModelLoadError(
            f"the GGUF file {str(path)!r} cannot be loaded ({type(error).__name__}: {error}); check that the"
            " file is complete and that transformers supports its architecture, or convert it to a folder"
        ) from error


def _load_local(source: str, device: str, dtype: str) -> tuple[Any, Any]:
    """Load from a folder or from the hub's cache, without any network."""
    transformers = require("transformers")
    try:
        with quiet_progress():
            tokenizer = transformers.AutoTokenizer.from_pretrained(source, local_files_only=True)
            model = transformers.AutoModelForCausalLM.from_pretrained(source, dtype=dtype, local_files_only=True)
    except Exception as error:
        raise ModelLoadError(
            f"the model {source!r} cannot be loaded ({type(error).__name__}: {error});"
            " check that its files are complete and that it is a causal language model of the installed transformers"
        ) from error
    return model.to(device), tokenizer


def _load_id(spec: str, device: str, dtype: str) -> tuple[Any, Any]:
    if not _HUB_ID.fullmatch(spec):
        raise ModelNotFoundError(
            f"no model {spec!r}: there is no such file or folder, and it cannot be a Hugging Face id; give"
            " 'default', a folder, a .gguf file, or an id such as HuggingFaceTB/SmolLM2-135M-Instruct"
        )
    if not _in_hub_cache(spec):
        _fetch(spec)
    return _load_local(spec, device, dtype)


def _in_hub_cache(spec: str) -> bool:
    hub = require("huggingface_hub")
    try:
        hub.snapshot_download(spec, local_files_only=True)
    except (hub.errors.LocalEntryNotFoundError, hub.errors.HFValidationError):
        return False
    return True


def _fetch(spec: str) -> None:
    """Download an id's files into the hub's cache, after a bounded look whether the hub has it at all."""
    hub = require("huggingface_hub")
    tried = f"no model {spec!r}: there is no such file or folder, it is not in the local Hugging Face cache, and"
    mend = "check the spelling and the network, or use a folder, a .gguf file or 'default', which need no hub"
    if hub.constants.HF_HUB_OFFLINE:
        raise ModelNotFoundError(
            f"{tried} HF_HUB_OFFLINE forbids asking the hub; unset it, or fetch the model once with: hf download {spec}"
        )
    failure = _within(HUB_SECONDS, lambda: hub.HfApi().model_info(spec, timeout=HUB_SECONDS))
    if failure is not None:
        raise ModelNotFoundError(f"{tried} the hub does not give it ({failure}); {mend}")
    try:
        hub.snapshot_download(spec, ignore_patterns=["*.gguf", "*.onnx", "*.bin.index.json", "*.h5", "*.msgpack"])
    except (OSError, hub.errors.HfHubHTTPError) as error:
        raise ModelNotFoundError(f"{tried} its download failed ({error}); {mend}") from error


def _within(seconds: float, ask: Callable[[], object]) -> str | None:
    """Why `ask` failed, or None. Name look-ups heed no time limit, hence a thread that may be left behind."""
    outcome: list[str | None] = [f"no answer within {seconds:g} s"]

    def run() -> None:
        try:
            ask()
            outcome[0] = None
        except Exception as error:
            outcome[0] = f"{type(error).__name__}: {next(iter(str(error).strip().splitlines()), 'no details')}"

    thread = threading.Thread(target=run, daemon=True, name="model hub")
    thread.start()
    thread.join(seconds)
    return outcome[0]


@contextmanager
def quiet_progress() -> Iterator[None]:
    """Keep the progress bars of transformers off the terminal; ours says what is going on."""
    logging = require("transformers").utils.logging
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
