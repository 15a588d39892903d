"""Measures what the oracle adds to a token: constrained against unconstrained decoding, of the same prompts.

    scripts/bench overhead [--passes N] [--tokens N] [--threads N] [--task NAME] [--fresh]

Each prompt is decoded greedily to an equal number of tokens with the oracle and without it, by our own decoder, by
`transformers.generate` and by Outlines' generator; the order within a pass is drawn anew each time. What counts is the
time between the first token and the last, so reading the prompt is left out. Times are CPU times, which other programs
disturb less. A run is compared with the unconstrained one of the same prompt, pass and decoder. In the first pass the
oracle is fresh: nothing is known of the grammar yet. What was measured before with the same settings and machine is
kept in the results; --fresh asks for all anew.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import numpy as np

from agentkit.models import Message, PrefixLike, Sampling, StopPolicy, TransformersModel, default_model
from agentkit.models.processor import AufbauLogitsProcessor
from agentkit.models.prompt import prompt_text
from aufbau import Grammar, Oracle
from aufbau.vocabulary import Vocabulary
from benchmarks.report import machine
from dialects import CLikeDialect
from registry import builtin

RESULTS = Path(__file__).parent / "results"
LEAST = 6  # tokens of a run: shorter ones say little
RESAMPLES = 2_000

# The decoder, what it does with the oracle, and how its processor is set.
WAYS = {
    ("ours", "free"): None,
    ("ours", "lazy"): True,
    ("transformers", "free"): None,
    ("transformers", "best only"): True,
    ("transformers", "masked"): False,
    ("outlines", "free"): None,
    ("outlines", "best only"): True,
    ("outlines", "masked"): False,
}
TITLES = {
    ("ours", "lazy"): "our decoder",
    ("transformers", "best only"): "transformers, processor with greedy=True",
    ("transformers", "masked"): "transformers, processor with whole masks",
    ("outlines", "best only"): "Outlines, processor with greedy=True",
    ("outlines", "masked"): "Outlines, processor with whole masks",
}
TASKS: dict[str, tuple[str, ...]] = {
    "tools": (
        'Search for solar storms and count the documents.\nAnswer with one line of code, such as\nlet d = search("…");',
        'Which documents mention bread? Read the first.\nAnswer with one line of code, such as\nlet d = search("…");',
        "How large is the average of 3, 4 and 8?\nAnswer with one line of code, such as\nlet m = mean([1.0, 2.0]);",
    ),
    "fun": (
        "Write a function from Int to Int that doubles its argument, such as (x: Int) => x + 1",
        "Write a function from Int to Int that adds up its argument three times, such as (x: Int) => x + 1",
        "Write a function from Int to Int that returns 7 for each argument, such as (x: Int) => x + 1",
    ),
    "ml": (
        "Write OCaml code: a recursive function that computes the factorial of n. Only the code.",
        "Write OCaml code: a function that returns the length of a list. Only the code.",
        "Write OCaml code: a function that reverses a list. Only the code.",
    ),
    "c": (
        "Write C code: a function int add(int a, int b). Only the code.",
        "Write C code: a function that returns the larger of two numbers. Only the code.",
        "Write C code: a function that sums the numbers from 1 to n in a loop. Only the code.",
    ),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One prompt, decoded once."""

    task: str
    prompt: int
    number: int  # of the pass; in pass 0 the oracle is fresh
    decoder: str
    mode: str
    tokens: int  # between the first and the last
    cpu_s: float
    wall_s: float
    inside_s: float  # of the wall time, what the oracle and the masking took; our decoder's first token is in it too

    @property
    def key(self) -> tuple[str, int, int, str, str]:
        """What was measured."""
        return (self.task, self.prompt, self.number, self.decoder, self.mode)


class Clock:
    """The moments of tokens; also a streamer of transformers, which is told of the prompt first."""

    def __init__(self) -> None:
        self.moments: list[tuple[float, float, float]] = []
        # Seconds inside the oracle so far.
        self.inside: Callable[[], float] = lambda: 0.0

    def put(self, _tokens: object) -> None:
        """A token has come."""
        self.moments.append((time.process_time(), time.perf_counter(), self.inside()))

    def between(self) -> tuple[float, float, float]:
        """What went by between the first token and the last: CPU time, wall time, and of that inside the oracle."""
        (cpu, wall, inside), (last_cpu, last_wall, last_inside) = self.moments[0], self.moments[-1]
        return last_cpu - cpu, last_wall - wall, last_inside - inside

    def end(self) -> None:
        """The last token has come."""


def starts(name: str) -> Callable[[], PrefixLike]:
    """A fresh oracle, and where each of its texts begins."""
    if name == "tools":
        lowered = CLikeDialect().lower(builtin())
        return lambda: lowered.start({})
    oracle = Oracle(Grammar.load(name))
    return lambda: oracle.start(goal="Int -> Int" if name == "fun" else None)


class Bench:
    """The model under its three decoders. None of them has a token that ends a text, so all runs are of one length."""

    def __init__(self, model: TransformersModel) -> None:
        import outlines

        self.model = model
        weights: Any = model._model
        self.weights = weights
        self.ends = model.vocabulary
        weights.generation_config.eos_token_id = None
        weights.generation_config.pad_token_id = model.tokenizer.eos_token_id
        self.outlines = outlines
        self.steered = outlines.from_transformers(weights, model.tokenizer)
        self.endless = TransformersModel(weights, model.tokenizer)
        self.endless.vocabulary = Vocabulary(list(model.vocabulary), special=model.vocabulary.special)

    def length(self, prompt: str, start: PrefixLike, most: int) -> int:
        """How many tokens of text our decoder writes of itself, up to a bound."""
        result = anyio.run(self._ours, self.model, prompt, start, most, Clock())
        return sum(bool(record.text) for record in result.tokens)

    def run(self, decoder: str, mode: str, prompt: str, start: PrefixLike, tokens: int) -> Clock:
        """Decode so many tokens."""
        clock = Clock()
        greedy = WAYS[decoder, mode]
        if decoder == "ours":
            prefix = None if greedy is None else start
            model = self.endless if prefix is None else self.model
            result = anyio.run(self._ours, model, prompt, prefix, tokens, clock)
            cpu, wall, _ = clock.moments[-1]
            clock.moments[-1] = (cpu, wall, result.timing.oracle_s)
            return clock
        processor = None if greedy is None else AufbauLogitsProcessor(start, self.ends, greedy=greedy)
        if processor is not None:
            clock.inside = lambda: processor.seconds
        settings = {"max_new_tokens": tokens, "do_sample": False, "streamer": clock}
        if decoder == "outlines":
            chat = self.outlines.inputs.Chat([{"role": "user", "content": prompt}])
            self.outlines.Generator(self.steered, processor=processor)(chat, **settings)
        else:
            text = prompt_text(self.model.tokenizer, [Message(role="user", content=prompt)])
            inputs = self.model.tokenizer(text, return_tensors="pt")
            self.weights.generate(**inputs, **settings, logits_processor=[] if processor is None else [processor])
        # The streamer was told of the prompt as well.
        del clock.moments[0]
        return clock

    async def _ours(
        self, model: TransformersModel, prompt: str, start: PrefixLike | None, most: int, clock: Clock
    ) -> Any:
        return await model.session().generate(
            [Message(role="user", content=prompt)],
            prefix=start,
            sampling=Sampling(),
            max_tokens=most,
            stop_policy=StopPolicy.STRICT,
            on_token=clock.put,
        )


def measure(asked: argparse.Namespace, known: Sequence[Run], keep: Callable[[list[Run]], None]) -> list[Run]:
    """The runs that are known and those that are missing."""
    runs = list(known)
    done = {run.key for run in runs}
    bench = Bench(default_model())
    for task in asked.task or TASKS:
        # Of each way of its own, so that none profits from another in the first pass.
        fresh = {way: starts(task) for way in WAYS}
        lengths = [bench.length(prompt, starts(task)(), asked.tokens) for prompt in TASKS[task]]
        for number in range(asked.passes):
            for place, prompt in enumerate(TASKS[task]):
                if lengths[place] < LEAST:
                    continue
                order = list(WAYS)
                random.Random(f"{task} {place} {number}").shuffle(order)
                for decoder, mode in order:
                    if (task, place, number, decoder, mode) in done:
                        continue
                    start = fresh[decoder, mode]()
                    clock = bench.run(decoder, mode, prompt, start, lengths[place])
                    cpu, wall, inside = clock.between()
                    runs.append(
                        Run(
                            task=task,
                            prompt=place,
                            number=number,
                            decoder=decoder,
                            mode=mode,
                            tokens=len(clock.moments) - 1,
                            cpu_s=cpu,
                            wall_s=wall,
                            inside_s=inside,
                        )
                    )
                keep(runs)
            print(f"{task}: pass {number}", file=sys.stderr)
    return runs


# What the runs say


@dataclass(frozen=True, kw_only=True, slots=True)
class Ratio:
    """Constrained over unconstrained time of a token: a median, and the 95% interval of it by resampling."""

    median: float
    low: float
    high: float


def median(values: Sequence[float]) -> Ratio:
    """The median of some ratios."""
    ratios = np.array(values)
    picks = np.random.default_rng(0).integers(0, len(ratios), (RESAMPLES, len(ratios)))
    low, high = np.quantile(np.median(ratios[picks], axis=1), [0.025, 0.975])
    return Ratio(median=float(np.median(ratios)), low=float(low), high=float(high))


def compared(runs: Iterable[Run], decoder: str, mode: str) -> list[float]:
    """CPU time of each run of one decoder with the oracle over the one without it, of the same prompt and pass."""
    found = {run.key: run for run in runs}
    values: list[float] = []
    for run in found.values():
        free = found.get(replace(run, mode="free").key)
        if (run.decoder, run.mode) == (decoder, mode) and free is not None:
            values.append((run.cpu_s / run.tokens) / (free.cpu_s / free.tokens))
    return values


def table(runs: Sequence[Run]) -> list[str]:
    """The lines of the report's table."""
    lines = [
        "| decoder | task | inside, ms a token | ratio by the time inside | first pass | ratio of runs | pairs |",
        "|---|---|---|---|---|---|---|",
    ]
    for way, title in TITLES.items():
        for task in ("all", *TASKS):
            some = [run for run in runs if task in ("all", run.task) and (run.decoder, run.mode) == way]
            pairs = compared([run for run in runs if run.number and task in ("all", run.task)], *way)
            later = [run for run in some if run.number]
            first = [run.wall_s / (run.wall_s - run.inside_s) for run in some if not run.number]
            if not pairs or not first:
                continue
            # By the share of the wall time, so that what else the machine did counts for neither.
            added = float(np.median([1e3 * run.inside_s / run.wall_s * run.cpu_s / run.tokens for run in later]))
            inside, measured = median([run.wall_s / (run.wall_s - run.inside_s) for run in later]), median(pairs)
            lines.append(
                f"| {title} | {task} | {added:.2f} | {inside.median:.3f} ({inside.low:.3f} to {inside.high:.3f}) |"
                f" {float(np.median(first)):.3f} |"
                f" {measured.median:.3f} ({measured.low:.3f} to {measured.high:.3f}) | {len(pairs)} |"
            )
    return lines


def report(runs: Sequence[Run], about: dict[str, Any]) -> str:
    """The results as Markdown."""
    free = [run for run in runs if (run.decoder, run.mode) == ("ours", "free")]
    token = 1e3 * float(np.median([run.cpu_s / run.tokens for run in free]))
    facts = ", ".join(f"{key}: {value}" for key, value in about.items())
    return "\n".join(
        [
            "# What the oracle adds to a token",
            "",
            "Time of a token with the oracle over that without it, SmolLM2-135M-Instruct on a CPU, greedy"
            " (`scripts/bench overhead`). Medians over runs, with 95% intervals. The time inside is what the oracle and"
            " the masking took, clocked within the same run. The ratio of runs compares CPU times with a run without"
            " the oracle, of the same prompt and length; it says the same and is blurred by what else the machine did."
            " In the first pass nothing is known of the grammar yet."
            f" Without the oracle a token took our decoder {token:.1f} ms of CPU time.",
            "",
            *table(runs),
            "",
            f"({facts})",
            "",
        ]
    )


def write(runs: Sequence[Run], about: dict[str, Any], out: Path) -> None:
    """Write `overhead.json` and, once there is something to compare, `overhead.md`."""
    data = {"about": about, "runs": [asdict(run) for run in runs]}
    (out / "overhead.json").write_text(json.dumps(data, indent=None, separators=(",", ":")) + "\n")
    if any(run.number for run in runs) and any((run.decoder, run.mode) == ("ours", "free") for run in runs):
        (out / "overhead.md").write_text(report(runs, about))


def read(out: Path) -> tuple[list[Run], dict[str, Any]]:
    """The runs measured before, and under what conditions."""
    path = out / "overhead.json"
    data = json.loads(path.read_text()) if path.is_file() else {"runs": [], "about": {}}
    return [Run(**run) for run in data["runs"]], data["about"]


def main() -> None:
    """Measure what is missing, and write the results after each prompt."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=24, help="of a run, at most")
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    parser.add_argument("--task", choices=TASKS, action="append", help="by default all")
    parser.add_argument("--fresh", action="store_true", help="measure again what is known")
    parser.add_argument("--report", action="store_true", help="measure nothing, write the table of what is known")
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args()
    known, before = read(asked.out)
    if asked.report:
        write(known, before, asked.out)
        print("\n".join(table(known)))
        return
    import torch

    torch.set_num_threads(asked.threads)
    about = {**machine(), "torch": torch.__version__, "threads": asked.threads, "tokens": asked.tokens}
    runs = measure(asked, [] if asked.fresh or about != before else known, lambda found: write(found, about, asked.out))
    write(runs, about, asked.out)
    print("\n".join(table(runs)))


if __name__ == "__main__":
    main()
