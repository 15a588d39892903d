"""Witnesses: a shortest continuation that satisfies a prefix, a proof that there is none, or neither within a bound."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from aufbau.completion import Search, Step
from aufbau.reading import Reading
from aufbau.refutation import refute
from aufbau.verdict import Verdict

# Steps of the complete search before others get their chance.
_PATIENCE = 500
# Caution and haste of the others (see `Search`): for large types, and for much that is left to close. And how much more
# they may spend than bytes, since caution is counted too.
_WAYS = ((40, 1), (12, 3))
_ROOM = 6
_SHARES = (8, 1)  # of the steps: turns are short first, and a proof that there is nothing is tried in between


class Outcome(Enum):
    """What a search for a witness ended with."""

    FOUND = "found"  # a continuation that the oracle accepts
    NONE = "none"  # a proof that no continuation satisfies the prefix
    UNKNOWN = "unknown"  # none within the bounds


@dataclass(frozen=True, kw_only=True, slots=True)
class Witness:
    """The answer of `Prefix.witness`."""

    outcome: Outcome
    text: bytes | None  # the continuation
    reason: str
    shortest: bool = False  # whether it is proved that no shorter one exists
    steps: int = 0  # of the search

    def __str__(self) -> str:
        if self.text is None:
            return f"{self.outcome.value}: {self.reason}"
        return f"{self.text.decode(errors='backslashreplace')!r} ({self.reason})"


def witness(reading: Reading, max_bytes: int = 200, max_steps: int = 10_000, *, prove: bool = True) -> Witness:
    """A shortest continuation of at most `max_bytes` that makes the text SATISFIED.

    Every continuation that is returned was fed. NONE is a proof: all that may follow was tried, up to
    names and texts that no rule tells apart. A search that takes long gives way to a narrow one, which finds some
    continuation soon where there is one, and then goes on. With `prove` the rules are asked in between for a proof that
    there is none, which can take as long as thousands of steps.
    """
    if reading.verdict is Verdict.LOST:
        return Witness(outcome=Outcome.NONE, text=None, reason=f"the text is lost at byte {reading.lost_at}")
    if reading.verdict is Verdict.SATISFIED:
        return Witness(outcome=Outcome.FOUND, text=b"", reason="the text is complete", shortest=True)
    whole = _Attempt(reading, max_bytes)
    attempts = [whole]
    proved = whole.run(min(_PATIENCE, max_steps))
    if whole.best is None and whole.search.waiting:
        attempts += [_Attempt(reading, max_bytes, caution, haste) for caution, haste in _WAYS]
        for share in _SHARES:
            proved = _take_turns(attempts, max_steps // (share * len(attempts)))
            if any(attempt.best is not None for attempt in attempts) or not whole.search.waiting:
                break
            proof = refute(reading) if prove and share == _SHARES[0] else None
            if proof is not None:
                return Witness(outcome=Outcome.NONE, text=None, reason=proof, steps=whole.search.spent)
    spent = sum(attempt.search.spent for attempt in attempts)
    best = min((attempt.best for attempt in attempts if attempt.best is not None), key=len, default=None)
    if best is not None:
        shortest = proved and not whole.refused
        reason = "a shortest continuation" if shortest else "a continuation, maybe not the shortest"
        return Witness(outcome=Outcome.FOUND, text=best, reason=reason, shortest=shortest, steps=spent)
    if whole.search.exhausted and not whole.refused:
        return Witness(outcome=Outcome.NONE, text=None, reason="all that may follow was tried", steps=spent)
    bound = f"{max_steps} steps" if whole.search.waiting else f"{max_bytes} bytes"
    reason = f"no continuation was found within {bound}, and there may be others"
    return Witness(outcome=Outcome.UNKNOWN, text=None, reason=reason, steps=spent)


def _take_turns(attempts: list[_Attempt], max_steps: int) -> bool:
    """Let each of some searches go on in turn until one has a text; whether it is proved to be a shortest."""
    for attempt in reversed(attempts):  # the complete one last
        proved = attempt.run(max_steps)
        if attempt.best is not None:
            return proved and attempt is attempts[0]
    return False


class _Attempt:
    """One search, and the best text that it led to."""

    def __init__(self, reading: Reading, max_bytes: int, caution: int = 0, haste: int = 1) -> None:
        self.reading, self.max_bytes = reading, max_bytes
        room = max_bytes * _ROOM if caution else max_bytes
        self.search = Search(reading.reader, reading.hypotheses, max_bytes=room, caution=caution, haste=haste)
        self.best: bytes | None = None
        self.refused = False  # whether the oracle refused a text, which the search can't explain

    def run(self, max_steps: int) -> bool:
        """Go on until a text is known that nothing in the queue can undercut; whether one is."""
        search = self.search
        search.max_steps = max_steps
        for step in search.finals():
            if self.best is not None and step.bound >= len(self.best):
                return True
            accepted = self._accepted(step)
            if accepted is None:
                self.refused = True
            elif self.best is None or len(accepted) < len(self.best):
                self.best = accepted
                if step.bound >= len(accepted):
                    return True
        return self.best is not None and not search.waiting

    def _accepted(self, step: Step) -> bytes | None:
        for text in self.search.spelled(step):
            if len(text) <= self.max_bytes and self.reading.feed(text).verdict is Verdict.SATISFIED:
                return text
        return None
