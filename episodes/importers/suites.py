"""The importers by the names that commands and results use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from episodes.errors import SuiteError, near_miss
from episodes.importers.agentdojo import AgentDojo
from episodes.importers.base import Importer
from episodes.importers.bfcl import CATEGORIES, Bfcl
from episodes.importers.nestful import Nestful

_MAKERS: Final[Mapping[str, Callable[[], Importer]]] = {
    "agentdojo": AgentDojo,
    "agentdojo_v1": partial(AgentDojo, version="v1"),
    **{f"bfcl_{category}": partial(Bfcl, category) for category in CATEGORIES},
    "nestful": Nestful,
    "nestful_bridged": partial(Nestful, bridged=True),
}

SUITES: Final = tuple(_MAKERS)


def importer(name: str) -> Importer:
    """The importer of a suite. Raises `SuiteError` with the nearest known name."""
    if name not in _MAKERS:
        raise SuiteError(f"no suite is called {name!r}; {near_miss(name, _MAKERS)}")
    return _MAKERS[name]()
