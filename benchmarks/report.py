"""Turns measured points into slopes, a JSON file, a Markdown page and a log-log plot."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """The cost of one text to one engine."""

    engine: str
    grammar: str  # the file
    family: str
    mode: str  # how the text was fed
    size: int  # lexemes asked for
    lexemes: int  # lexemes that the largest text within that size has
    bytes: int
    median_s: float
    runs: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """A lexeme at the end of a ten-lexeme prefix against a whole prefix of a hundred.

    Kinds of lexeme differ in cost, so next to the tenth itself stands the mean of the last ones of those ten that
    make up one period of the family.
    """

    family: str
    tenth_s: float
    mean_s: float
    hundred_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """All that one run of the benchmark measured."""

    facts: dict[str, str]
    limit_s: float
    points: tuple[Point, ...]
    costs: tuple[Cost, ...]

    def curves(self) -> dict[tuple[str, str, str, str], list[Point]]:
        """The points by family, engine, grammar and mode, in the order measured."""
        curves: dict[tuple[str, str, str, str], list[Point]] = {}
        for point in self.points:
            curves.setdefault((point.family, point.engine, point.grammar, point.mode), []).append(point)
        return curves


def slope(points: Iterable[tuple[float, float]]) -> float:
    """The exponent of growth: the least-squares slope of log cost against log size."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    mean_x = sum(x for x, _ in logs) / len(logs)
    mean_y = sum(y for _, y in logs) / len(logs)
    spread = sum((x - mean_x) ** 2 for x, _ in logs)
    if spread == 0:
        raise ValueError("a slope needs two different sizes; measure more sizes")
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / spread


def machine() -> dict[str, str]:
    """What the figures depend on, and nothing that names the machine."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = models[0].partition(":")[2].strip() if models else cpu
    return {"cpu": cpu, "cores": str(os.cpu_count()), "system": platform.system()}


def _growth_table(report: Report) -> list[str]:
    sizes = sorted({point.size for point in report.points})
    lines = [
        "| family | engine | grammar | fed | " + " | ".join(f"{size}" for size in sizes) + " | slope |",
        "|---" * (len(sizes) + 5) + "|",
    ]
    for (family, engine, grammar, mode), points in sorted(report.curves().items()):
        costs = {point.size: f"{point.median_s * 1e3:.2f}" for point in points}
        grown = [(float(p.lexemes), p.median_s) for p in points]
        growth = f"{slope(grown):.2f}" if len(grown) > 1 else "-"
        cells = " | ".join(costs.get(size, "") for size in sizes)
        lines.append(f"| {family} | {engine} | {grammar} | {mode} | {cells} | {growth} |")
    return lines


def markdown(report: Report) -> str:
    """The page for people: facts, growth, cost per lexeme."""
    lines = ["# Cost of the oracle on the stress families", ""]
    lines += [f"- {name}: {value}" for name, value in report.facts.items()]
    lines += [
        "",
        "## Growth",
        "",
        "Median CPU milliseconds for the largest text of at most so many lexemes. The slope is log-log.",
        "The reference engine does not load ml.auf and c.auf, so for these it reads a small grammar of the same texts,",
        "which our engine is measured on too. In C the application chain is of calls in calls.",
        f"A row that ends early took more than {report.limit_s:.0f} s for all runs of its next size.",
        "",
        *_growth_table(report),
        "",
        "## Cost of a lexeme",
        "",
        "µs of CPU time; linear growth keeps a hundred lexemes at or below 100 times one of the first ten.",
        "The mean is over the last of ten lexemes that make up one period of the family (a whole declaration, say).",
        "",
        "| family | the tenth | mean of the last of ten | a hundred | hundred / tenth | hundred / mean |",
        "|---|---|---|---|---|---|",
    ]
    for cost in report.costs:
        times = " | ".join(f"{s * 1e6:.0f}" for s in (cost.tenth_s, cost.mean_s, cost.hundred_s))
        ratios = f"{cost.hundred_s / cost.tenth_s:.0f} | {cost.hundred_s / cost.mean_s:.0f}"
        lines.append(f"| {cost.family} | {times} | {ratios} |")
    return "\n".join(lines) + "\n"


def plot(report: Report, path: Path) -> None:
    """One log-log panel a family, one line an engine and way of feeding."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    families = list(dict.fromkeys(point.family for point in report.points))
    columns = min(len(families), 4)
    rows = -(-len(families) // columns)
    figure, axes = pyplot.subplots(rows, columns, figsize=(4.2 * columns, 4 * rows), squeeze=False)
    for axis, family in zip(axes.flat, families, strict=False):
        for (name, engine, grammar, mode), points in report.curves().items():
            if name == family:
                _line(axis, f"{engine}, {grammar}, {mode}", points)
        axis.set(title=family, xlabel="lexemes", xscale="log", yscale="log")
        sizes = sorted({point.size for point in report.points})
        axis.set_xticks(sizes, labels=[str(size) for size in sizes], fontsize=8)
        axis.set_xticks([], minor=True)
        axis.legend(fontsize=6)
    axes[0][0].set_ylabel("median ms")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def _line(axis: object, label: str, points: Sequence[Point]) -> None:
    draw = getattr(axis, "plot")  # noqa: B009  (matplotlib ships no types)
    draw([p.lexemes for p in points], [p.median_s * 1e3 for p in points], marker="o", label=label)


def write(report: Report, folder: Path) -> None:
    """Write stress.json, stress.md and stress.svg."""
    folder.mkdir(parents=True, exist_ok=True)
    data = json.dumps(asdict(report), indent=1, ensure_ascii=False)
    (folder / "stress.json").write_text(data + "\n", encoding="utf-8")
    (folder / "stress.md").write_text(markdown(report), encoding="utf-8")
    plot(report, folder / "stress.svg")
