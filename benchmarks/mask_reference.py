"""Measures single candidates of the reference engine's mask, in an interpreter that has it instead of our package."""

from __future__ import annotations

import importlib
import importlib.metadata
import platform
import time

from benchmarks.measuring import Answer, Request, serve


def measure(request: Request) -> Answer:
    """CPU milliseconds for each candidate after each of some prefixes."""
    module = importlib.import_module("aufbau")
    facts = {"version": f"aufbau-rs {importlib.metadata.version('aufbau-rs')}", "python": platform.python_version()}
    if request.get("facts_only"):
        return facts
    grammar = module.SPG(request["grammar"])
    candidates: list[str] = request["candidates"]
    found = []
    for text in request["prefixes"]:
        synthesizer = module.Synthesizer.from_grammar(grammar)
        if text:
            synthesizer.feed(text)
        began = time.process_time()
        admitted = synthesizer.mask(candidates)
        found.append({"ms": 1e3 * (time.process_time() - began) / len(candidates), "admitted": sum(admitted)})
    return {"facts": facts, "prefixes": found}


if __name__ == "__main__":
    serve(measure)
