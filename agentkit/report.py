"""How runs look in a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agentkit.evaluation import Outcome, Summary
from episodes import Bindings, Episode, Turn, short

_SHOWN = 200
"""Characters of one value, before it is cut with its size stated."""


def show_episode(console: Console, episode: Episode) -> None:
    """What the run is about."""
    console.print(Text(episode.name, style="bold"))
    console.print(Text(episode.prompt.strip()))
    if episode.bindings:
        console.print(_line("Γ", _scope(episode.bindings), "cyan"))


def show_turn(console: Console, turn: Turn, bindings: Bindings) -> None:
    """One turn: thought, step, value, and Γ after it."""
    console.print(Text(f"turn {turn.number}", style="bold dim"))
    if turn.thought:
        console.print(_line("thought", turn.thought, "italic"))
    console.print(_line("step", turn.text or "(nothing)", "green" if turn.error is None else "red"))
    if turn.error is not None:
        console.print(_line("refused" if turn.step is None else "failed", turn.error, "red"))
    elif turn.result is not None:
        console.print(_line("value", turn.observation, "yellow"))
    else:
        console.print(_line("note", turn.observation, "magenta"))
    console.print(_line("Γ", _scope(bindings), "cyan"))


def show_outcome(console: Console, outcome: Outcome) -> None:
    """The graded end of a run, and what it cost."""
    result = outcome.result
    if outcome.error is not None:
        console.print(_line("stopped", outcome.error, "red"))
    else:
        console.print(_line("output", short(result.output, characters=_SHOWN), "bold"))
    if result.grade is not None:
        verdict = "passed" if result.grade.passed else "not passed"
        console.print(_line(verdict, result.grade.reason, "bold green" if result.grade.passed else "bold red"))
    usage, timing = result.usage, result.timing
    console.print(
        Text(
            f"{usage.turns} turns, {usage.tool_calls} tool calls, {usage.generated_tokens} tokens; "
            f"model {timing.model_s:.2f} s, oracle {timing.oracle_s:.3f} s, tools {timing.tools_s:.3f} s",
            style="dim",
        )
    )


def outcome_table(outcomes: Iterable[Outcome]) -> Table:
    """One row for each episode."""
    table = Table(title="Episodes", box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("episode", "turns", "tokens", "output", "passed"):
        table.add_column(heading, justify="right" if heading in ("turns", "tokens") else "left")
    for outcome in outcomes:
        result = outcome.result
        output = short(result.output, characters=40) if outcome.error is None else result.stop_reason.value
        table.add_row(
            Text(result.episode),
            str(result.usage.turns),
            str(result.usage.generated_tokens),
            Text(output),
            Text("yes", style="green") if outcome.passed else Text("no", style="red"),
        )
    return table


def summary_table(summaries: Iterable[Summary]) -> Table:
    """One row for each mode; the last figure is the same for a token as for all of them."""
    table = Table(title="Summary", box=SIMPLE_HEAD, pad_edge=False)
    headings = (
        "mode",
        "episodes",
        "steps",
        "well typed",
        "expected value",
        "tokens",
        "model s",
        "oracle s",
        "oracle / model",
    )
    for heading in headings:
        left = heading == "mode"
        table.add_column(heading, justify="left" if left else "right", min_width=13 if left else None)
    for one in summaries:
        table.add_row(
            one.mode.value,
            str(one.episodes),
            str(one.executed),
            f"{one.well_typed_share:.0%}",
            f"{one.passed_share:.0%}",
            str(one.tokens),
            f"{one.model_s:.1f}",
            f"{one.oracle_s:.2f}",
            f"{one.oracle_ratio:.1%}",
        )
    return table


def _line(label: str, content: str, style: str) -> Text:
    # Text, not markup: values may hold brackets. Control characters could steer the terminal, so none is printed.
    safe = "".join(char if char.isprintable() or char == "\n" else "\N{REPLACEMENT CHARACTER}" for char in content)
    return Text.assemble((f"  {label:<10} ", "dim"), (safe, style))


def _scope(bindings: Bindings) -> str:
    return ", ".join(f"{name} : {kind.name}" for name, kind in bindings.types().items()) or "∅"
