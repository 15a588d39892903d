"""What a parser that is observed tells of each refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from aufbau.earley.chart import Item
from aufbau.earley.machine import Lookup, Production
from aufbau.typesystem.terms import Term


@final
class Failure:
    """One refusal of the parser, kept only while a lost prefix is explained."""

    __slots__ = ("dot", "found", "item", "lookup", "production", "wanted")

    def __init__(
        self,
        production: Production,
        dot: int,
        item: Item | None,
        wanted: Term | None,
        found: Term | None,
        lookup: Lookup | None = None,
    ) -> None:
        self.production: Final = production
        self.dot: Final = dot  # -1: refused when predicted
        self.item: Final = item
        self.wanted: Final = wanted
        self.found: Final = found
        self.lookup: Final = lookup


# Called with what failed: the item (or the production that was predicted), and the two terms that clash.
Observer = Callable[[Failure], None]
