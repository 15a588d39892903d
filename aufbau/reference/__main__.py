"""`python -m aufbau.reference`: hold the engine against the reference on thousands of random prefixes."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from random import Random

from aufbau.grammar.grammar import Grammar, shipped
from aufbau.reference.correspondence import Comparison, Start
from aufbau.reference.starts import LENGTHS, STARTS
from aufbau.verdict import Verdict


def main() -> int:
    """Compare, print a line for each grammar and every difference; 1 when there is one."""
    parser = argparse.ArgumentParser(prog="python -m aufbau.reference", description=__doc__)
    parser.add_argument(
        "grammars", nargs="*", default=shipped(), help="names or paths of .auf files (default: shipped)"
    )
    parser.add_argument("--prefixes", type=int, default=2000, help="prefixes in all (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the random texts (default: %(default)s)")
    options = parser.parse_args()
    print(
        f"{'grammar':12}{'prefixes':>9}{'satisfied':>10}{'live':>7}{'lost':>7}{'ahead':>7}{'skipped':>8}{'differ':>7}"
    )
    different = False
    for name in options.grammars:
        different = _held(name, options.prefixes // len(options.grammars), options.seed) or different
    return int(different)


def _held(name: str, prefixes: int, seed: int) -> bool:
    """Compare on one grammar; whether there was a difference."""
    grammar, stem, started = Grammar.load(name), Path(name).stem, time.monotonic()
    comparisons = [Comparison(grammar, start) for start in STARTS.get(stem, (Start(),))]
    random = Random(seed)
    while sum(c.tally.compared for c in comparisons) < prefixes:
        comparison = random.choice(comparisons)
        for text in comparison.prefixes(random, LENGTHS.get(stem, 12)):
            comparison.compare(text)
    tallies = [comparison.tally for comparison in comparisons]
    counts = [sum(tally.verdicts[verdict] for tally in tallies) for verdict in Verdict]
    differences = [difference for tally in tallies for difference in tally.differences]
    line = dict(zip(Verdict, counts, strict=True))
    ahead, skipped = sum(t.ahead for t in tallies), sum(t.skipped for t in tallies)
    print(
        f"{stem:12}{sum(counts):9}{line[Verdict.SATISFIED]:10}{line[Verdict.LIVE]:7}{line[Verdict.LOST]:7}"
        f"{ahead:7}{skipped:8}{len(differences):7}   {time.monotonic() - started:.0f} s",
        flush=True,
    )
    for difference in differences:
        print(f"  {difference}")
    return bool(differences)


if __name__ == "__main__":
    sys.exit(main())
