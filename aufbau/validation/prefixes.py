"""Judges a program at every byte prefix, by the semantic grammar and by its syntactic twin."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from aufbau.errors import LimitError
from aufbau.oracle import Oracle
from aufbau.verdict import Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """What an oracle said of all prefixes of a text.

    LOST is final, so the verdicts of all prefixes are told by the last one and the byte at which the text was lost.
    """

    verdict: Verdict | None  # at the end of the text; None: the oracle gave up
    lost_at: int | None
    seconds: float
    failure: str = ""  # why the oracle gave up


class OutOfTime(Exception):
    """The time limit of one program is spent."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `OutOfTime` inside the block once `seconds` have passed; 0 sets no limit.

    Works in the main thread only, where signals arrive; each worker of the harness is a process of its own. A timer
    that was running before goes on afterwards.
    """
    if not seconds:
        yield
        return

    def expire(_number: int, _frame: FrameType | None) -> None:
        raise OutOfTime(f"took longer than {seconds:g} s")

    began = time.monotonic()
    handler = signal.signal(signal.SIGALRM, expire)
    # Again every second, since what is raised in a callback of the garbage collector is lost.
    remaining, interval = signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if remaining:
            left = remaining - (time.monotonic() - began)
            signal.setitimer(signal.ITIMER_REAL, max(left, 1e-3), interval)


def judge(oracle: Oracle, text: bytes, *, every_byte: bool = True, seconds: float = 0) -> Judgement:
    """The verdicts on a text, fed byte by byte or at once.

    A spent budget, of time or of the oracle's own limits, is a judgement without verdict.
    """
    began = time.perf_counter()
    verdict: Verdict | None = None
    lost_at: int | None = None
    failure = ""
    try:
        with time_limit(seconds):
            prefix = oracle.start()
            if every_byte:
                for byte in text:
                    prefix = prefix.feed(bytes((byte,)))
                    if prefix.lost_at is not None:
                        break
            else:
                prefix = prefix.feed(text)
            verdict, lost_at = prefix.verdict, prefix.lost_at
    except (LimitError, OutOfTime, RecursionError, MemoryError) as error:
        failure = f"{type(error).__name__}: {error}"
    return Judgement(verdict=verdict, lost_at=lost_at, seconds=time.perf_counter() - began, failure=failure)
