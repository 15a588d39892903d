"""Frozen budgets of regular expressions and their automata; going past one is a `RegexError`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class RegexLimits:
    """Every edge is refused with a `RegexError` that names the limit and its value."""

    # Largest count inside `{…}`.
    repetition: int = 1_000
    # Groups open at once; also bounds the recursion of everything that walks an expression.
    nesting: int = 64
    # Characters of all expressions of one automaton after unrolling repetitions.
    positions: int = 20_000
    # States of one automaton over bytes; a state takes about 2 kB.
    states: int = 30_000
    # Elementary steps of one subset construction; 4 million take some seconds.
    steps: int = 4_000_000


DEFAULT_LIMITS = RegexLimits()
