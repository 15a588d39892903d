"""What the benchmark of masks measures besides its cells: long prefixes, walks, the lazy path, the reference engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.mask_results import Extra, Results, table

KINDS = ("growth", "lazy", "reference", "soak")
CANDIDATES = 100  # tokens that the reference engine is asked about after each prefix
PREFIXES = 4  # of each text that it reads

Found = list[Extra]


def of(results: Results, kind: str) -> Found:
    """Those of one kind."""
    return [extra for extra in results.extras if extra.kind == kind]


def growth(found: Found) -> list[str]:
    """Long prefixes."""
    return table(
        ["grammar", "input", "engine", "after 100 ms", "after 2,000 ms", "ratio"],
        (
            [
                *(extra.about[key] for key in ("grammar", "input", "engine")),
                f"{extra.figures['early_ms']:.2f}",
                f"{extra.figures['late_ms']:.2f}",
                f"{extra.figures['late_ms'] / extra.figures['early_ms']:.2f}",
            ]
            for extra in found
        ),
    )


def lazy(found: Found) -> list[str]:
    """Greedy decoding without masks."""
    return table(
        ["grammar", "input", "mean ms", "median ms", "p99 ms", "max ms", "tokens tried in vain"],
        (
            [
                extra.about["grammar"],
                kind,
                *(f"{figures[key]:.3f}" for key in ("mean", "median", "p99", "max")),
                f"{figures['rank']:.1f}",
            ]
            for extra in found
            for kind, figures in extra.figures["passes"].items()
        ),
    )


def reference(found: Found) -> list[str]:
    """The reference engine and ours on the small grammars that both read."""
    return table(
        ["input", "tokens", "a candidate ms", "so a mask s", "our mask ms", "ratio"],
        (
            [
                extra.about["input"],
                str(extra.figures["tokens"]),
                f"{extra.figures['candidate_ms']:.3f}",
                f"{extra.figures['candidate_ms'] * extra.figures['tokens'] / 1e3:.1f}",
                f"{extra.figures['ours_ms']:.3f}",
                f"{extra.figures['candidate_ms'] * extra.figures['tokens'] / extra.figures['ours_ms']:.0f}",
            ]
            for extra in found
        ),
    )


def soak(found: Found) -> list[str]:
    """Random walks."""
    rows = []
    for extra in found:
        points = extra.figures["points"]
        middle = points[len(points) // 2]
        rows.append(
            [
                extra.about["grammar"],
                str(points[-1]["masks"]),
                *(f"{point['held_mb']:.0f}" for point in (points[0], middle, points[-1])),
                f"{points[-1]['held_mb'] / middle['held_mb']:.2f}",
                f"{points[-1]['cache_mb']:.0f}",
            ]
        )
    head = ["grammar", "masks", "held MB at first", "half-way", "at the end", "end / half-way", "own report MB"]
    return table(head, rows)


SECTIONS: dict[str, tuple[str, str, Callable[[Found], list[str]]]] = {
    "growth": (
        "Long prefixes",
        "A step, mask and feed, after 100 and after 2,000 lexemes of texts whose scope does not grow: means over the"
        " steps there, each the median of some passes.",
        growth,
    ),
    "lazy": (
        "Lazy greedy decoding",
        "CPU time of the oracle for a token, choice and feed, on SmolLM2's own scores: along programs whose tokens are"
        " given, twice, and then decoding freely from a quarter of each.",
        lazy,
    ),
    "reference": (
        "The reference engine",
        f"aufbau-rs reads small grammars only and has no mask over a vocabulary: it is asked about {CANDIDATES} tokens"
        f" of the vocabulary, evenly spaced, after {PREFIXES} prefixes of a text, and a whole mask is that many times"
        " the mean. Ours is the mean mask of the second pass over the same text and grammar.",
        reference,
    ),
    "soak": (
        "Random walks",
        "Memory along walks that draw admitted tokens at random and start afresh when they are long; half of the draws"
        " are among tokens of at most two bytes. `soak.svg` shows the curve.",
        soak,
    ),
}


def markdown(results: Results) -> list[str]:
    """The sections that were measured."""
    lines: list[str] = []
    for kind in KINDS:
        found = of(results, kind)
        title, words, section = SECTIONS[kind]
        if found:
            lines += [f"## {title}", "", words, "", *section(found)]
    return lines


def plot(results: Results, path: Path) -> None:
    """The memory of the walks, where they were measured."""
    from matplotlib.figure import Figure

    found = of(results, "soak")
    if not found:
        return
    figure = Figure(figsize=(6.4, 4.2))
    axes = figure.subplots()
    for number, extra in enumerate(found):
        points = extra.figures["points"]
        masks = [point["masks"] for point in points]
        for key, style, words in (("held_mb", "-", "process"), ("cache_mb", ":", "mask caches")):
            label = f"{extra.about['grammar']}, {words}"
            axes.plot(masks, [point[key] for point in points], style, color=f"C{number}", label=label)
    axes.set(xlabel="masks", ylabel="MB above the beginning", ylim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
