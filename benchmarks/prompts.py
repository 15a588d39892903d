"""Measures the prompt variants: each variant in each mode over the episodes of a folder, on a real model.

Writes `benchmarks/results/prompts.json` and `prompts.md`, and prints the table.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from agentkit.agent import Agent
from agentkit.evaluation import Outcome, Summary, evaluate
from agentkit.limits import UsageLimits
from agentkit.models import Model, resolve_model
from agentkit.modes import Mode
from agentkit.prompts import PromptVariant
from episodes import Suite

RESULTS = Path(__file__).parent / "results"
HEADINGS = (
    "prompt", "mode", "finished", "expected value", "turns", "well-typed turns", "tokens", "model s", "oracle s",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurement:
    """One variant in one mode."""

    variant: PromptVariant
    outcomes: tuple[Outcome, ...]
    summary: Summary

    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        one = self.summary
        return (
            self.variant.name,
            one.mode.value,
            f"{one.returned}/{one.episodes}",
            f"{one.passed}/{one.episodes}",
            str(one.turns),
            f"{one.well_typed_share:.0%}",
            str(one.tokens),
            f"{one.model_s:.1f}",
            f"{one.oracle_s:.2f}",
        )

    def to_data(self) -> dict[str, object]:
        """The figures, with what each episode came to."""
        episodes = [
            {
                "episode": outcome.result.episode,
                "passed": outcome.passed,
                "stop_reason": outcome.result.stop_reason.value,
                "steps": [turn.text for turn in outcome.result.turns],
            }
            for outcome in self.outcomes
        ]
        return {"prompt": self.variant.name, **self.summary.to_data(), "runs": episodes}


async def measure(model: Model, variant: PromptVariant, mode: Mode, suite: Suite, turns: int) -> Measurement:
    """Run the suite once."""
    agent = Agent(model, mode=mode, prompt=variant, usage_limits=UsageLimits(turn_limit=turns, tokens_per_step=64))
    outcomes = await evaluate(agent, suite)
    return Measurement(variant=variant, outcomes=tuple(outcomes), summary=Summary.of(mode, outcomes))


def table(measurements: Sequence[Measurement]) -> str:
    """The measurements as a Markdown table."""
    rows = [HEADINGS, tuple("---" for _ in HEADINGS), *(one.cells() for one in measurements)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> int:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(prog="scripts/measure_prompts", description=__doc__)
    parser.add_argument("folder", nargs="?", default="examples/episodes")
    parser.add_argument("--model", default="default")
    parser.add_argument("--prompt", action="append", choices=[variant.name for variant in PromptVariant])
    parser.add_argument("--mode", action="append", choices=[mode.value for mode in Mode])
    parser.add_argument("--max-turns", type=int, default=8)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    suite, model = Suite.load(options.folder), resolve_model(options.model)
    variants = [PromptVariant[name] for name in options.prompt or PromptVariant.__members__]
    modes = [Mode(name) for name in options.mode or [Mode.DIRECT.value, Mode.UNCONSTRAINED.value]]
    measurements = []
    for variant in variants:
        for mode in modes:
            measurements.append(anyio.run(measure, model, variant, mode, suite, options.max_turns))
            print(" ".join(measurements[-1].cells()), file=sys.stderr, flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    data = {
        "model": model.name,
        "suite": suite.name,
        "max_turns": options.max_turns,
        "rows": [one.to_data() for one in measurements],
    }
    text = json.dumps(data, ensure_ascii=False, indent=1)
    (options.out / "prompts.json").write_text(text + "\n", encoding="utf-8")
    heading = f"# Prompt variants on {model.name}, {len(suite)} episodes, at most {options.max_turns} turns\n\n"
    (options.out / "prompts.md").write_text(f"{heading}{table(measurements)}\n", encoding="utf-8")
    print(table(measurements))
    return 0


if __name__ == "__main__":
    sys.exit(main())
