"""Measures what the turns of one long episode cost: tokens of the prompt that are read, and time, turn by turn.

    scripts/bench turns [--turns 20] [--model default]

The episode climbs a ladder of types: each rung's tool takes what the one below gave, and the last rung is returned, so
that with as many turns as rungs no step can be left out or taken twice. The prompt grows with every turn; the model
should read only what is new, and the oracle should not care how long Γ is. Writes `benchmarks/results/turns.json` and
`turns.md`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agentkit import Agent, TurnTelemetry, UsageLimits
from agentkit.models import Model, resolve_model
from benchmarks.report import machine
from registry import Handle, Registry, tool, type_from_hint

RESULTS = Path(__file__).parent / "results"
COLUMNS = ("turn", "prompt tokens", "read", "written", "model ms a token", "oracle ms a token")


def ladder(rungs: int) -> tuple[Registry, type[Handle]]:
    """Tools from the ground to the last rung, each of a type of its own, and what the last one gives."""
    tools: list[Callable[..., Any]] = []
    below: type[Handle] | None = None
    for number in range(1, rungs + 1):
        rung: type[Handle] = type(f"Rung{number}", (Handle,), {"__doc__": f"Rung {number}."})
        tools.append(tool(_climb(number, below, rung)))
        below = rung
    assert below is not None, "a ladder has a rung"
    return Registry(tools), below


def _climb(number: int, below: type[Handle] | None, rung: type[Handle]) -> Callable[..., Handle]:
    def climb(**rungs: object) -> Handle:
        return rung()

    scope: dict[str, Any] = {"Below": below, "Rung": rung, "climb": climb}
    parameter = "" if below is None else "below: Below"
    exec(f'def climb_{number}({parameter}) -> Rung:\n    """Climb to rung {number}."""\n    return climb()', scope)
    made: Callable[..., Handle] = scope[f"climb_{number}"]
    return made


def climbed(model: Model, turns: int) -> tuple[TurnTelemetry, ...]:
    """The turns of one run up the ladder, which takes all of them. Raises what `Agent.run` raises."""
    registry, top = ladder(turns - 1)
    agent = Agent(
        model,
        tools=registry,
        output_type=type_from_hint(top),
        usage_limits=UsageLimits(turn_limit=turns, tokens_per_step=64),
    )
    result = agent.run_sync(f"Climb all {turns - 1} rungs, one after the other, and return the last one.")
    assert isinstance(result.output, top) and len(result.telemetry) == turns, "no step can be left out"
    return result.telemetry


def cells(turn: TurnTelemetry) -> tuple[str, ...]:
    """The row of a turn."""
    written = max(1, len(turn.tokens))
    usage = turn.usage
    return (
        str(turn.number), str(usage.prompt_tokens), str(usage.prefilled_tokens), str(len(turn.tokens)),
        f"{1e3 * turn.model_s / written:.1f}", f"{1e3 * turn.oracle_s / written:.2f}",
    )  # fmt: skip


def table(turns: Sequence[TurnTelemetry]) -> str:
    """A row for each turn, and what the later half of the turns took next to the earlier one."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|" + "---:|" * len(COLUMNS)]
    lines += [f"| {' | '.join(cells(turn))} |" for turn in turns]
    # The first turn reads the whole prompt, and works out what the later ones find.
    later = turns[1:]
    half = len(later) // 2
    ratios = [
        ("tokens read", _means(later[:half], _read), _means(later[half:], _read)),
        ("oracle ms a token", _means(later[:half], _oracle_ms), _means(later[half:], _oracle_ms)),
    ]
    lines += ["", "| mean of a turn | turns of the first half, without the first | second half |", "|---|---:|---:|"]
    lines += [f"| {name} | {first:.2f} | {second:.2f} |" for name, first, second in ratios]
    return "\n".join(lines)


def _read(turn: TurnTelemetry) -> float:
    return turn.usage.prefilled_tokens


def _oracle_ms(turn: TurnTelemetry) -> float:
    return 1e3 * turn.oracle_s / max(1, len(turn.tokens))


def _means(turns: Sequence[TurnTelemetry], figure: Callable[[TurnTelemetry], float]) -> float:
    return statistics.fmean(map(figure, turns)) if turns else 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=20, metavar="N")
    parser.add_argument("--model", default="default", metavar="SPEC")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FOLDER")
    asked = parser.parse_args(arguments)
    model = resolve_model(asked.model)
    turns = climbed(model, asked.turns)
    facts = {"model": model.name, **machine()}
    text = "\n".join(
        [
            "# What the turns of one episode cost",
            "",
            f"{asked.turns} turns of {model.name}, greedy, every token under the oracle (`scripts/bench turns`).",
            "*Read* are the tokens of the prompt that are not in the model's cache: those of the last step and its",
            "observation. Times are wall times.",
            "",
            table(turns),
            "",
            f"({', '.join(f'{name}: {value}' for name, value in facts.items())})",
            "",
        ]
    )
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "turns.md").write_text(text, encoding="utf-8")
    data = {"facts": facts, "turns": [turn.to_data() for turn in turns]}
    (asked.out / "turns.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
