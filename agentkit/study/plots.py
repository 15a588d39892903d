"""The plots of the report, after the paper's figures 4 to 7; matplotlib is needed for these alone."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentkit.modes import Mode
from agentkit.study.errors import StudyError
from agentkit.study.summary import Summary

# Colours that stay apart for colour-blind readers (Okabe and Ito).
BLUE, ORANGE, GREEN, RED, PURPLE, GREY, SKY = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#8a8a8a",
    "#56B4E9",
)
_FAMILY_COLOURS = {"stlc": BLUE, "fun": SKY, "ml": ORANGE, "c": GREEN, "tool": PURPLE}


def draw(summary: Summary, branching: Sequence[Mapping[str, object]], folder: Path) -> list[tuple[str, str]]:
    """Write each plot as PNG and SVG; returns their names with what they show, in the order of the paper.

    Raises `StudyError` where matplotlib is missing.
    """
    figures = _matplotlib()
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    plots: list[tuple[str, str, Callable[[Any], bool]]] = [
        (
            "differences",
            "Semantic minus syntactic, by model and language, with 95% intervals",
            lambda f: _differences(f, summary),
        ),
        ("outcomes", "Final outcomes by mode", lambda f: _outcomes(f, summary)),
        (
            "entropy",
            "Entropy before the mask where the first choice was admitted and refused",
            lambda f: _entropy(f, summary),
        ),
        (
            "branching",
            "Candidates that the oracle admits at a position of valid programs",
            lambda f: _branching(f, branching),
        ),
        ("thinking", "Thinking against mixed: tokens and passes", lambda f: _thinking(f, summary)),
        ("cost", "Time of the oracle for a token, beside the model's", lambda f: _cost(f, summary)),
    ]
    for name, caption, plot in plots:
        figure = figures.Figure(figsize=(9, 4), layout="constrained")
        if plot(figure):
            for suffix, settings in (("png", {"dpi": 150}), ("svg", {"metadata": {"Date": None}})):
                figure.savefig(folder / f"{name}.{suffix}", **settings)
            drawn.append((name, caption))
    return drawn


def _matplotlib() -> Any:
    try:
        matplotlib = importlib.import_module("matplotlib")
        figures = importlib.import_module("matplotlib.figure")
    except ModuleNotFoundError as error:
        raise StudyError(
            "plots need matplotlib; install it with: pip install 'aufbau[report]' (or report with --no-plots)"
        ) from error
    # Equal figures give equal files.
    matplotlib.rcParams["svg.hashsalt"] = "aufbau"
    matplotlib.rcParams["svg.fonttype"] = "none"
    matplotlib.rcParams["font.size"] = 9
    return figures


def _bare(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)


def _differences(figure: Any, summary: Summary) -> bool:
    found = [one for one in summary.differences if (one.first, one.second) == (Mode.DIRECT.value, Mode.SYNTACTIC.value)]
    if not found:
        return False
    panels = figure.subplots(1, len(summary.models), sharey=True, squeeze=False)[0]
    for axes, model in zip(panels, summary.models, strict=True):
        own = [one for one in found if one.group.model == model]
        for place, one in enumerate(own):
            low, high = one.paired.interval
            height = 100 * one.paired.difference
            error = [[height - 100 * low], [100 * high - height]]
            faint = 1.0 if one.of == "passed" else 0.45
            axes.bar(place, height, color=_FAMILY_COLOURS[one.group.family], alpha=faint, width=0.75)
            axes.errorbar(place, height, yerr=error, color="black", lw=0.8, capsize=2)
        axes.axhline(0, color="black", lw=0.8)
        labels = [f"{one.group.family}\n{one.group.kind if one.of == 'passed' else 'valid'}" for one in own]
        axes.set_xticks(range(len(own)), labels, rotation=60, ha="right", fontsize=7)
        axes.set_title(model, fontsize=9)
        _bare(axes)
    panels[0].set_ylabel("semantic minus syntactic (points)")
    return True


def _outcomes(figure: Any, summary: Summary) -> bool:
    if not summary.outcomes:
        return False
    parts = (
        ("satisfied, passed", "passed", GREEN),
        ("satisfied, failed", "failed", SKY),
        ("live at stop", "live", ORANGE),
        ("lost at stop", "lost", RED),
    )
    panels = figure.subplots(1, len(summary.models), sharey=True, squeeze=False)[0]
    for axes, model in zip(panels, summary.models, strict=True):
        own = [one for one in summary.outcomes if one.model == model]
        bottom = [0.0] * len(own)
        for label, name, colour in parts:
            heights = [100 * getattr(one, name) / one.total for one in own]
            axes.bar(range(len(own)), heights, bottom=bottom, color=colour, label=label, width=0.75)
            bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
        axes.set_xticks(range(len(own)), [f"{one.mode}\n({one.total})" for one in own], fontsize=7)
        axes.set_title(model, fontsize=9)
        _bare(axes)
    panels[0].set_ylabel("share of attempts (%)")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return True


def _entropy(figure: Any, summary: Summary) -> bool:
    found = [one for one in summary.uncertainty if one.accepted and one.rejected]
    if not found:
        return False
    axes = figure.subplots()
    for place, one in enumerate(found):
        axes.bar(
            place - 0.2, one.accepted_bits, color=BLUE, width=0.38, label="first choice admitted" if not place else None
        )
        axes.bar(
            place + 0.2, one.rejected_bits, color=RED, width=0.38, label="first choice refused" if not place else None
        )
    labels = [f"{one.model}\n{one.mode}, {100 * one.share:.1f}% refused" for one in found]
    axes.set_xticks(range(len(found)), labels, fontsize=7)
    axes.set_ylabel("entropy before the mask (bits)")
    axes.legend(frameon=False)
    _bare(axes)
    return True


def _branching(figure: Any, branching: Sequence[Mapping[str, object]]) -> bool:
    if not branching:
        return False
    colours = (RED, ORANGE, SKY, BLUE)
    panels = figure.subplots(1, 2)
    for axes, measure in zip(panels, ("lexemes", "tokens"), strict=True):
        own = [one for one in branching if one["measure"] == measure][::-1]
        for place, one in enumerate(own):
            shares = one["shares"]
            assert isinstance(shares, Mapping)
            left = 0.0
            for (name, value), colour in zip(shares.items(), colours, strict=True):
                axes.barh(place, 100 * float(value), left=left, color=colour, label=name if not place else None)
                left += 100 * float(value)
        axes.set_yticks(range(len(own)), [f"{one['language']} {one['oracle']}\nmean {one['mean']}" for one in own])
        axes.set_xlabel("share of positions (%)")
        axes.set_title("lexemes of the programs" if measure == "lexemes" else "tokens of a vocabulary", fontsize=9)
        _bare(axes)
    handles, labels = panels[0].get_legend_handles_labels()
    names = {"forced": "forced (1)", "tight": "tight (2 to 4)", "open": "open (5 to 16)", "wide": "wide (17 and more)"}
    figure.legend(handles, [names[label] for label in labels], loc="outside lower center", ncols=4, frameon=False)
    return True


def _thinking(figure: Any, summary: Summary) -> bool:
    costs = {(one.model, one.mode): one for one in summary.costs}
    rates = {(one.model, one.mode): (one.passed + one.passed_outside) / one.total for one in summary.outcomes}
    models = [model for model in summary.models if (model, "thinking") in costs and (model, "mixed") in costs]
    if not models:
        return False
    left, right = figure.subplots(1, 2, sharey=True)
    for place, model in enumerate(models):
        tokens = [costs[model, mode].generated for mode in ("thinking", "mixed")]
        passed = [100 * rates[model, mode] for mode in ("thinking", "mixed")]
        for axes, values in ((left, tokens), (right, passed)):
            axes.plot(values, [place, place], color=GREY, lw=1.5, zorder=1)
            axes.scatter(
                values[0],
                place,
                s=60,
                facecolors="white",
                edgecolors=PURPLE,
                lw=2,
                label="thinking" if not place else None,
            )
            axes.scatter(values[1], place, s=60, color=ORANGE, label="mixed" if not place else None, zorder=2)
    left.set_yticks(range(len(models)), models)
    left.set_ylim(-0.6, len(models) - 0.4)
    left.set_xlim(left=0)
    left.set_xlabel("mean generated tokens")
    right.set_xlim(0, 100)
    right.set_xlabel("passed, over all tasks (%)")
    right.legend(frameon=False)
    for axes in (left, right):
        _bare(axes)
    return True


def _cost(figure: Any, summary: Summary) -> bool:
    found = [one for one in summary.costs if one.generated and not math.isnan(one.overhead)]
    if not found:
        return False
    axes = figure.subplots()
    for place, one in enumerate(found):
        count = one.attempts * one.generated
        model, oracle = 1000 * one.model_s / count, 1000 * one.oracle_s / count
        axes.barh(place, model, color=BLUE, label="model" if not place else None)
        axes.barh(place, oracle, left=model, color=RED, label="oracle" if not place else None)
        axes.text(model + oracle, place, f" {100 * one.overhead:.1f}%", va="center", fontsize=7)
    axes.set_yticks(range(len(found)), [f"{one.model}, {one.mode}" for one in found], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("milliseconds for a token; beside it the oracle's share of the model's time")
    axes.legend(frameon=False)
    _bare(axes)
    return True
