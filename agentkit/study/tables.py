"""The figures of a study as tables: plain data, which Markdown and the page are both written from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agentkit.study.statistics import Share
from agentkit.study.summary import Cost, Difference, Outcomes, Rate, Summary, Uncertainty

# The paper's figures of branching: mean admitted candidates, and share of positions with a single one (of ML alone).
PAPER_BRANCHING = {
    ("ml", "syntactic"): ("26.3", "9%"),
    ("ml", "semantic"): ("16.8", "13%"),
    ("c", "syntactic"): ("11.4", "not told"),
    ("c", "semantic"): ("7.1", "not told"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """Rows under a heading, with what to know when reading them."""

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> list[str]:
        """The table as lines of Markdown; its first column is text, the others are figures."""
        rule = "|---|" + "---:|" * (len(self.columns) - 1)
        shown = [f"| {' | '.join(_cell(one) for one in row)} |" for row in (self.columns, *self.rows)]
        return [f"## {self.title}", "", self.note, "", shown[0], rule, *shown[1:], ""]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def tables(summary: Summary, branching: Sequence[Mapping[str, object]]) -> list[Table]:
    """All tables of the report; that of branching only where it was measured."""
    found = [
        _promise(summary),
        _rates(summary.rates, summary.modes),
        _validity(summary.rates, summary.modes),
        _both(summary.rates, summary.modes),
        *(_differences(pair, summary.differences) for pair in dict.fromkeys(_pairs(summary.differences))),
        _outcomes(summary.outcomes),
        _uncertainty(summary.uncertainty),
        _thinking(summary),
        _costs(summary.costs),
    ]
    if branching:
        found.append(_branching(branching))
    return [table for table in found if table.rows]


def percent(value: float) -> str:
    """A share in whole per cent; nothing where there is none."""
    return "" if math.isnan(value) else f"{100 * value:.0f}%"


def points(value: float) -> str:
    """A difference of shares in points."""
    return "" if math.isnan(value) else f"{100 * value:+.1f}"


def share(one: Share) -> str:
    """A share with its interval."""
    low, high = one.interval
    return f"{percent(one.value)} [{100 * low:.0f}, {100 * high:.0f}] ({one.count}/{one.total})" if one.total else ""


def _number(value: float, digits: int = 1) -> str:
    return "" if math.isnan(value) else f"{value:.{digits}f}"


def _promise(summary: Summary) -> Table:
    return Table(
        title="Constrained attempts on grammars without dead ends",
        note="Finite lambda, core ML and core C are covered by Theorem 2.6, and the budget is steered: none of these "
        "attempts may end live or lost.",
        columns=("model", "mode", "attempts", "live or lost at the end"),
        rows=tuple((one.model, one.mode, str(one.attempts), str(one.unfinished)) for one in summary.promises),
    )


def _by_mode(
    rates: Sequence[Rate], modes: Sequence[str], title: str, note: str, pick: str, *, kinds: bool = True
) -> Table:
    groups = dict.fromkeys(rate.group for rate in rates)
    cells = {(rate.group, rate.mode): rate for rate in rates}
    rows = []
    for group in groups:
        shown = [getattr(cells[group, mode], pick) if (group, mode) in cells else None for mode in modes]
        rows.append((group.model, group.name, *("" if one is None else share(one) for one in shown)))
    return Table(title=title, note=note, columns=("model", "language, what a pass says", *modes), rows=tuple(rows))


def _rates(rates: Sequence[Rate], modes: Sequence[str]) -> Table:
    return _by_mode(
        rates,
        modes,
        "Pass rates",
        "Per cent with 95% Wilson intervals (passed/attempts). *validity*: ocamlc, cc or the handwritten checker "
        "accepts the answer at the required type, and nothing is said of what it does. *behaviour*: the compiled "
        "program passed its unit tests; of tool episodes: the returned value is the expected one. *equivalence*: the "
        "term equals the reference up to beta and eta. The grader alone decides; the oracle has no say.",
        "passed",
    )


def _validity(rates: Sequence[Rate], modes: Sequence[str]) -> Table:
    return _by_mode(
        [rate for rate in rates if rate.group.kind != "validity"],
        modes,
        "Validity of the answers to the tasks that ask for more",
        "The same attempts as above, counted as valid where the compiler or the checker accepts them at the required "
        "type; of tool episodes where a value of the output type was returned.",
        "valid",
    )


def _both(rates: Sequence[Rate], modes: Sequence[str]) -> Table:
    return _by_mode(
        rates,
        modes,
        "Pass rates as the paper counts",
        "Passed, and SATISFIED for the oracle too. Free answers lose what lies outside the grammar's fragment.",
        "both",
    )


def _pairs(differences: Iterable[Difference]) -> list[tuple[str, str]]:
    return [(one.first, one.second) for one in differences]


def _differences(pair: tuple[str, str], differences: Sequence[Difference]) -> Table:
    first, second = pair
    notes = {
        ("direct", "syntactic"): "The paper's ablation: what the typing rules add to the same mask without them. ",
        ("mixed", "thinking"): "A masked answer after reasoning against a free one. ",
    }
    return Table(
        title=f"{first.capitalize()} minus {second}, on the same tasks",
        note=notes.get(pair, "")
        + "Points with Newcombe's 95% interval for paired shares; p by McNemar's exact test, not corrected for the "
        "number of rows. *valid* compares validity where passing asks for more.",
        columns=(
            "model",
            "language",
            "compared",
            "tasks",
            first,
            second,
            "difference",
            f"only {first}",
            f"only {second}",
            "p",
        ),
        rows=tuple(
            (
                one.group.model,
                one.group.name,
                one.of,
                str(one.paired.total),
                percent(one.paired.shares[0].value),
                percent(one.paired.shares[1].value),
                f"{points(one.paired.difference)} [{points(one.paired.interval[0])}, {points(one.paired.interval[1])}]",
                str(one.paired.first),
                str(one.paired.second),
                f"{one.paired.p:.3f}",
            )
            for one in differences
            if (one.first, one.second) == pair
        ),
    )


def _outcomes(outcomes: Sequence[Outcomes]) -> Table:
    return Table(
        title="Final outcomes",
        note="The oracle's verdict on the final text, as in the paper's figure 5; satisfied ones by what the grader "
        "says. The last column counts lost and live ones that the grader passes all the same.",
        columns=(
            "model",
            "mode",
            "attempts",
            "satisfied, passed",
            "satisfied, failed",
            "live at stop",
            "lost at stop",
            "passed outside the grammar",
        ),
        rows=tuple(
            (
                one.model,
                one.mode,
                str(one.total),
                *(percent(count / one.total) for count in (one.passed, one.failed, one.live, one.lost)),
                str(one.passed_outside),
            )
            for one in outcomes
        ),
    )


def _uncertainty(found: Sequence[Uncertainty]) -> Table:
    return Table(
        title="Rejection and entropy",
        note="Mean entropy before the mask, in bits, at tokens where the model's first choice was admitted and "
        "where it was refused. An association in single runs.",
        columns=("model", "mode", "tokens", "refused first", "bits, admitted", "bits, refused", "candidates refused"),
        rows=tuple(
            (
                one.model,
                one.mode,
                str(one.accepted + one.rejected),
                f"{100 * one.share:.1f}%",
                _number(one.accepted_bits, 2),
                _number(one.rejected_bits, 2),
                str(one.retries),
            )
            for one in found
            if one.accepted + one.rejected
        ),
    )


def _thinking(summary: Summary) -> Table:
    costs = {(cost.model, cost.mode): cost for cost in summary.costs}
    rows = []
    for model in summary.models:
        thinking, mixed = costs.get((model, "thinking")), costs.get((model, "mixed"))
        if thinking is None or mixed is None:
            continue
        before, after = thinking.generated, mixed.generated
        paired = [
            one.paired
            for one in summary.differences
            if one.group.model == model and (one.first, one.second, one.of) == ("mixed", "thinking", "passed")
        ]
        total = sum(one.total for one in paired)
        rates = [sum(one.shares[side].count for one in paired) / total if total else math.nan for side in (0, 1)]
        rows.append(
            (
                model,
                _number(before),
                _number(after),
                _number(before / after, 2) if after else "",
                percent(rates[1]),
                percent(rates[0]),
            )
        )
    return Table(
        title="Thinking against mixed",
        note="Mean generated tokens, reasoning included, and the descriptive rate of passes over all tasks (of unlike "
        "meaning, so only to be read beside each other). The budget of reasoning is the same in both.",
        columns=("model", "tokens, thinking", "tokens, mixed", "ratio", "passed, thinking", "passed, mixed"),
        rows=tuple(rows),
    )


def _costs(costs: Sequence[Cost]) -> Table:
    return Table(
        title="Cost",
        note="Tokens on average for an attempt. Seconds for a token, reasoning included, on a machine that other work "
        "shared, so the share of the oracle is worth more than the seconds. Median: of the oracle's time over the "
        "model's in single attempts. Steered: attempts in which the budget chose a token; near the end each token then "
        "costs a search.",
        columns=(
            "model",
            "mode",
            "attempts",
            "tokens",
            "reasoning",
            "taken back",
            "model ms/token",
            "oracle ms/token",
            "oracle/model",
            "median",
            "steered",
        ),
        rows=tuple(
            (
                one.model,
                one.mode,
                str(one.attempts),
                _number(one.tokens),
                _number(one.reasoning),
                _number(one.taken_back),
                *(
                    _number(1000 * seconds / (one.attempts * one.generated or math.nan))
                    for seconds in (one.model_s, one.oracle_s)
                ),
                *("" if math.isnan(part) else f"{100 * part:.1f}%" for part in (one.overhead, one.median_overhead)),
                f"{one.steered_attempts} ({one.steered} tokens)",
            )
            for one in costs
        ),
    )


def _branching(found: Sequence[Mapping[str, object]]) -> Table:
    rows = []
    for one in found:
        shares = one["shares"]
        assert isinstance(shares, Mapping)
        paper = PAPER_BRANCHING.get((str(one["language"]), str(one["oracle"]))) if one["measure"] == "lexemes" else None
        rows.append(
            (
                f"{one['language']}, {one['measure']}",
                str(one["oracle"]),
                str(one["programs"]),
                str(one["positions"]),
                str(one["alphabet"]),
                str(one["mean"]),
                str(one["mean_log2"]),
                *(f"{100 * float(value):.1f}%" for value in shares.values()),
                str(one["refused"]),
                " / ".join(paper) if paper else "",
            )
        )
    return Table(
        title="Branching of valid programs, without a model",
        note="Candidates that the oracle admits at each position of valid programs. *lexemes* is the paper's measure: "
        "the alphabet is the lexemes of a group of programs (14 of ML, 5 of C), a position stands before each lexeme. "
        "*tokens*: the vocabulary of SmolLM2. The programs are ours and longer than the paper's, whose figures are in "
        "the last column (mean / forced); its ML alphabet had 42 lexemes. Own token refused: 0, or the oracle prunes "
        "what is valid.",
        columns=(
            "language, measure",
            "oracle",
            "programs",
            "positions",
            "alphabet",
            "mean",
            "mean log2",
            "forced",
            "2 to 4",
            "5 to 16",
            "17 and more",
            "own token refused",
            "paper",
        ),
        rows=tuple(rows),
    )
