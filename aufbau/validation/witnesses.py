"""Looks for completions of prefixes, and asks the compiler whether it takes what the oracle says completes them."""

from __future__ import annotations

import random
from dataclasses import dataclass

from aufbau.errors import LimitError
from aufbau.oracle import Oracle, Prefix
from aufbau.validation.compilers import Compiler, Outcome
from aufbau.validation.prefixes import OutOfTime, time_limit
from aufbau.verdict import Verdict
from aufbau.witness import Outcome as Answer

_STEPS = 4_000  # of one search: the few that take more end with UNKNOWN nearly always


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """What became of the search for a completion at one prefix of a program."""

    at: int  # bytes of the prefix
    outcome: str  # an outcome of `Prefix.witness`
    text: str = ""  # what completes the prefix, where it was found
    satisfied: bool | None = None  # whether the oracle, started anew, says so of the whole; None: nothing was found
    accepted: bool | None = None  # whether the compiler accepts the whole; None: it was not asked or gave no word
    message: str = ""  # of the compiler, or why the search was given up

    @property
    def refused(self) -> bool:
        """Whether it was found, but one of the two does not take the whole."""
        return self.satisfied is False or self.accepted is False


def cuts(size: int, count: int, seed: str) -> list[int]:
    """At most `count` places to cut a text of so many bytes at, in ascending order; all of them where count allows."""
    places = range(size)
    return list(places) if count >= size else sorted(random.Random(seed).sample(places, count))


def completions(
    oracle: Oracle, compiler: Compiler | None, text: bytes, places: list[int], *, seconds: float
) -> list[Completion]:
    """The completions of the text's prefixes that end at some places, in ascending order."""
    found: list[Completion] = []
    prefix, at = oracle.start(), 0
    for place in places:
        prefix, at = prefix.feed(text[at:place]), place
        found.append(_completion(oracle, compiler, prefix, seconds))
    return found


def _completion(oracle: Oracle, compiler: Compiler | None, prefix: Prefix, seconds: float) -> Completion:
    at = len(prefix.text)
    try:
        with time_limit(seconds):
            witness = prefix.witness(max_steps=_STEPS)
            if witness.text is None:
                return Completion(at=at, outcome=witness.outcome.value, message=witness.reason)
            whole = prefix.text + witness.text
            satisfied = oracle.start().feed(whole).verdict is Verdict.SATISFIED
    except (LimitError, OutOfTime, RecursionError) as error:
        return Completion(at=at, outcome=Answer.UNKNOWN.value, message=f"{type(error).__name__}: {error}")
    accepted, message = None, ""
    if compiler is not None:
        word = compiler.compile(whole)
        accepted = None if word.outcome is Outcome.UNKNOWN else word.outcome is Outcome.ACCEPTED
        message = word.message
    return Completion(
        at=at,
        outcome=witness.outcome.value,
        text=witness.text.decode(errors="backslashreplace"),
        satisfied=satisfied,
        accepted=accepted,
        message=message,
    )
