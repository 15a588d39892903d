"""What masks keep: for a place and a split of the vocabulary, what is certain and what is left to ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final
from weakref import WeakKeyDictionary

import numpy as np

from aufbau.lexer.automaton import LexerAutomaton
from aufbau.lookahead import Explorer
from aufbau.named import Names
from aufbau.places import Place, Step
from aufbau.typesystem.context import Context
from aufbau.vocabulary.series import Ended, Ending, Ids, Many, Part, Series, Split, compact
from aufbau.vocabulary.vocabulary import Vocabulary

_PLANNED: Final = 48_000_000  # bytes of plans kept, for each vocabulary
KEPT: Final = 64  # lists of names for which a plan keeps what they come to
_NO_TOKENS: Final = np.zeros(0, np.int32)


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheReport:
    """What masks over one vocabulary keep between calls, for one automaton."""

    tokens: int
    states: int  # automaton states whose continuations are kept
    nbytes: int  # of arrays; about, since what was only looked up once is estimated


@final
class Whole:
    """What the names that are finished come to in given Γs."""

    __slots__ = ("certain", "steps")

    def __init__(self, certain: Part, steps: list[tuple[Step, Ids]]) -> None:
        self.certain: Final = certain
        self.steps: Final = steps  # whether the text can go on after them depends on the callers


@final
class Named:
    """What some endings come to for given names: tokens that begin one, and texts that are all that is left of one."""

    __slots__ = ("begun", "by_gammas", "whole")

    def __init__(self, begun: Part, whole: list[tuple[int, bytes, Ids]]) -> None:
        self.begun: Final = begun
        self.whole: Final = whole  # what the terminal is, the text, the tokens
        self.by_gammas: dict[tuple[Context | None, ...], Whole] = {}


_UNASKED: Final[dict[tuple[Names, ...], Named]] = {}


@final
class Left:
    """What is left to ask wherever a place is reached."""

    __slots__ = ("ended", "endings", "known", "masks", "named")

    def __init__(self, place: Place, endings: list[Ending], ended: list[Ended]) -> None:
        self.ended: Final = ended
        self.endings: Final[list[Ending]] = []  # asked one by one
        self.named: Final[list[Ending]] = []  # looked up among the names that the place takes
        self.masks: Final[list[int]] = []  # of the terminals of those names
        self.known: dict[tuple[Names, ...], Named] = _UNASKED
        for ending in endings:
            ends = ending.more | ending.accepts
            masks = [mask for mask in place.judging if mask & ends]
            if ending.accepts & place.plain_mask or any(mask in place.endless for mask in masks):
                self.endings.append(ending)
            else:
                self.named.append(ending)
                self.masks.extend([mask for mask in masks if mask not in self.masks])
        if self.named:
            self.known = {}


@final
class Plan:
    """What a place admits of a split: tokens that are certain, and what depends on where the place is reached."""

    __slots__ = ("below", "here", "tokens")

    def __init__(self, tokens: list[Part], here: Left | None, below: Left | None) -> None:
        self.tokens: Final = tokens
        self.here: Final = here
        self.below: Final = below  # what the calls that the place makes are to be asked


NOTHING: Final = Plan([], None, None)
_PlanKey = tuple[Place, Split, bool]


@final
class Plans:
    """The plans that were used last: two generations, the older of which is forgotten when the younger is full."""

    __slots__ = ("_old", "_young", "nbytes")

    def __init__(self) -> None:
        self._young: dict[_PlanKey, Plan] = {}
        self._old: dict[_PlanKey, Plan] = {}
        self.nbytes = 0  # of the younger, about

    def get(self, place: Place, split: Split, gap: bool) -> Plan | None:
        """What is known."""
        key = (place, split, gap)
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self.put(place, split, gap, found)
        return found

    def put(self, place: Place, split: Split, gap: bool, plan: Plan) -> None:
        """Remember a plan."""
        self._young[place, split, gap] = plan
        self.nbytes += 200

    def age(self) -> None:
        """Forget what has not been used for long."""
        if 2 * self.nbytes > _PLANNED:
            self._old, self._young, self.nbytes = self._young, {}, 0

    def forget_gone(self) -> None:
        """Forget the plans of forgotten places."""
        self._young = {key: plan for key, plan in self._young.items() if not key[0].gone}
        self._old = {key: plan for key, plan in self._old.items() if not key[0].gone}


@final
class Readings:
    """The readings of a vocabulary, and the plans of the places of one explorer."""

    __slots__ = ("_epoch", "_explorer", "_plans", "series")

    def __init__(self, series: Series) -> None:
        self.series: Final = series
        self._explorer: object = None
        self._epoch = 0
        self._plans = Plans()

    def plans(self, explorer: Explorer) -> Plans:
        """What is known for the places of this explorer; places that it has forgotten are forgotten here."""
        if self._explorer is not explorer.identity:
            self._explorer, self._plans = explorer.identity, Plans()
        elif self._epoch != explorer.epoch:
            self._plans.forget_gone()
        self._epoch = explorer.epoch
        self._plans.age()
        return self._plans

    def packed(self, found: list[Part]) -> list[Part]:
        """The same tokens for keeping: many short arrays become one, the long ones are shared."""
        long: dict[int, Part] = {}
        short: list[Ids] = []
        for part in found:
            if isinstance(part, Many) or len(part) >= 512:
                long[id(part)] = part
            else:
                short.append(part)
        self._plans.nbytes += 300
        return [*long.values(), *([self.joined(short)] if short else [])]

    def joined(self, found: list[Ids]) -> Part:
        """The same tokens as one part, for keeping."""
        tokens = np.unique(np.concatenate(found)) if found else _NO_TOKENS
        part = compact(tokens, self.series.bytes.count)
        self._plans.nbytes += 100 + (part.bits if isinstance(part, Many) else part).nbytes
        return part

    @property
    def nbytes(self) -> int:
        """About what is kept."""
        return self.series.nbytes + self._plans.nbytes


@final
class Masks:
    """The readings that the masks of one oracle use: for each automaton and vocabulary, as long as that lives."""

    __slots__ = ("_readings",)

    def __init__(self) -> None:
        self._readings: WeakKeyDictionary[Vocabulary, dict[LexerAutomaton, Readings]] = WeakKeyDictionary()

    def readings(self, automaton: LexerAutomaton, vocabulary: Vocabulary) -> Readings:
        """The readings of a vocabulary."""
        known = self._readings.setdefault(vocabulary, {})
        found = known.get(automaton)
        if found is None:
            found = known.setdefault(automaton, Readings(Series(automaton, vocabulary.bytes)))
        return found

    def report(self) -> list[CacheReport]:
        """What is kept, a report for each vocabulary and automaton."""
        return [
            CacheReport(tokens=len(vocabulary), states=one.series.states, nbytes=one.nbytes)
            for vocabulary, known in list(self._readings.items())
            for one in list(known.values())
        ]
