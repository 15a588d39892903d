"""A trace as one HTML page: static, self-contained, readable without a script."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Final

from agentkit.models import Steering
from agentkit.result import StopReason
from agentkit.trace.markup import attribute, block, folded, mono, number, row, table, text, token_text
from agentkit.trace.model import BindingTrace, TokenTrace, Trace, TurnTrace

# Nats at which the bar of a token's entropy is full: that of about 400 equally probable tokens.
_FULL: Final = 6.0
# No script, no request, no form: the page is safe even for a text that would get past the escaping.
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STEERING: Final = {
    Steering.KEPT: "its budget was kept by steering",
    Steering.TOO_SMALL: "its budget was too small for any end",
    Steering.UNKNOWN: "no end was known, so its budget was not kept",
}


def trace_page(trace: Trace) -> str:
    """The page of a trace. All texts of the run are data on it: none is ever markup."""
    title = f"{trace.episode or 'run'}: {_outcome(trace)}"
    gamma = list(trace.bindings)
    turns = []
    for turn in trace.turns:
        gamma += [turn.bound] if turn.bound is not None else []
        turns.append(_turn(turn, gamma))
    return (
        '<!doctype html>\n<html lang=en><head><meta charset="utf-8">'
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{text(title)}</title><style>{_style()}</style></head><body>"
        f"<header>{_header(trace)}</header><main>{_legend(trace)}{''.join(turns)}</main></body></html>\n"
    )


@cache
def _style() -> str:
    return (files("agentkit.trace") / "page.css").read_text(encoding="utf-8")


def _header(trace: Trace) -> str:
    usage, overruled = trace.usage, sum(turn.overruled for turn in trace.turns)
    given_up = [turn.given_up for turn in trace.turns if turn.given_up is not None]
    facts = [
        ("model", trace.model or "not told"),
        ("mode", trace.mode.value if trace.mode is not None else "not told"),
        ("sampling", _sampling(trace)),
        ("turns", f"{usage.turns}"),
        ("tool calls", f"{usage.tool_calls}"),
        ("tokens generated", f"{usage.generated_tokens:,}"),
        ("tokens prefilled / in prompts", f"{usage.prefilled_tokens:,} / {usage.prompt_tokens:,}"),
        ("tokens overruled", f"{overruled:,}" + (f", {math.fsum(given_up):.1f} nats given up" if given_up else "")),
        ("begun", trace.started_at[:19].replace("T", " ") + " UTC"),
    ]
    items = "".join(f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>" for name, value in facts)
    timing = trace.timing
    parts = [("model", timing.model_s), ("oracle", timing.oracle_s), ("tools", timing.tools_s)]
    rest = max(0.0, timing.total_s - sum(seconds for _, seconds in parts))
    kind = "good" if trace.stop_reason is StopReason.RETURNED and trace.passed is not False else "bad"
    return (
        f"<h1>{text(trace.episode or 'A run')}</h1><p><span class='badge {kind}'>{text(_outcome(trace))}</span></p>"
        + (block(trace.prompt.strip(), "task") if trace.prompt.strip() else "")
        + (f"<h3>Output</h3>{block(trace.output, 'output')}" if trace.output is not None else "")
        + (f"<p class={kind}>{text(trace.grade)}</p>" if trace.grade else "")
        + (f"<h3>Ended by</h3>{block(trace.error, 'error')}" if trace.error is not None else "")
        + f"<dl>{items}</dl>"
        + _times([*parts, ("rest", rest)])
    )


def _outcome(trace: Trace) -> str:
    verdict = {True: ", passed", False: ", not passed", None: ""}[trace.passed]
    return trace.stop_reason.value.replace("_", " ") + verdict


def _sampling(trace: Trace) -> str:
    if trace.temperature is None:
        return "not told"
    seed = "" if trace.seed is None else f", seed {trace.seed}"
    return "greedy" if trace.temperature == 0 else f"temperature {trace.temperature:g}{seed}"


def _times(parts: Sequence[tuple[str, float]]) -> str:
    """Seconds as a bar, and in words."""
    total = sum(seconds for _, seconds in parts)
    if total <= 0:
        return ""
    spans = "".join(f'<span class=k{n} style="--w:{100 * s / total:.2f}"></span>' for n, (_, s) in enumerate(parts, 1))
    keys = "".join(
        f"<li><span class=k{n} aria-hidden=true></span>{text(name)} {text(_seconds(s))}</li>"
        for n, (name, s) in enumerate(parts, 1)
    )
    return f"<div class=bar aria-hidden=true>{spans}</div><ul class=key aria-label=time>{keys}</ul>"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.1f} ms"


def _legend(trace: Trace) -> str:
    def sample(kind: str, word: str, meaning: str) -> str:
        return f"<li><span class=strip><span class='cell {kind}'><b>{word}</b></span></span> {meaning}</li>"

    unjudged = sample("", "token", "not judged: the run did not tell what its steps began with")
    verdicts = (
        sample("live", "live", "may go on to a well-typed step")
        + sample("satisfied", "satisfied", "is one")
        + sample("lost", "lost", "can't become one")
    )
    judged = any(token.verdict is not None for turn in trace.turns for token in turn.tokens)
    return (
        f"<ul class=legend aria-label=legend>{verdicts if judged else unjudged}"
        "<li><span class=mark>✕n</span> overruled: n tokens came first and were refused</li>"
        f"<li class=dim>bar over a token: the model's entropy there, full at {_FULL:g} nats</li></ul>"
    )


def _turn(turn: TurnTrace, gamma: Sequence[BindingTrace]) -> str:
    name = f"turn-{turn.number}"
    return (
        f"<section class=turn aria-labelledby={name}><div class=head><h2 id={name}>Turn {turn.number}</h2>"
        f"<span class=dim>{text(_summary(turn))}</span></div>{''.join(_parts(turn, gamma))}</section>"
    )


def _summary(turn: TurnTrace) -> str:
    said = [f"{len(turn.tokens)} tokens"]
    if turn.overruled:
        said.append(f"{turn.overruled} overruled")
    if turn.prefilled_tokens is not None:
        said.append(f"{turn.prefilled_tokens:,} of {turn.prompt_tokens:,} prompt tokens read anew")
    if turn.cut:
        said.append(f"left out of the prompt: {turn.cut}")
    if turn.taken_back:
        said.append(f"{turn.taken_back} taken back")
    if turn.finish is not None:
        said.append(f"ended: {turn.finish.value.replace('_', ' ')}")
    else:
        said.append("broken off")
    if turn.steering in _STEERING:
        said.append(_STEERING[turn.steering])
    return ", ".join(said)


def _parts(turn: TurnTrace, gamma: Sequence[BindingTrace]) -> Iterator[str]:
    if turn.thought or turn.reasoning:
        thought = turn.thought or "".join(token.text for token in turn.reasoning)
        tokens = _token_table("Tokens of the reasoning", turn.reasoning) if turn.reasoning else ""
        yield folded(f"Reasoning, {len(turn.reasoning)} tokens", block(thought, "reasoning") + tokens)
    yield f"<ol class=strip aria-label='step, token by token'>{''.join(_cells(turn))}</ol>"
    overruled = [token for token in turn.tokens if token.overruled]
    if overruled:
        yield _overruled_table(overruled)
    for call in turn.calls:
        # That of the last one is shown below as what is bound or returned.
        gave = f" = <code>{text(call.result)}</code>" if call is not turn.calls[-1] and call.result is not None else ""
        called = f"<code>{text(call.tool)}({text(call.arguments)})</code>{gave}"
        yield f"<p>Calls {called} <span class=dim>in {_seconds(call.seconds)}</span></p>"
    if turn.bound is not None:
        bound = turn.bound
        yield f"<p>Binds <code>{text(bound.name)} : {text(bound.type)}</code></p>{block(bound.value, bound.name)}"
    if turn.returned is not None:
        yield f"<p>Returns</p>{block(turn.returned, 'returned value')}"
    if turn.error is not None:
        kind = "Failed" if turn.calls else "Refused"
        yield f"<p class=bad>{kind}</p>{block(turn.error, 'error')}"
    elif turn.observation and turn.bound is None and turn.returned is None:
        yield f"<p>Observation</p>{block(turn.observation, 'observation')}"
    yield _gamma(turn, gamma)
    yield folded(f"Every token ({len(turn.tokens)})", _token_table("Tokens of the step", turn.tokens))
    if turn.bound is not None and turn.observation:
        yield folded("What the model was told of it", block(turn.observation, "observation"))
    if turn.messages:
        messages = "".join(f"<h3>{text(one.role)}</h3>{block(one.content, one.role)}" for one in turn.messages)
        yield folded("What the model was asked", messages)
    if turn.model_s is not None and turn.oracle_s is not None:
        yield _times([("model", turn.model_s), ("oracle", turn.oracle_s), ("tools", turn.tool_s or 0.0)])


def _cells(turn: TurnTrace) -> Iterator[str]:
    if turn.begun:
        yield f"<li class='cell given' title='given: not written by the model'><b>{token_text(turn.begun)}</b></li>"
    for token in turn.tokens:
        verdict = token.verdict.value if token.verdict is not None else ""
        mark = f"✕{token.rejected}" if token.rejected else "✕" if token.overruled else "⇢" if token.steered else ""
        height = min(100.0, 100.0 * token.entropy / _FULL)
        shown = token_text(token.text) if token.text else "<span class=dim>end</span>"
        yield (
            f'<li class="cell {verdict}" title="{attribute(_said(token))}"><s>{mark}</s>'
            f'<i style="--h:{height:.0f}"></i><b>{shown}</b></li>'
        )


def _said(token: TokenTrace) -> str:
    said = [token.verdict.value] if token.verdict is not None else []
    said.append(f"probability {_share(token.logprob)}")
    said.append(f"entropy {token.entropy:.2f} nats")
    if token.overruled:
        said.append(f"{token.rejected} refused before it")
    if token.steered:
        said.append("chosen by the budget")
    return ", ".join(said)


def _overruled_table(tokens: Iterable[TokenTrace]) -> str:
    head = ("the model would have written", "written instead", "#refused", "#nats given up", "#probability", "by")
    rows = (
        row(
            f"<td class=m>{_preferred(token)}</td>",
            f"<td class=m>{token_text(token.text)}</td>" if token.text else "end of text",
            number(str(token.rejected)),
            number(f"{token.given_up:.2f}" if token.given_up is not None else "–"),
            number(_share(token.logprob)),
            "budget" if token.steered else "mask",
        )
        for token in tokens
    )
    return table("Where the model was overruled", head, rows)


def _preferred(token: TokenTrace) -> str:
    if token.preferred is None:
        return "<span class=dim>not told</span>"
    return token_text(token.preferred) if token.preferred else "<span class=dim>end of text</span>"


def _token_table(caption: str, tokens: Iterable[TokenTrace]) -> str:
    head = ("token", "verdict", "#probability", "#entropy", "#refused", "#nats given up", "#at")
    rows = (
        row(
            f"<td class=m>{token_text(token.text)}</td>" if token.text else "end of text",
            f"<span class={token.verdict.value}>{token.verdict.value}</span>" if token.verdict is not None else "–",
            number(_share(token.logprob)),
            number(f"{token.entropy:.2f}"),
            number(str(token.rejected)),
            number(f"{token.given_up:.2f}" if token.given_up is not None else "–"),
            number(_seconds(token.at_s) if token.at_s is not None else "–"),
        )
        for token in tokens
    )
    return table(caption, head, rows)


def _share(logprob: float) -> str:
    share = math.exp(min(0.0, logprob))
    return f"{share:.1%}" if share >= 0.001 else f"{share:.1e}"


def _gamma(turn: TurnTrace, gamma: Sequence[BindingTrace]) -> str:
    if not gamma:
        return "<p class=dim>Γ is empty.</p>"
    rows = (row(mono(one.name), mono(one.type), mono(one.value), new=one is turn.bound) for one in gamma)
    grown = f", {turn.bound.name} new" if turn.bound is not None else ""
    return folded(f"Γ after the turn: {len(gamma)}{grown}", table("Γ", ("name", "type", "value"), rows))
