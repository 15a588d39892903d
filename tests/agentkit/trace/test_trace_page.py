"""Traces as data and as pages: what is written down is read back, every text is data, the page needs nothing."""

from __future__ import annotations

import json
import re
import shutil
import string
import subprocess
from dataclasses import fields
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkit import cli
from agentkit.models import FinishReason, Steering
from agentkit.modes import Mode
from agentkit.result import RunTiming, RunUsage, StopReason
from agentkit.trace import BindingTrace, CallTrace, MessageTrace, TokenTrace, Trace, TraceError, TurnTrace, trace_page
from aufbau import Verdict

ATTACK = "</script></style><script>alert(1)</script><img src=x onerror=alert(1)>\"'`><!--"
# What a page may consist of: nothing that loads, runs or sends anything.
TAGS = (
    "html head meta title style body header main section h1 h2 h3 p span div pre code dl dt dd ul ol li b i s "
    "details summary table caption thead tbody tr th td"
)
VOID = {"meta"}

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")

texts = st.one_of(st.text(max_size=30), st.sampled_from([ATTACK, "\u202e\x00\x08\x1b[31m", "line\nline\ttab", ""]))
seconds = st.floats(0, 1e6)
tokens = st.builds(
    TokenTrace,
    text=texts,
    verdict=st.sampled_from([None, *Verdict]),
    entropy=st.floats(0, 12),
    logprob=st.floats(-1e3, 0),
    first_choice=st.booleans(),
    rejected=st.integers(0, 9),
    steered=st.booleans(),
    preferred=st.none() | texts,
    given_up=st.none() | st.floats(0, 1e3),
    at_s=st.none() | seconds,
)
bindings = st.builds(BindingTrace, name=texts, type=texts, value=texts)
calls = st.builds(
    CallTrace,
    tool=texts,
    arguments=texts,
    result=st.none() | texts,
    error=st.none() | texts,
    seconds=seconds,
)
turns = st.builds(
    TurnTrace,
    number=st.integers(1, 99),
    started_s=st.none() | seconds,
    messages=st.lists(st.builds(MessageTrace, role=texts, content=texts), max_size=2).map(tuple),
    thought=texts,
    reasoning=st.lists(tokens, max_size=2).map(tuple),
    begun=texts,
    text=texts,
    tokens=st.lists(tokens, max_size=4).map(tuple),
    finish=st.none() | st.sampled_from(FinishReason),
    steering=st.sampled_from(Steering),
    model_s=st.none() | seconds,
    oracle_s=st.none() | seconds,
    tool_s=st.none() | seconds,
    calls=st.lists(calls, max_size=2).map(tuple),
    bound=st.none() | bindings,
    returned=st.none() | texts,
    observation=texts,
    error=st.none() | texts,
)
traces = st.builds(
    Trace,
    episode=texts,
    prompt=texts,
    model=texts,
    mode=st.none() | st.sampled_from(Mode),
    temperature=st.none() | st.floats(0, 2),
    seed=st.none() | st.integers(0, 9),
    started_at=texts,
    bindings=st.lists(bindings, max_size=2).map(tuple),
    turns=st.lists(turns, max_size=2).map(tuple),
    stop_reason=st.sampled_from(StopReason),
    error=st.none() | texts,
    output=st.none() | texts,
    passed=st.none() | st.booleans(),
    grade=texts,
    usage=st.builds(RunUsage, turns=st.integers(0, 9)),
    timing=st.builds(RunTiming, model_s=seconds, total_s=seconds),
)


class Reader(HTMLParser):
    """Reads a page as a browser would; notes what it consists of, and whether every element is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.data: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.data.append(data)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


@settings(max_examples=40)
@given(traces)
def test_a_trace_survives_json(trace: Trace) -> None:
    assert Trace.from_json(trace.to_json()) == trace
    assert json.loads(trace.to_json()) == trace.to_data()


@settings(max_examples=40)
@given(traces)
def test_no_text_of_a_run_is_ever_markup(trace: Trace) -> None:
    page = trace_page(trace)
    reader = read(page)
    assert reader.tags <= set(TAGS.split())
    assert not {name for name in reader.attributes if name.startswith("on") or name in ("src", "href", "action")}
    assert not re.search(r"url\(|@import|https?://", page)
    # What could hide or reorder the text around it is spelled out.
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", page)


def example(**changed: object) -> Trace:
    token = TokenTrace(text="x", verdict=Verdict.LIVE, entropy=1.0, logprob=-1.0, first_choice=True, rejected=0)
    turn = TurnTrace(number=1, text="x", tokens=(token,), finish=FinishReason.SATISFIED)
    given: dict[str, object] = {"turns": (turn,), "stop_reason": StopReason.RETURNED, **changed}
    return Trace(episode="e", started_at="2026-01-01", usage=RunUsage(), timing=RunTiming(), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("place", ["prompt", "error", "output", "grade", "model"])
def test_an_attack_is_shown_as_text(place: str) -> None:
    page = trace_page(example(**{place: ATTACK}))
    assert ATTACK in "".join(read(page).data)
    assert ATTACK not in page


def test_the_page_shows_where_the_mask_overruled_the_model_and_by_how_much() -> None:
    token = TokenTrace(
        text=' "7"',
        verdict=Verdict.SATISFIED,
        entropy=2.5,
        logprob=-4.0,
        first_choice=False,
        rejected=3,
        preferred=" seven",
        given_up=3.25,
    )
    turn = TurnTrace(number=4, text='return "7"', tokens=(token,), finish=FinishReason.SATISFIED)
    data = read(trace_page(example(turns=(turn,)))).data
    for shown in ("✕3", "·seven", '·"7"', "3.25", "satisfied", "1.8%", "1 tokens, 1 overruled, ended: satisfied"):
        assert shown in data


def test_gamma_grows_turn_by_turn_and_long_texts_are_cut_with_their_size() -> None:
    def turn(number: int) -> TurnTrace:
        bound = BindingTrace(name=f"name{number}", type="docs", value="v")
        return TurnTrace(number=number, bound=bound, observation="o" * 9000)

    page = trace_page(example(bindings=(BindingTrace(name="given", type="int", value="1"),), turns=(turn(1), turn(2))))
    data = read(page).data
    assert "Γ after the turn: 2, name1 new" in data
    assert "Γ after the turn: 3, name2 new" in data
    assert any("(9,000 characters in all)" in piece for piece in data)


def test_half_a_character_is_written_and_read() -> None:
    trace = example(output="\ud800", prompt="whole")
    assert Trace.from_json(trace.to_json()).output == "?"
    assert "\\ud800" in trace_page(trace)


BROKEN = [
    ("", "the whole text"),
    ("{}", "episode"),
    (example().to_json().replace('"version": 1', '"version": 2'), "version"),
    (example().to_json().replace('"live"', '"alive"'), "turns/0/tokens/0/verdict"),
]


@pytest.mark.parametrize(("text", "place"), BROKEN)
def test_what_is_no_trace_is_refused_with_its_place(text: str, place: str) -> None:
    with pytest.raises(TraceError, match=place):
        Trace.from_json(text)


def test_the_command_makes_a_page_of_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.json").write_text(example(prompt="the task").to_json(), encoding="utf-8")
    assert cli.main(["trace", str(tmp_path / "t.json"), "-o", str(tmp_path / "t.html")]) == 0
    assert "the task" in (tmp_path / "t.html").read_text(encoding="utf-8")
    assert cli.main(["trace", "--schema"]) == 0
    assert "TurnTrace" in json.loads(capsys.readouterr().out)["$defs"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["trace"], "give the file"),
        (["trace", "{folder}/none.json"], "No such file"),
        (["trace", "{folder}/no.json", "-o", "{folder}/page.txt"], "no trace of version 1"),
        (["run", "{folder}/e.toml", "--trace", "{folder}/page.txt"], "end the name"),
        (["run", "{folder}/e.toml", "--trace", "{folder}/none/page.html"], "make it first"),
        (["run", "{folder}/e.toml", "--mode", "direct", "--mode", "mixed", "--trace", "p.html"], "one run"),
    ],
)
def test_wrong_input_is_told_in_one_line(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "no.json").write_text("{}", encoding="utf-8")
    (tmp_path / "e.toml").write_text('name = "e"\nprompt = "p"\n', encoding="utf-8")
    assert cli.main([argument.format(folder=tmp_path) for argument in arguments]) == cli.WRONG_INPUT
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1


def test_every_printable_character_reaches_the_page() -> None:
    assert string.printable.strip() in "".join(read(trace_page(example(prompt=string.printable.strip()))).data)


def test_the_document_names_every_field_of_a_token() -> None:
    document = (Path(__file__).parents[3] / "docs" / "trace.md").read_text(encoding="utf-8")
    assert [field.name for field in fields(TokenTrace) if f"`{field.name}`" not in document] == []


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
def test_a_browser_shows_the_page_and_runs_nothing(tmp_path: Path) -> None:
    attack = "<script>document.title='hacked'</script><img src=x onerror=\"document.title='hacked'\">"
    page = tmp_path / "page.html"
    page.write_text(trace_page(example(prompt=attack, output=attack, error=attack)), encoding="utf-8")
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    shown = subprocess.run(
        [*command, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    reader = read(shown)
    assert reader.tags <= set(TAGS.split())
    assert "<title>e: returned</title>" in shown
    assert attack in "".join(reader.data)
