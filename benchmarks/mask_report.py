"""Turns what was measured into a page of tables and ratios, and plots."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks import mask_extras
from benchmarks.mask_results import ENGINES, OURS, PEERS, Cell, Results, keep, table


def named(cell: Cell) -> list[str]:
    """The columns that say which cell it is."""
    return [cell.grammar, f"{cell.tokens // 1000}k", cell.engine]


def masks(results: Results) -> list[str]:
    """Masks and accepted tokens."""
    head = ["grammar", "tokens", "engine", "median", "mean", "p99", "max"]
    head += ["unseen", "unseen p99", "first pass", "accept"]

    def row(cell: Cell) -> list[str]:
        times = [cell.warm[key] for key in ("median", "mean", "p99", "max")]
        times += [cell.unseen["mean"], cell.unseen["p99"], cell.cold["mean"], cell.accept["mean"]]
        return [*named(cell), *(f"{value:.3f}" for value in times)]

    return table(head, map(row, results.rows()))


def beginnings(results: Results) -> list[str]:
    """The way to the first mask, and memory."""
    stages = ["grammar", "vocabulary", "first mask"]
    head = ["grammar", "tokens", "engine", *(f"{stage} s" for stage in stages), "sum s", "from disk cache s"]
    head += ["imports s", "held MB", "peak MB", "own report MB"]

    def row(cell: Cell) -> list[str]:
        cached = None if cell.first_cached is None else sum(cell.first_cached.values())
        seconds = [*(cell.first[stage] for stage in stages), cell.first_s, cached, cell.import_s]
        memory = [cell.held_mb, cell.peak_mb, cell.cache_mb]
        return [
            *named(cell),
            *("" if s is None else f"{s:.2f}" for s in seconds),
            *("" if mb is None else f"{mb:.0f}" for mb in memory),
        ]

    return table(head, map(row, results.rows()))


def ratios(results: Results) -> list[str]:
    """Our mean masks, semantics on, as multiples of the peers' means."""
    pairs = [(peer, kind) for peer in PEERS for kind in ("second pass", "unseen")]
    head = ["grammar", "tokens", "engine", *(f"/ {peer}, {kind}" for peer, kind in pairs), "p99 / mean", "own twin"]
    rows = []
    for cell in results.rows():
        if cell.engine not in OURS:
            continue
        row = named(cell)
        for peer, kind in pairs:
            other = results.find(peer, cell.grammar, cell.vocabulary)
            row.append("" if other is None else f"{passes(cell)[kind] / passes(other)[kind]:.2f}")
        twin = results.find(f"{cell.engine}, syntax only", cell.grammar, cell.vocabulary)
        row.append(f"{cell.warm['p99'] / cell.warm['mean']:.1f}")
        row.append("" if twin is None else f"{cell.warm['mean'] / twin.warm['mean']:.2f}")
        rows.append(row)
    return table(head, rows)


def passes(cell: Cell) -> dict[str, float]:
    """The mean masks of the two passes that are compared."""
    return {"second pass": cell.warm["mean"], "unseen": cell.unseen["mean"]}


def growth(results: Results) -> list[str]:
    """From the smallest vocabulary to the largest."""
    titles = results.vocabularies()
    rows = []
    for grammar in results.grammars():
        for engine in ENGINES:
            small, large = (results.find(engine, grammar, title) for title in (titles[0], titles[-1]))
            if small is not None and large is not None and small is not large:
                share = {kind: passes(large)[kind] / passes(small)[kind] for kind in ("second pass", "unseen")}
                rows.append([grammar, engine, *(f"{value:.2f}" for value in share.values())])
    sizes = [next(cell.tokens // 1000 for cell in results.cells if cell.vocabulary == title) for title in titles]
    between = f"{sizes[0]}k to {sizes[-1]}k" if sizes else ""
    return table(["grammar", "engine", f"{between}, second pass", f"{between}, unseen"], rows)


def versions(results: Results) -> list[str]:
    """Machine and versions, each once."""
    lines = [f"- {name}: {value}" for name, value in results.machine.items()]
    if len({cell.facts["sources"] for cell in results.cells if "sources" in cell.facts}) > 1:
        lines.append("- the builds are of different sources: make them anew before comparing")
    for engine in ENGINES:
        told = dict.fromkeys(tuple(cell.facts.items()) for cell in results.cells if cell.engine == engine)
        lines += [f"- {engine}: " + ", ".join(f"{name} {value}" for name, value in facts) for facts in told]
    return lines


GRAMMARS = (
    "The peers read grammars of the same languages without types and scope, from `benchmarks/grammars/`, written by"
    " hand for each engine in the way that measured fastest of some. Each run checks that they admit every token of the"
    " programs. Our own surface, translated, would do them wrong: it is split finely to hang rules on (C, reduced, has"
    " 150 nonterminals left, against 30) and reads directives with their lines. xgrammar keeps nothing from one text to"
    " the next, so that it goes through the programs once."
)

Section = Callable[[Results], list[str]]

SECTIONS: tuple[tuple[str, str, Section], ...] = (
    (
        "Masks",
        "CPU milliseconds for one packed mask into the caller's buffer: median, mean, 99th percentile and maximum of"
        " the second pass over the programs; then programs of which only the other half had gone through before"
        " (`unseen`); then the first pass, which works everything out. `accept` is the time to add a token.",
        masks,
    ),
    (
        "Ratios",
        "Our mean mask, types and scope included, as a multiple of the syntactic engines' (below 1 is faster), of the"
        " same pass; how far the 99th percentile lies above the mean; and what semantics costs over our own syntactic"
        " twin.",
        ratios,
    ),
    ("Growth with the vocabulary", "Mean mask over the largest vocabulary as a multiple of the smallest.", growth),
    (
        "Time to first mask and memory",
        "CPU seconds in a fresh process without any cache, and the sum once more in a process that finds the disk cache"
        " of an earlier one. All engines read the vocabulary from the same file of spellings. Memory is the"
        " growth of the process over what it had with its modules imported: after two passes (`held`) and at most"
        " (`peak`); the last column is what the engine itself reports to keep.",
        beginnings,
    ),
)


def markdown(results: Results) -> str:
    """The page of results."""
    lines = ["# Masks over whole vocabularies", "", *versions(results), ""]
    lines += ["`scripts/bench masks` measures again; `--help` says more.", "", GRAMMARS, ""]
    for title, words, section in SECTIONS:
        lines += [f"## {title}", "", words, "", *section(results)]
    return "\n".join([*lines, *mask_extras.markdown(results)])


def plot(results: Results, path: Path) -> None:
    """Mean masks against the size of the vocabulary, a panel for each grammar; unseen programs dotted."""
    from matplotlib.figure import Figure

    grammars = results.grammars()
    if not grammars:
        return
    figure = Figure(figsize=(4.2 * len(grammars), 4.4))
    panels = figure.subplots(1, len(grammars), sharey=True, squeeze=False)[0]
    for panel, grammar in zip(panels, grammars, strict=True):
        for number, engine in enumerate(ENGINES):
            cells = [results.find(engine, grammar, title) for title in results.vocabularies()]
            found = [cell for cell in cells if cell is not None]
            if not found:
                continue
            for style, kind in (("-", "second pass"), (":", "unseen")):
                points = [passes(cell)[kind] for cell in found]
                label = engine if style == "-" else None
                panel.plot([c.tokens for c in found], points, style, marker="o", color=f"C{number}", label=label)
        panel.set(title=grammar, xlabel="tokens", yscale="log")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("mean mask, ms of CPU time (dotted: unseen programs)")
    panels[-1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def write(results: Results, folder: Path) -> None:
    """Write masks.json, masks.md, masks.svg and soak.svg."""
    folder.mkdir(parents=True, exist_ok=True)
    keep(results, folder)
    (folder / "masks.md").write_text(markdown(results), encoding="utf-8")
    plot(results, folder / "masks.svg")
    mask_extras.plot(results, folder / "soak.svg")
