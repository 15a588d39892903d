"""Imports of the packages that only extras install."""

from __future__ import annotations

import importlib
from typing import Any

from agentkit.models.errors import MissingExtraError

# What installs a package, where that is not the extra `models`.
_EXTRAS = {"llama_cpp": "llamacpp", "mlx": "mlx", "outlines": "outlines"}


def require(module: str) -> Any:
    """Import `module` when it is first needed, so that importing `agentkit` alone loads no torch."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = error.name or module
        raise MissingExtraError(package, extra=_EXTRAS.get(package, "models")) from error
