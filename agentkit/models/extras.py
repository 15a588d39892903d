"""Imports of the packages that only the extra `models` installs."""

from __future__ import annotations

import importlib
from typing import Any

from agentkit.models.errors import MissingExtraError


def require(module: str) -> Any:
    """Import `module` when it is first needed, so that importing `agentkit` alone loads no torch."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or module) from error
