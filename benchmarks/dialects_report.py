"""What came of attempts in each dialect and mode: shares with intervals, and the paired differences."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from agentkit.modes import Mode
from agentkit.study.statistics import Paired, Share, mcnemar, mean_interval

ALL: Final = "all"
"""All parts, or all dialects, together."""

VERDICTS: Final = ("satisfied", "lost", "live")
FEWEST_RESAMPLED: Final = 5
"""Tasks; the bootstrap of fewer says nothing."""

COMMENTS: Final = ("//", ";", "<!--")
OUTSIDE: Final = ("agentdojo", "bfcl")


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What holds for all attempts of a file."""

    model: str
    turns: int
    step_tokens: int
    program_tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """One task in one dialect and mode."""

    part: str
    task: str
    dialect: str
    mode: str
    outcome: str
    """Why the run ended, as `StopReason` says."""

    finished: bool
    """There is a value, which the grader has judged."""

    passed: bool
    verdicts: tuple[str, ...]
    """Of the text of each turn, or of the program, by the oracle afterwards."""

    executed: int
    """Steps."""

    tokens: int
    model_s: float
    oracle_s: float
    seconds: float = 0.0
    error: str
    """The kind of the error that ended the attempt, and what it says; empty where there is none."""

    texts: tuple[str, ...]

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What tells attempts apart."""
        return self.part, self.task, self.dialect, self.mode

    @classmethod
    def parse(cls, line: str) -> Self:
        """The attempt of a JSON line."""
        data = json.loads(line)
        return cls(**{**data, "verdicts": tuple(data["verdicts"]), "texts": tuple(data["texts"])})


def whole_tasks(attempts: Iterable[Attempt]) -> list[Attempt]:
    """The attempts of tasks that have been attempted in as many ways as any: so all ways stand on the same tasks."""
    by_task: dict[tuple[str, str], list[Attempt]] = {}
    for attempt in attempts:
        by_task.setdefault((attempt.part, attempt.task), []).append(attempt)
    most = max(map(len, by_task.values()), default=0)
    return [attempt for made in by_task.values() if len(made) == most for attempt in made]


def summary(settings: Settings, attempts: Sequence[Attempt], skipped: Mapping[str, str]) -> dict[str, Any]:
    """All figures, as JSON has them. Only tasks that have been attempted in every way count."""
    counted = whole_tasks(attempts)
    parts = list(dict.fromkeys(one.part for one in counted))
    ways = list(dict.fromkeys(one.mode for one in counted))
    tasks = {part: list(dict.fromkeys(one.task for one in counted if one.part == part)) for part in parts}
    return {
        "settings": asdict(settings),
        "attempts": len(counted),
        "left_out": len(attempts) - len(counted),
        "skipped": {part: why for part, why in skipped.items() if part not in parts},
        "tasks": tasks,
        "rows": [_row(*place, group) for place, group in _groups(counted)],
        "pairs": [_pair(*place, group) for place, group in _pairs(counted)],
        "errors": _errors(counted),
        "no_steps": {mode: _no_steps([one for one in counted if one.mode == mode]) for mode in ways},
    }


def _groups(attempts: Sequence[Attempt]) -> Iterator[tuple[tuple[str, str, str], list[Attempt]]]:
    """The groups of pairs, apart by mode."""
    modes = list(dict.fromkeys(one.mode for one in attempts))
    for (part, dialect), group in _pairs(attempts):
        for mode in modes:
            yield (part, dialect, mode), [one for one in group if one.mode == mode]


def _pairs(attempts: Sequence[Attempt]) -> Iterator[tuple[tuple[str, str], list[Attempt]]]:
    """By part and dialect, with what all parts and all dialects come to together."""
    parts = list(dict.fromkeys(one.part for one in attempts))
    dialects = list(dict.fromkeys(one.dialect for one in attempts))
    for part in [*parts, ALL]:
        for dialect in [*dialects, ALL]:
            group = [one for one in attempts if part in (ALL, one.part) and dialect in (ALL, one.dialect)]
            yield (part, dialect), group


def _row(part: str, dialect: str, mode: str, group: Sequence[Attempt]) -> dict[str, Any]:
    verdicts = [verdict for one in group for verdict in one.verdicts]
    well_typed, lost, live = (verdicts.count(name) for name in VERDICTS)
    n = len(group)
    return {
        "part": part,
        "dialect": dialect,
        "mode": mode,
        "finished": Share(count=sum(one.finished for one in group), total=n).to_json(),
        "passed": Share(count=sum(one.passed for one in group), total=n).to_json(),
        "first": Share(count=sum(one.verdicts[:1] == VERDICTS[:1] for one in group), total=n).to_json(),
        "turns": len(verdicts),
        "well_typed": Share(count=well_typed, total=well_typed + lost).to_json(),
        "cut": live,
        "executed": sum(one.executed for one in group),
        "tokens": sum(one.tokens for one in group),
        "model_s": round(sum(one.model_s for one in group), 1),
        "oracle_s": round(sum(one.oracle_s for one in group), 1),
    }


def _pair(part: str, dialect: str, group: Sequence[Attempt]) -> dict[str, Any]:
    return {
        "part": part,
        "dialect": dialect,
        "finished": _difference([(one.key, one.finished) for one in group]),
        "passed": _difference([(one.key, one.passed) for one in group]),
    }


def _difference(outcomes: Sequence[tuple[tuple[str, str, str, str], bool]]) -> dict[str, Any]:
    """Direct less unconstrained.

    A task in several dialects is one observation: the interval is then the bootstrap's over tasks, not Newcombe's, and
    the test counts tasks that went better and worse, which for one dialect is McNemar's exact test.
    """
    by_mode: dict[str, dict[tuple[str, str, str], bool]] = {}
    for (part, task, dialect, mode), well in outcomes:
        by_mode.setdefault(mode, {})[part, task, dialect] = well
    direct, free = by_mode[Mode.DIRECT.value], by_mode[Mode.UNCONSTRAINED.value]
    paired = Paired.of((direct[key], free[key]) for key in direct)
    by_task: dict[tuple[str, str], list[int]] = {}
    for part, task, dialect in direct:
        gain = direct[part, task, dialect] - free[part, task, dialect]
        by_task.setdefault((part, task), []).append(gain)
    gains = [sum(one) / len(one) for one in by_task.values()]
    interval: tuple[float, float] | None = paired.interval
    if len(gains) < paired.total:
        interval = mean_interval(gains)[1:] if len(gains) >= FEWEST_RESAMPLED else None
    return {
        "pairs": paired.total,
        "direct_only": paired.first,
        "unconstrained_only": paired.second,
        "tasks_better": sum(gain > 0 for gain in gains),
        "tasks_worse": sum(gain < 0 for gain in gains),
        "difference": paired.difference,
        "interval": interval and list(interval),
        "p": mcnemar(sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)),
    }


def _errors(attempts: Iterable[Attempt]) -> dict[str, dict[str, int]]:
    """How often each kind of error ended an attempt, by mode."""
    counts: dict[str, dict[str, int]] = {}
    for one in attempts:
        if one.error:
            kinds = counts.setdefault(one.mode, {})
            kind = one.error.partition(":")[0]
            kinds[kind] = kinds.get(kind, 0) + 1
    return {mode: dict(sorted(kinds.items())) for mode, kinds in counts.items()}


def _no_steps(attempts: Iterable[Attempt]) -> dict[str, int]:
    """The texts that are no well-typed step or program: how many, how many of them are empty, how many comments."""
    texts = [
        text
        for one in attempts
        for text, verdict in zip(one.texts, one.verdicts, strict=True)
        if verdict != VERDICTS[0]
    ]
    comments = sum(text.startswith(COMMENTS) for text in texts)
    return {"texts": len(texts), "empty": texts.count(""), "comments": comments}


def page(figures: Mapping[str, Any]) -> str:
    """The figures as Markdown."""
    settings = figures["settings"]
    tasks = ", ".join(f"{part} {len(names)}" for part, names in figures["tasks"].items())
    left = f" {figures['left_out']} more attempts at tasks not finished in every way are left out." * bool(
        figures["left_out"]
    )
    lines = [
        f"# Dialects: {settings['model']}, constrained against unconstrained",
        "",
        f"{figures['attempts']} attempts, greedy, paired by task and dialect. Tasks: {tasks}.{left} At most "
        f"{settings['turns']} turns of {settings['step_tokens']} tokens; programs have {settings['program_tokens']} "
        "tokens. Made by `scripts/bench dialects`; `dialects.jsonl` has every attempt with its text.",
        "",
        "Parts: `suite` is `examples/episodes`; `programs` is `benchmarks/tool_programs.toml`, one answer each, graded "
        "by value; `agentdojo` and `bfcl` are the tasks named below, graded by the packages' own checkers. *First "
        "text*: attempts whose first step, or program, is well typed, judged again by the oracle. *All texts*: of "
        "those that are whole or wrong, the well-typed ones; *cut*: those that stop before their end, or are empty. "
        "Intervals are Wilson's, 95%; texts of one run, and a task in three dialects, are not independent, so they are "
        "too narrow where these are counted together.",
        "",
    ]
    lines += _shares(figures["rows"])
    lines += ["", "## Direct less unconstrained", ""]
    lines += [
        "In one dialect Newcombe's interval for paired shares and McNemar's exact test; over all dialects the "
        "bootstrap's interval over tasks, from five tasks on, and the exact sign test of tasks that went better or "
        "worse. *By one only*, *tasks* and *p* are of what passed.",
        "",
    ]
    lines += _differences(figures["pairs"])
    lines += ["", "## What ended attempts without a value", ""]
    for mode, kinds in figures["errors"].items():
        lines.append(f"- {mode}: " + ", ".join(f"{kind} {count}" for kind, count in kinds.items()))
    lines += [
        f"- {mode}: {one['texts']} texts are no well-typed step or program; {one['empty']} of them are empty, and "
        f"{one['comments']} are comments, as the prompt shows refused steps"
        for mode, one in figures["no_steps"].items()
        if one["texts"]
    ]
    lines += ["", "## Outside tasks", ""]
    for part, names in figures["tasks"].items():
        if part in OUTSIDE:
            lines.append(f"- {part}: {', '.join(names)}")
    lines += [f"- {part}: skipped, {why}" for part, why in figures["skipped"].items()]
    return "\n".join(lines) + "\n"


def _shares(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """A row for each part, dialect and mode."""
    return _table(
        ("part", "dialect", "mode", "finished", "passed", "first text", "all texts", "cut", "executed steps", "tokens"),
        (
            (
                row["part"],
                row["dialect"],
                row["mode"],
                _share(row["finished"]),
                _share(row["passed"]),
                _share(row["first"]),
                _share(row["well_typed"]),
                str(row["cut"]),
                str(row["executed"]),
                str(row["tokens"]),
            )
            for row in rows
        ),
    )


def _differences(pairs: Iterable[Mapping[str, Any]]) -> list[str]:
    """A row for each part and dialect."""
    return _table(
        ("part", "dialect", "pairs", "finished", "passed", "by one only", "tasks better, worse", "p"),
        (
            (
                row["part"],
                row["dialect"],
                str(row["passed"]["pairs"]),
                _points(row["finished"]),
                _points(row["passed"]),
                f"{row['passed']['direct_only']}, {row['passed']['unconstrained_only']}",
                f"{row['passed']['tasks_better']}, {row['passed']['tasks_worse']}",
                f"{row['passed']['p']:.3g}",
            )
            for row in pairs
        ),
    )


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (headings, ["---"] * len(headings), *rows)]


def _share(share: Mapping[str, Any]) -> str:
    if not share["total"]:
        return "0/0"
    low, high = share["interval"]
    return f"{share['count']}/{share['total']} = {share['share']:.0%} [{low:.0%}, {high:.0%}]"


def _points(one: Mapping[str, Any]) -> str:
    points = f"{100 * one['difference']:+.0f} points"
    if one["interval"] is None:
        return points
    low, high = one["interval"]
    return f"{points} [{100 * low:+.0f}, {100 * high:+.0f}]"
