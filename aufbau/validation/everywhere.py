"""Completes every byte prefix of a program; the oracle, started anew, and the compiler judge what completes it."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from enum import Enum
from itertools import groupby
from typing import Final, final

from aufbau.errors import LimitError
from aufbau.oracle import Oracle, Prefix
from aufbau.validation.compilers import Compiler, Outcome
from aufbau.validation.corpora import Program
from aufbau.validation.prefixes import OutOfTime, judge, time_limit
from aufbau.verdict import Verdict
from aufbau.witness import Outcome as Answer

_AT_ONCE = 100  # texts in one run of the compiler: its start, 4 ms or more, is then no matter


class Fate(Enum):
    """What became of a prefix."""

    ACCEPTED = "accepted"  # a completion was found; the oracle, started anew, and the compiler take the whole
    UNASKED = "no word"  # one was found, but the oracle or the compiler came to no end on the whole
    OVERRULED = "not satisfied anew"  # one was found, but the oracle, started anew, does not take the whole
    REFUSED = "refused by the compiler"  # one was found, but the compiler does not take the whole
    DENIED = "proved to have none"
    UNKNOWN = "none found"  # within the bounds of the search


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """What a search for a completion ended with; it holds for every prefix that the completed text begins with."""

    prefix: bytes  # where the search was made
    whole: bytes | None  # the completed text
    denied: bool = False  # whether there is provably none
    reason: str = ""  # why there is none


@dataclass(frozen=True, kw_only=True, slots=True)
class Stray:
    """A search whose ending is not accepted."""

    prefix: str
    fate: str
    prefixes: int  # of this program, for which the ending stands
    completion: str = ""
    message: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Walk:
    """All prefixes of one program that are not LOST."""

    origin: str  # a `ProgramSet`
    index: int
    name: str
    size: int  # bytes
    verdict: str | None  # of the whole program; None: the oracle gave up
    failure: str  # why
    fates: dict[str, int]  # prefixes by `Fate`, the empty one included
    endings: int  # different ones among them
    searches: int  # that no earlier program had led to
    compiled: int  # completed texts that no earlier program had led to
    seconds: float
    strays: tuple[Stray, ...]

    @property
    def prefixes(self) -> int:
        """How many prefixes were tried."""
        return sum(self.fates.values())

    @property
    def whole(self) -> bool:
        """Whether all of them have a completion that the oracle and the compiler accept."""
        return not self.failure and self.fates.get(Fate.ACCEPTED.value) == self.prefixes

    def to_line(self) -> str:
        """The walk as a line of JSON."""
        return json.dumps(asdict(self), ensure_ascii=False) + "\n"

    @classmethod
    def from_line(cls, line: str) -> Walk:
        """A walk read back. Raises `ValueError` for a line that is none."""
        data = json.loads(line)
        if not isinstance(data, dict) or data.keys() != {f.name for f in fields(cls)}:
            raise ValueError("not a walk of this version")
        return cls(**data | {"strays": tuple(Stray(**stray) for stray in data["strays"])})


@final
class Walker:
    """Walks along programs.

    What completes a prefix completes the next longer one too, as long as the two texts agree, and only where they part
    is a search made. So the ending of a prefix depends on the prefix alone: programs that begin alike share it.
    """

    def __init__(self, oracle: Oracle, compiler: Compiler, *, steps: int, again: int, seconds: float) -> None:
        """A search takes so many steps (of `Prefix.witness`), and a second one more where it finds nothing.

        Both together end after so many seconds, and so does a judgement.
        """
        self._oracle: Final = oracle
        self._compiler: Final = compiler
        self._steps: Final = steps
        self._again: Final = again
        self._seconds: Final = seconds
        self._endings: Final[dict[bytes, Ending]] = {}  # by prefix
        self._words: Final[dict[bytes, tuple[Fate, str]]] = {}  # by completed text
        self._prefix: Prefix = oracle.start()  # where the last search was made
        self._searches = 0

    def walk(self, program: Program) -> Walk:
        """Complete all prefixes of a program up to where it is LOST."""
        began, searched, asked = time.perf_counter(), self._searches, len(self._words)
        judgement = judge(self._oracle, program.text, every_byte=False, seconds=self._seconds)
        end = len(program.text) if judgement.lost_at is None else judgement.lost_at
        endings = [] if judgement.failure else self.endings(program.text[:end])
        self._ask(ending.whole for ending in endings if ending.whole is not None)
        # Neighbours share an ending, and no two groups do: what was left behind completes no longer prefix.
        groups = [(ending, len(list(group))) for ending, group in groupby(endings)]
        fates: Counter[str] = Counter()
        strays = []
        for ending, count in groups:
            fate, message = self._fate(ending)
            fates[fate.value] += count
            if fate is not Fate.ACCEPTED:
                strays.append(_stray(ending, fate, count, message))
        return Walk(
            origin=program.origin.value,
            index=program.index,
            name=program.name,
            size=len(program.text),
            verdict=None if judgement.verdict is None else judgement.verdict.value,
            failure=judgement.failure,
            fates=dict(fates),
            endings=len(groups),
            searches=self._searches - searched,
            compiled=len(self._words) - asked,
            seconds=round(time.perf_counter() - began, 3),
            strays=tuple(strays),
        )

    def endings(self, text: bytes) -> list[Ending]:
        """The endings of all prefixes of a text that is not LOST, the empty one first and the text itself last."""
        found: list[Ending] = []
        for size in range(len(text) + 1):
            prefix = text[:size]
            ending = self._endings.get(prefix)
            if ending is None:
                last = found[-1].whole if found else None
                ending = found[-1] if last is not None and last.startswith(prefix) else self._sought(prefix)
                self._endings[prefix] = ending
            found.append(ending)
        return found

    def _sought(self, text: bytes) -> Ending:
        self._searches += 1
        try:
            with time_limit(self._seconds):
                here = self._prefix
                if not text.startswith(here.text):
                    here = self._oracle.start()
                self._prefix = here.feed(text[len(here.text) :])
                witness = self._prefix.witness(max_steps=self._steps)
                if witness.outcome is Answer.UNKNOWN and self._steps < self._again:
                    witness = self._prefix.witness(max_steps=self._again)
        except (LimitError, OutOfTime, RecursionError) as error:
            return Ending(prefix=text, whole=None, reason=f"{type(error).__name__}: {error}")
        whole = None if witness.text is None else text + witness.text
        return Ending(prefix=text, whole=whole, denied=witness.outcome is Answer.NONE, reason=witness.reason)

    def _ask(self, wholes: Iterable[bytes]) -> None:
        """Ask the oracle and the compiler for their words on the texts that are new."""
        new = [text for text in dict.fromkeys(wholes) if text not in self._words]
        judged = {text: judge(self._oracle, text, every_byte=False, seconds=self._seconds) for text in new}
        for start in range(0, len(new), _AT_ONCE):
            texts = new[start : start + _AT_ONCE]
            for text, word in zip(texts, self._compiler.compile_all(texts), strict=True):
                own = judged[text]
                if own.failure or word.outcome is Outcome.UNKNOWN:
                    self._words[text] = Fate.UNASKED, own.failure or word.message
                elif own.verdict is not Verdict.SATISFIED:
                    self._words[text] = Fate.OVERRULED, f"lost at {own.lost_at}; compiler: {word.outcome.value}"
                else:
                    fate = Fate.ACCEPTED if word.outcome is Outcome.ACCEPTED else Fate.REFUSED
                    self._words[text] = fate, word.message

    def _fate(self, ending: Ending) -> tuple[Fate, str]:
        if ending.whole is not None:
            return self._words[ending.whole]
        return (Fate.DENIED if ending.denied else Fate.UNKNOWN), ending.reason


def _stray(ending: Ending, fate: Fate, prefixes: int, message: str) -> Stray:
    completion = b"" if ending.whole is None else ending.whole[len(ending.prefix) :]
    return Stray(
        prefix=ending.prefix.decode(errors="backslashreplace"),
        fate=fate.value,
        prefixes=prefixes,
        completion=completion.decode(errors="backslashreplace"),
        message=message,
    )
