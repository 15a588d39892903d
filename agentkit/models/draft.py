"""The text of a black-box model in the making: what was kept of its samples, and what was given up again."""

from __future__ import annotations

import re
from typing import Final, Protocol, final, runtime_checkable

from agentkit.models.base import PrefixLike, TokenRecord
from agentkit.models.samples import Kept, keep
from aufbau.expected import Expectation
from aufbau.verdict import Verdict

# Characters of a refused sample, and lexemes that may come in its place, that a hint shows.
_SHOWN: Final = 40
_HINTS: Final = 12
_LAST_WORD: Final = re.compile(r"(\w+|\W)\s*\Z")


@runtime_checkable
class Expecting(Protocol):
    """A prefix that says what may come next; `aufbau.Prefix` does."""

    def expected(self) -> list[Expectation]:
        """The lexemes that may come next."""
        ...


@final
class Draft:
    """Grows by what is kept of samples; its text is never LOST."""

    def __init__(self, start: PrefixLike, prefill: str) -> None:
        self.start: Final = start
        self.prefix = start
        self.text = ""
        self.records: list[TokenRecord] = []
        # Tokens of the text, by its shares of the samples that it came from.
        self.tokens = 0
        # Samples in a row that brought the text no further than it had been.
        self.fruitless = 0
        # What those would have added.
        self.rejected: list[str] = []
        # Characters given up since the last sample.
        self.retreated = 0
        self._prefill = prefill
        self._furthest = 0

    def take(self, sample: str, tokens: int) -> Kept:
        """Keep what can be kept of a sample; where all of it makes a text by itself, it replaces what there was."""
        kept = keep(sample, self._prefill + self.text, self.prefix)
        if self.text and not kept.whole:
            anew = keep(sample, self._prefill, self.start)
            if anew.whole and anew.prefix.verdict is Verdict.SATISFIED:
                kept = anew
                self._give_up(len(self.text))
        if kept.accepted.strip():
            self.text, self.prefix = self.text + kept.accepted, kept.prefix
            self.tokens += max(1, round(tokens * len(kept.accepted) / max(1, len(sample))))
            self.records.append(record_of(kept.accepted, rejected=self.fruitless))
        # What was given up and came again is no gain.
        gained = len(self.text) > self._furthest
        self.fruitless = 0 if gained else self.fruitless + 1
        self.rejected = [] if gained else self.rejected
        self.rejected += [kept.rejected] if kept.rejected.strip() else []
        self._furthest = max(self._furthest, len(self.text))
        return kept

    def retreat(self) -> None:
        """Give up the last word."""
        self._give_up(len(self.text) - len(_LAST_WORD.sub("", self.text)))

    def hint(self) -> str:
        """What a model is told of its last refused sample: what that was, and what may come where it went wrong."""
        if not self.rejected:
            return ""
        # What was refused was so after text that may have been given up since.
        told = "" if self.retreated else f" {self.rejected[-1].strip()[:_SHOWN]!r} cannot come there."
        if isinstance(self.prefix, Expecting):
            may = ", ".join(str(one) for one in self.prefix.expected()[:_HINTS])
            told += f" What may come there: {may}." if may else ""
        return told

    def _give_up(self, characters: int) -> None:
        rest = self.text[: len(self.text) - characters]
        self.tokens = round(self.tokens * len(rest) / max(1, len(self.text)))
        self.retreated += characters
        self.text, self.prefix = rest, self.start.feed(rest.encode(errors="replace"))
        self.records = [record_of(rest, rejected=self.fruitless)] if rest else []


def record_of(text: str, *, rejected: int = 0) -> TokenRecord:
    """The record of a kept part: nothing is known of its tokens and their probabilities."""
    return TokenRecord(
        token=None,
        text=text.encode(errors="replace"),
        entropy=0.0,
        first_choice=rejected == 0,
        rejected=rejected,
        logprob=0.0,
    )
