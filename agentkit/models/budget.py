"""Ending within a budget: how far the nearest known end is, in tokens, and which tokens keep it within reach.

The rule. A *place* is a point of the text with a plan: tokens that make it SATISFIED, found by the oracle's witness
search and cut into the fewest tokens that the vocabulary has for it. At every moment some place is known whose plan
is no longer than the rest of the budget; the first is the start. While the rest is large next to the last plan,
tokens are chosen freely, and a plan of the text as it stands is sought now and then, for a newer place. Near the end
of the budget one is sought at once: where it fits, this is the new place, and from here each token is taken only if
a plan that fits follows it; after a few refusals the plan's own token is. Where it does not fit, or none is found,
what was chosen since the last place is taken back (it stays spent), and is chosen anew with each token checked.
A dead end is left in the same way.

The guarantee. Where the start's own plan is found and is no longer than the budget, the text ends SATISFIED within
it, whatever the model prefers: taking back leads to a place whose plan fits, and each step of a plan is admissible
and leaves the rest of it. It rests on the oracle (a witness is a text that it accepted) and on a vocabulary that
can spell the plan; it needs no coverage of the grammar beyond the start. A start whose plan is longer than the budget
is refused at once, although an end of more bytes might have fewer tokens. Where the start has no plan, that is said,
and one is sought again when half of the budget is left, then a quarter, and so on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from agentkit.models.base import Completable, Steering
from aufbau.choice import TRIES, Choice, ranked
from aufbau.errors import LimitError
from aufbau.verdict import Verdict
from aufbau.vocabulary import Vocabulary

Scores = npt.NDArray[np.floating[Any]]

# Steps of the search at the start, which also looks for a proof that there is no end, of searches that decide whether
# tokens are taken back, and of others. One that finds an end takes about 1 ms in tool steps, finite lambda and core ML
# and C, some 30 ms in whole ML and C programs.
START_STEPS: Final = 10_000
NEAR_STEPS: Final = 4_000
STEPS: Final = 1_000
MAX_BYTES: Final = 400
# Tokens chosen freely before a plan is sought anew: where one is found, no more than these can be taken back.
EVERY: Final = 32
# Admissible tokens that may be refused before the plan's own is taken; each costs a search.
NEAR: Final = 8
# Tokens are checked from a rest of twice the plan and so many more.
MARGIN: Final = 6


@dataclass(frozen=True, slots=True)
class Plan:
    """A continuation that satisfies a text, and the tokens that write it."""

    text: bytes
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A point of a generation, counted in tokens, with its plan."""

    count: int
    prefix: Completable
    plan: Plan


@final
class Budget:
    """The places of one generation. What is left of the budget is the caller's to say."""

    def __init__(self, vocabulary: Vocabulary, start: Completable, max_tokens: int) -> None:
        self._vocabulary: Final = vocabulary
        self._try_at = max_tokens // 2
        self.place: Place | None = None
        self._needed = False  # whether a token was refused or taken back
        self.checked = False  # whether each token is checked
        self._strict_until = 0
        self._look_at = 0
        self._too_small = False
        self._reason = ""
        plan = self._plan(start, START_STEPS)
        if plan is None:
            return
        if len(plan.tokens) > max_tokens:
            self._too_small = True
            end = plan.text.decode(errors="backslashreplace")
            self._reason = f"the nearest end that was found takes {len(plan.tokens)} tokens, {end!r}, of {max_tokens}"
            return
        self._enter(Place(0, start, plan), max_tokens)

    @property
    def steering(self) -> Steering:
        """What has become of the promise so far."""
        if self._too_small:
            return Steering.TOO_SMALL
        if self.place is None:
            return Steering.UNKNOWN
        return Steering.KEPT if self._needed else Steering.NOT_NEEDED

    @property
    def reason(self) -> str:
        """Why nothing is promised."""
        return self._reason if self.place is None else ""

    def _plan(self, prefix: Completable, max_steps: int) -> Plan | None:
        """The end that the oracle's search finds nearest, in the fewest tokens."""
        try:
            found = prefix.witness(MAX_BYTES, max_steps, prove=max_steps >= START_STEPS)
        except LimitError as error:
            # Looking ahead needs more room than the text itself, which may still fit.
            self._reason = str(error)
            return None
        if found.text is None:
            self._reason = found.reason
            return None
        tokens = fewest_tokens(found.text, self._vocabulary)
        if tokens is None:
            self._reason = f"the vocabulary cannot spell {found.text.decode(errors='backslashreplace')!r}"
            return None
        return Plan(found.text, tokens)

    def follow(self, count: int, prefix: Completable, rest: int) -> bool:
        """Note that the text has `count` tokens now; False where it must be taken back to `place`."""
        place = self.place
        if place is None:
            if rest <= self._try_at:
                self._try_at = rest // 2
                plan = self._plan(prefix, STEPS)
                if plan is not None and len(plan.tokens) <= rest:
                    self._enter(Place(count, prefix, plan), rest)
            return True
        if place.count == count:  # `choose` has entered it
            return True
        near = rest <= _enough(place.plan)
        if not near and count < self._look_at:
            return True
        self._look_at = count + EVERY
        plan = self._plan(prefix, NEAR_STEPS if near else STEPS)
        if plan is None:
            return not near
        if len(plan.tokens) > rest:
            return False
        self._enter(Place(count, prefix, plan), rest)
        return True

    def choose(self, scores: Scores, ends: Collection[int], rest: int) -> tuple[Choice, bool] | None:
        """The best token after which a plan fits the `rest` that is left then, or after some refusals the plan's own.

        Also whether one was refused that the oracle admits. The place after the token is entered. None where the
        text is whole, nothing is near, and the vocabulary has no token to end it.
        """
        place = self.place
        assert place is not None
        lost = short = 0
        for token in ranked(scores):
            if token in ends:
                return Choice(token=token, rank=lost + short, refused=()), short > 0
            if token in self._vocabulary.special or self._is_lost(place.prefix, token):
                lost += 1
            else:
                after = self._after(place, token, rest)
                if after is not None:
                    self._enter(after, rest)
                    return Choice(token=token, rank=lost + short, refused=()), short > 0
                short += 1
                self._needed = True
            if lost >= TRIES or short >= NEAR:
                break
        return self._planned(place, scores, ends, rest)

    def _planned(self, place: Place, scores: Scores, ends: Collection[int], rest: int) -> tuple[Choice, bool] | None:
        self._needed = True
        if place.plan.tokens:
            token = place.plan.tokens[0]
            after = self._after(place, token, rest)
            assert after is not None
            self._enter(after, rest)
        elif ends:
            token = max(ends, key=lambda end: float(scores[end]))
        else:
            return None
        before = np.count_nonzero(scores > scores[token]) + np.count_nonzero(scores[:token] == scores[token])
        return Choice(token=token, rank=int(before), refused=()), True

    def _is_lost(self, prefix: Completable, token: int) -> bool:
        return prefix.try_feed(self._vocabulary.spelling(token)) is Verdict.LOST

    def _after(self, place: Place, token: int, rest: int) -> Place | None:
        """The place after a token that the oracle admits; None where no plan was found that fits the rest then."""
        spelling = self._vocabulary.spelling(token)
        following = place.prefix.feed(spelling)
        plan: Plan | None
        if place.plan.tokens and token == place.plan.tokens[0]:
            plan = Plan(place.plan.text[len(spelling) :], place.plan.tokens[1:])
        else:
            plan = self._plan(following, STEPS)
        if plan is None or len(plan.tokens) > rest:
            return None
        return Place(place.count + 1, following, plan)

    def take_back(self, count: int) -> Place:
        """The place to go back to from a text of `count` tokens; until it is as long again, each token is checked."""
        assert self.place is not None
        self._needed = self.checked = True
        self._strict_until = count
        return self.place

    def _enter(self, place: Place, rest: int) -> None:
        self.place = place
        self._look_at = place.count + EVERY
        self.checked = place.count < self._strict_until or rest <= _enough(place.plan)


def _enough(plan: Plan) -> int:
    return 2 * len(plan.tokens) + MARGIN


def fewest_tokens(text: bytes, vocabulary: Vocabulary) -> tuple[int, ...] | None:
    """A shortest series of tokens that writes `text`; None where the vocabulary has none."""
    by_spelling = _by_spelling(vocabulary)
    # For each end the best way there: its length, and where its last token begins.
    best: list[tuple[int, int] | None] = [(0, 0), *[None] * len(text)]
    for begin in range(len(text)):
        before = best[begin]
        if before is None:
            continue
        for end in range(begin + 1, min(len(text), begin + vocabulary.longest) + 1):
            known = best[end]
            if (known is None or known[0] > before[0] + 1) and text[begin:end] in by_spelling:
                best[end] = (before[0] + 1, begin)
    tokens: list[int] = []
    end = len(text)
    while end:
        way = best[end]
        if way is None:
            return None
        tokens.append(by_spelling[text[way[1] : end]])
        end = way[1]
    return tuple(reversed(tokens))


_KNOWN: Final[WeakKeyDictionary[Vocabulary, Mapping[bytes, int]]] = WeakKeyDictionary()


def _by_spelling(vocabulary: Vocabulary) -> Mapping[bytes, int]:
    """The lowest token of each spelling; 40 ms for the 49,152 tokens of SmolLM2, once."""
    known = _KNOWN.get(vocabulary)
    if known is None:
        known = {text: token for token, text in reversed(list(enumerate(vocabulary))) if text}
        _KNOWN[vocabulary] = known
    return known
