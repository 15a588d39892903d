"""Measures many episodes at once on one local model, next to the same ones one at a time.

    python -m benchmarks.concurrency [--episodes N] [--apart N] [--at-once N] [--turns N] [--tokens N] [--threads N]

The episodes of `examples/episodes` are repeated; three of them are replaced: in one a tool hangs until its time limit,
in one a tool raises, and one is cancelled in the middle of a step. Decoding is greedy, by a model
that shares prefixes between sessions; a part of the episodes also by one that does not, and by one whose results are
reproducible. What the episodes come to is compared token for token, and how far the probabilities of equal choices
differ tells the noise of rounding in company. Before that, passes over single tokens of several sequences are timed.
Writes `benchmarks/results/concurrency.json` and `concurrency.md`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import anyio
import numpy as np

from agentkit import Agent, RunError, RunResult, TokenGenerated, UsageLimits
from agentkit.models import TransformersModel, default_model
from agentkit.models.packed import pack
from benchmarks.report import machine
from episodes import Episode, Suite
from registry import Registry, tool, type_from_hint

RESULTS = Path(__file__).parent / "results"
CANCELLED_AFTER = 3  # tokens


class Report:
    """What only the tools that fail would make."""


@tool
async def hang(topic: str) -> Report:
    """Never come back."""
    await anyio.sleep_forever()
    raise AssertionError


@tool
def burst(topic: str) -> Report:
    """Raise an error."""
    raise RuntimeError("the disk is full")


@dataclass(frozen=True, kw_only=True, slots=True)
class Came:
    """What one episode came to."""

    episode: str
    stop: str
    texts: tuple[str, ...]
    tokens: tuple[int | None, ...]
    logprobs: tuple[float, ...]
    prefilled: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """All episodes, run in one way."""

    at_once: int
    setting: str
    wall_s: float
    cpu_s: float
    came: tuple[Came, ...]

    @property
    def generated(self) -> int:
        """Tokens chosen."""
        return sum(len(one.tokens) for one in self.came)

    @property
    def prefilled(self) -> int:
        """Tokens of prompts that were read."""
        return sum(one.prefilled for one in self.came)

    def row(self, base: Way) -> str:
        """A line of the table, compared with one at a time."""
        figures = [
            str(self.at_once),
            self.setting,
            str(len(self.came)),
            str(self.generated),
            str(self.prefilled),
            f"{self.wall_s:.1f}",
            f"{self.cpu_s:.1f}",
            f"{len(self.came) / self.wall_s * 60:.1f}",
            f"{base.wall_s / self.wall_s:.2f}",
            f"{base.cpu_s / self.cpu_s:.2f}",
        ]
        return f"| {' | '.join(figures)} |"


HEADINGS = (
    "at once", "setting", "episodes", "tokens", "tokens of prompts read", "wall s", "CPU s",
    "episodes a minute", "faster, wall", "faster, CPU",
)  # fmt: skip


def episodes(count: int) -> list[Episode]:
    """The built-in suite, repeated, with a hanging tool, a raising one and a run to be cancelled among them."""
    suite = Suite.load("examples/episodes")
    found = [replace(one, name=f"{number:02d} {one.name}") for number, one in enumerate(islice(cycle(suite), count))]
    output = type_from_hint(Report)
    for place, name in ((count // 5, "hang"), (count // 2, "burst")):
        found[place] = Episode(
            name=f"{place:02d} {name}",
            prompt="Get the report on coffee.",
            registry=Registry([hang, burst]),
            tools=(name,),
            output_type=output,
        )
    place = 4 * count // 5
    found[place] = replace(found[place], name=f"{place:02d} cancelled")
    return found


async def run(agent: Agent, episode: Episode) -> Came:
    """Run one episode to its end, or to where it is cancelled."""
    heard = 0
    records = []
    with anyio.CancelScope() as scope:

        def hear(event: object) -> None:
            nonlocal heard
            if isinstance(event, TokenGenerated):
                records.append(event.token)
                heard += 1
                if heard == CANCELLED_AFTER and episode.name.endswith("cancelled"):
                    scope.cancel()

        result: RunResult | None = None
        try:
            result = await agent.run(episode, on_event=hear)
        except RunError as error:
            result = error.result
    return Came(
        episode=episode.name,
        stop="cancelled" if result is None else result.stop_reason.value,
        texts=() if result is None else tuple(turn.text for turn in result.turns),
        # One token may have been on its way when the run was cancelled.
        tokens=tuple(record.token for record in records[: CANCELLED_AFTER if result is None else None]),
        logprobs=tuple(record.logprob for record in records),
        prefilled=0 if result is None else result.usage.prefilled_tokens,
    )


def measure(
    model: TransformersModel, setting: str, asked: argparse.Namespace, tasks: Sequence[Episode], at_once: int
) -> Way:
    """Run them all, so many at once."""
    _ = model.reads_alone  # which tries the model; not to be measured
    limits = UsageLimits(turn_limit=asked.turns, tokens_per_step=asked.tokens, tool_timeout=2.0)
    agent = Agent(model, usage_limits=limits)
    came: dict[str, Came] = {}

    async def main() -> None:
        places = anyio.CapacityLimiter(at_once)

        async def one(task: Episode) -> None:
            async with places:
                came[task.name] = await run(agent, task)

        async with anyio.create_task_group() as group:
            for task in tasks:
                group.start_soon(one, task)

    wall, cpu = time.perf_counter(), time.process_time()
    anyio.run(main)
    return Way(
        at_once=at_once,
        setting=setting,
        wall_s=time.perf_counter() - wall,
        cpu_s=time.process_time() - cpu,
        came=tuple(came[task.name] for task in tasks),
    )


def passes(model: TransformersModel, held: int = 300, rounds: int = 6) -> dict[int, float]:
    """CPU seconds of a pass that reads one token for each of so many sequences, of `held` tokens before."""
    costs: dict[int, float] = {}
    packing = pack(model._model, max_batch=32, share_prefixes=True)
    text = np.random.default_rng(0).integers(100, 10_000, held + 1).tolist()
    first = packing.reader()
    first.extend(text)
    for size in (1, 2, 4, 8, 16, 32):
        readers = [packing.reader() for _ in range(size)]
        for reader in readers:
            reader.rewind(text)
        packing.read([(reader, text[-1:]) for reader in readers])
        begun = time.process_time()
        for _ in range(rounds):
            packing.read([(reader, text[-1:]) for reader in readers])
        costs[size] = (time.process_time() - begun) / rounds
    return costs


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """Two ways of the same episodes, episode for episode."""

    episodes: int
    equal: int
    tokens: int
    different: tuple[str, ...]
    noise: float
    """The largest difference of the logarithms of probabilities of equal choices."""

    stops: dict[str, str]

    @classmethod
    def of(cls, alone: Way, company: Way) -> Comparison:
        """Compare what came of them."""
        pairs = list(zip(alone.came, company.came, strict=True))
        same = [(one, other) for one, other in pairs if (one.tokens, one.texts) == (other.tokens, other.texts)]
        noise = [
            abs(first - second)
            for one, other in same
            for first, second in zip(one.logprobs, other.logprobs, strict=False)
        ]
        odd = {
            other.episode: other.stop
            for _, other in pairs
            if other.episode.split()[1] in ("hang", "burst", "cancelled")
        }
        return cls(
            episodes=len(pairs),
            equal=len(same),
            tokens=sum(len(one.tokens) for one, _ in same),
            different=tuple(one.episode for one, other in pairs if (one, other) not in same),
            noise=max(noise, default=0.0),
            stops=odd,
        )

    def text(self) -> str:
        """A sentence or two."""
        odd = ", ".join(f"“{name}” ended with {stop}" for name, stop in self.stops.items())
        unequal = f" (not: {', '.join(self.different)})" if self.different else ""
        odd = f" {odd}." if odd else ""
        return (
            f"{self.equal} of {self.episodes} episodes{unequal} have the same tokens and texts, {self.tokens} tokens;"
            f" the logarithms of their probabilities differ by at most {self.noise:.1e}.{odd}"
        )


def report(ways: Sequence[tuple[Way, Way]], costs: dict[int, float], about: dict[str, Any]) -> str:
    """The results as Markdown."""
    one = costs[1]
    facts = ", ".join(f"{key}: {value}" for key, value in about.items())
    rows = [row for alone, company in ways for row in (alone.row(alone), company.row(alone))]
    return "\n".join(
        [
            "# Many episodes at once",
            "",
            "Episodes on SmolLM2-135M-Instruct on a CPU, greedy, one at a time and many at once"
            " (`python -m benchmarks.concurrency`). Among them a tool that hangs, one that raises, and a run that is"
            " cancelled.",
            "",
            f"| {' | '.join(HEADINGS)} |",
            "|" + "---|" * len(HEADINGS),
            *rows,
            "",
            *[
                f"* `{alone.setting}`, {alone.at_once} and {company.at_once} at once:"
                f" {Comparison.of(alone, company).text()}"
                for alone, company in ways
            ],
            "",
            "A pass that reads one token for each of several sequences, of 300 tokens before:",
            "",
            "| sequences | CPU ms a pass | CPU ms a token | tokens, next to one at a time |",
            "|---|---|---|---|",
            *[
                f"| {size} | {1e3 * cost:.0f} | {1e3 * cost / size:.1f} | {one * size / cost:.1f} times |"
                for size, cost in costs.items()
            ],
            "",
            f"({facts})",
            "",
        ]
    )


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=64)
    parser.add_argument("--apart", type=int, default=8, help="episodes that are also run in the other settings")
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--turns", type=int, default=4, help="of an episode, at most")
    parser.add_argument("--tokens", type=int, default=32, help="of a step, at most")
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args()
    import torch

    torch.set_num_threads(asked.threads)
    loaded = default_model()
    tasks = episodes(asked.episodes)
    costs = passes(loaded)
    ways = []
    for setting, some in (
        ("share_prefixes", tasks),
        ("neither", tasks[: asked.apart]),
        ("reproducible", tasks[: asked.apart]),
    ):
        model = TransformersModel(
            loaded._model,
            loaded.tokenizer,
            name=loaded.name,
            max_batch=asked.at_once,
            share_prefixes=setting == "share_prefixes",
            reproducible=setting == "reproducible",
        )
        alone, company = (measure(model, setting, asked, some, at_once) for at_once in (1, asked.at_once))
        ways.append((alone, company))
        rows = (alone.row(alone), company.row(alone))
        print(*rows, Comparison.of(alone, company).text(), sep="\n", flush=True)
    about = {**machine(), "torch": torch.__version__, "threads": asked.threads, "turns": asked.turns}
    data = {"about": about, "passes": costs, "ways": [[asdict(way) for way in pair] for pair in ways]}
    (asked.out / "concurrency.json").write_text(json.dumps(data, separators=(",", ":"), ensure_ascii=False) + "\n")
    (asked.out / "concurrency.md").write_text(report(ways, costs, about))


if __name__ == "__main__":
    main()
