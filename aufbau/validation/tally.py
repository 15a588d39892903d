"""Sums up walks along programs: which prefixes were completed, and what stands against the rest; JSON and Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from aufbau.validation.corpora import Language
from aufbau.validation.everywhere import Fate, Stray, Walk
from aufbau.validation.page import LISTED, cell
from aufbau.validation.statistics import Share

_COMPILERS = {Language.ML: "`ocamlc -c`", Language.C: "`cc -fsyntax-only`"}
_FAULTS = (Fate.OVERRULED, Fate.REFUSED)


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """The walks along the programs of one set."""

    name: str
    tasks: int
    walks: int
    satisfied: int  # programs that the grammar takes as a whole
    failures: int  # programs that the oracle gave up
    whole: Share  # programs all of whose prefixes are accepted
    fates: dict[Fate, int]
    searches: int
    compiled: int
    seconds: float

    @classmethod
    def of(cls, name: str, walks: Sequence[Walk], tasks: int) -> Group:
        """Over the walks of one set."""
        fates: Counter[str] = Counter()
        for walk in walks:
            fates.update(walk.fates)
        return cls(
            name=name,
            tasks=tasks,
            walks=len(walks),
            satisfied=sum(walk.verdict == "satisfied" for walk in walks),
            failures=sum(bool(walk.failure) for walk in walks),
            whole=Share(count=sum(walk.whole for walk in walks), total=len(walks)),
            fates={fate: fates[fate.value] for fate in Fate if fates[fate.value]},
            searches=sum(walk.searches for walk in walks),
            compiled=sum(walk.compiled for walk in walks),
            seconds=sum(walk.seconds for walk in walks),
        )

    @property
    def prefixes(self) -> int:
        """How many prefixes were tried."""
        return sum(self.fates.values())

    def to_json(self) -> dict[str, object]:
        """The group as plain data."""
        data = asdict(self) | {
            "whole": self.whole.to_json(),
            "fates": {fate.value: count for fate, count in self.fates.items()},
            "seconds": round(self.seconds, 1),
        }
        return {"prefixes": self.prefixes} | data


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """The outcome of a run over every prefix."""

    grammar: str
    language: Language
    covered: bool  # whether the grammar is proved to have no dead ends
    steps: int  # of a first search
    again: int  # of a second one
    groups: tuple[Group, ...]
    strays: tuple[tuple[Stray, int], ...]  # each with the number of programs that begin so
    contradicted: int  # prefixes said to have no completion, of programs that are one
    failures: tuple[tuple[str, str], ...]  # programs that the oracle gave up, with the reason

    @classmethod
    def of(
        cls,
        grammar: str,
        language: Language,
        *,
        covered: bool,
        steps: int,
        again: int,
        walks: Sequence[Walk],
        tasks: dict[str, int],
    ) -> Tally:
        """Over the walks; `tasks` tells how many programs each set has."""
        return cls(
            grammar=grammar,
            language=language,
            covered=covered,
            steps=steps,
            again=again,
            groups=tuple(
                Group.of(name, [walk for walk in walks if walk.origin == name], count) for name, count in tasks.items()
            ),
            strays=_strays(walks),
            contradicted=sum(walk.fates.get(Fate.DENIED.value, 0) for walk in walks if walk.verdict == "satisfied"),
            failures=tuple((f"{w.origin} {w.index}: {w.name}", w.failure) for w in walks if w.failure),
        )

    @property
    def faults(self) -> int:
        """Prefixes that count against the grammar or the engine, and programs that were given up.

        Where there is a proof against dead ends, all count that have no accepted completion.
        """
        counts: Counter[Fate] = Counter()
        for group in self.groups:
            counts.update(group.fates)
        kinds = [fate for fate in Fate if fate is not Fate.ACCEPTED] if self.covered else _FAULTS
        return sum(counts[kind] for kind in kinds) + (not self.covered) * self.contradicted + len(self.failures)

    def to_json(self) -> dict[str, object]:
        """The tally as plain data."""
        return {
            "grammar": self.grammar,
            "language": self.language.value,
            "covered": self.covered,
            "steps": self.steps,
            "again": self.again,
            "complete": all(group.walks == group.tasks for group in self.groups),
            "faults": self.faults,
            "contradicted": self.contradicted,
            "sets": {group.name: group.to_json() for group in self.groups},
            "strays": [asdict(stray) | {"programs": count} for stray, count in self.strays],
            "failures": dict(self.failures),
        }


def _strays(walks: Iterable[Walk]) -> tuple[tuple[Stray, int], ...]:
    """Each stray once, as the program has it that follows it furthest; what is refused comes first."""
    programs: Counter[str] = Counter()
    found: dict[str, Stray] = {}
    for walk in walks:
        for stray in walk.strays:
            programs[stray.prefix] += 1
            found[stray.prefix] = max(found.get(stray.prefix, stray), stray, key=lambda known: known.prefixes)
    order = [fate.value for fate in (*_FAULTS, Fate.UNASKED, Fate.DENIED, Fate.UNKNOWN)]
    strays = sorted(found.values(), key=lambda stray: (order.index(stray.fate), stray.prefix))
    return tuple((stray, programs[stray.prefix]) for stray in strays)


def markdown(tally: Tally) -> str:
    """The tally for readers."""
    proof = "is proved to have no dead ends" if tally.covered else "is not proved to have no dead ends"
    lines = [f"# {tally.grammar}: a completion of every byte prefix", ""]
    done, tasks = sum(group.walks for group in tally.groups), sum(group.tasks for group in tally.groups)
    if done < tasks:
        lines += [f"**{done} of {tasks} programs, drawn at random.** `--resume` goes on with the others.", ""]
    lines += [
        f"The grammar {proof}. `witness()` was asked at every byte prefix of the programs that is not LOST,",
        f"the empty one and the program itself included, with {tally.steps} steps and, where it then found nothing,",
        f"with {tally.again}. A completion that was found serves longer prefixes too, as long as it agrees with them.",
        "It is accepted when the oracle, started anew on the whole, is SATISFIED, and",
        f"{_COMPILERS[tally.language]} accepts it.",
        "",
        f"Faults: **{tally.faults}**. Shares with 95% Wilson intervals.",
        "",
    ]
    for group in tally.groups:
        lines += _section(group)
    if tally.failures:
        lines += ["## Programs that were given up", ""]
        lines += [*(f"- {cell(name)}: {cell(reason)}" for name, reason in tally.failures), ""]
    for fate in Fate:
        listed = [(stray, programs) for stray, programs in tally.strays if stray.fate == fate.value]
        if listed:
            lines += _listing(fate, listed)
    return "\n".join(lines)


def _section(group: Group) -> list[str]:
    lines = [f"## {group.name}: {group.walks} programs of {group.tasks}", ""]
    lines.append(f"- satisfied as a whole: {group.satisfied}")
    lines.append(f"- programs with an accepted completion of every prefix: {group.whole}")
    lines.append(f"- prefixes: {group.prefixes}")
    lines += [f"  - {fate.value}: {count}" for fate, count in group.fates.items()]
    lines.append(f"- {group.searches} searches, {group.compiled} texts for the compiler")
    return [*lines, ""]


def _listing(fate: Fate, found: Sequence[tuple[Stray, int]]) -> list[str]:
    lines = [f"## Prefixes: {fate.value} ({len(found)})", ""]
    if len(found) > LISTED:
        lines += [f"The first {LISTED}; the JSON has all.", ""]
    lines += ["| prefix ends with | completion | message | programs |", "|---|---|---|---|"]
    for stray, programs in found[:LISTED]:
        cells = [stray.prefix[-60:], stray.completion, stray.message.split("\n")[0], str(programs)]
        lines.append("| " + " | ".join(cell(text) for text in cells) + " |")
    return [*lines, ""]
