"""The three verdicts of the prefix oracle (paper, Definition 2.3)."""

from __future__ import annotations

from enum import Enum


class Verdict(Enum):
    """What the oracle says of a prefix."""

    # Neither of the two below: no stable contradiction, and not (yet) a complete consistent parse.
    LIVE = "live"
    # With its last lexeme taken as finished, the text is a complete parse whose evidence is closed and consistent.
    SATISFIED = "satisfied"
    # On every parse branch there is a contradiction that no continuation can repair. Final.
    LOST = "lost"

    def __str__(self) -> str:
        return self.value
