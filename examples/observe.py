"""A run written down as a page and as OpenTelemetry spans: `python examples/observe.py run.html`.

The model is a script, so that this needs no weights; take `Agent("default")` for a real one.
"""

from __future__ import annotations

import sys
from pathlib import Path

from agentkit import Agent
from agentkit.events import Event
from agentkit.models import ScriptedModel
from agentkit.telemetry import OpenTelemetryHandler
from agentkit.trace import TraceRecorder, trace_page

SCRIPT = ['let d = search("aurora");', "let n = count(d);", "return n;"]


def main(page: Path) -> None:
    """Run, and write the page; spans go to the tracer provider that the program has set, here to none."""
    with TraceRecorder() as recorder, OpenTelemetryHandler() as spans:

        def both(event: Event) -> None:
            recorder(event)
            spans(event)

        result = Agent(ScriptedModel(SCRIPT)).run_sync("How many documents mention the aurora?", on_event=both)
    page.write_text(trace_page(recorder.trace), encoding="utf-8")
    print(f"{result.output} after {len(result.turns)} turns; the run is written down in {page}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "run.html"))
