"""The worker's side of the exchange: one JSON request a line in, one JSON answer a line out.

Standard library only, since the reference engine's interpreter has nothing else.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

Request = dict[str, Any]
# Prepares one run of a request, untimed, and gives the action to time; that returns the verdict in words.
Prepare = Callable[[Request], Callable[[], str]]


def measure(prepare: Prepare, request: Request) -> dict[str, Any]:
    """Repeat a request until it has run `runs` times or `budget_s` is spent, and take the median.

    The clock is the process's CPU time, which other work on the machine disturbs least.
    """
    seconds: list[float] = []
    verdict = ""
    while len(seconds) < request["runs"] and sum(seconds) < request["budget_s"]:
        action = prepare(request)
        started = time.process_time()
        verdict = action()
        seconds.append(time.process_time() - started)
    return {"median_s": statistics.median(seconds), "runs": len(seconds), "verdict": verdict}


def serve(facts: dict[str, str], prepare: Prepare) -> None:
    """Say who we are, then answer requests until the input ends."""
    print(json.dumps(facts), flush=True)
    for line in sys.stdin:
        print(json.dumps(measure(prepare, json.loads(line))), flush=True)
