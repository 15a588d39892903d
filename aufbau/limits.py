"""Frozen budgets of the engine: unit, default, and what happens at the edge."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Budgets of one oracle. Those marked *raises* end a feed with `LimitError`; the others only delay a LOST."""

    # Items alive in the chart of one prefix; raises. One item is about 250 bytes, so the default is about 1.5 GB.
    chart_items: int = 6_000_000
    # Bytes of one prefix; raises.
    text_bytes: int = 16_000_000
    # Constructors on a path of a demand; deeper parts become holes, so a clash there is seen when the child ends.
    demand_depth: int = 24
    # Nested filters on left-recursive demands; beyond it a demand is only its pattern.
    filter_depth: int = 3
    # Steps of one upward search that asks whether a type at a left corner can meet the demand; beyond it: "it may".
    filter_steps: int = 256
    # Residual strings tried when a binder that must be fresh has finitely many spellings left.
    fresh_extensions: int = 1024
    # Entries of the tables that starts share; a start that finds more forgets those that can be worked out again, and
    # begins with empty tables where that is not half of them. About 200 bytes each.
    arena_entries: int = 200_000
    # Chart items that masks explore ahead and keep; past it the half least recently used is forgotten. About 300 bytes
    # each. Five ML or C programs of a page need 500,000; with less room, each is explored anew when it comes again.
    explored_items: int = 800_000
