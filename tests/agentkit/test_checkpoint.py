"""Checkpoints: values that come back, what is refused, and processes that are killed inside a tool."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import (
    Agent,
    Approve,
    Checkpoint,
    CheckpointError,
    ConfigurationError,
    Deny,
    Event,
    ResumeConflict,
    RunResult,
    StopReason,
    TokenGenerated,
    ToolFailed,
    UsageLimitExceeded,
    UsageLimits,
)
from agentkit.checkpoint import write_atomically
from agentkit.models import ScriptedModel
from agentkit.saving import Saver
from episodes import Binding, Bindings, Episode
from registry import INT, Identifier, Registry, ToolType, builtin, type_from_hint
from tests.agentkit import checkpoint_run as shop

ROOT = Path(__file__).parents[2]


def resumed(agent: Agent, checkpoint: Any, episode: Episode | str = shop.TASK, **options: Any) -> RunResult:
    async def main() -> RunResult:
        return await agent.resume(checkpoint, episode=episode, **options)

    return anyio.run(main)


def calls(folder: Path) -> list[str]:
    file = folder / "calls"
    return file.read_text().split() if file.exists() else []


# A killed process


def killed(folder: Path, tool: str) -> Path:
    """The checkpoint file of a process that was killed inside a tool."""
    command = [sys.executable, "-m", "tests.agentkit.checkpoint_run", str(folder), tool]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=110, check=False)
    assert done.returncode == -signal.SIGKILL
    assert calls(folder) == ["fill", "order", tool]
    assert [path.name for path in sorted(folder.iterdir())] == ["calls", "run.json"]
    return folder / "run.json"


def test_a_killed_run_is_not_gone_on_with_where_a_call_might_be_made_twice(tmp_path: Path) -> None:
    file = killed(tmp_path, "pay")
    with pytest.raises(ResumeConflict, match="pay took effect is not known") as caught:
        resumed(shop.make_agent(tmp_path), file)
    assert caught.value.tools == ("pay",)
    assert calls(tmp_path) == ["fill", "order", "pay"]
    # Somebody found out that it was not paid, or that it was.
    result = resumed(shop.make_agent(tmp_path, "return p;"), file, decision=Approve())
    assert result.output is True and calls(tmp_path) == ["fill", "order", "pay", "pay"]
    result = resumed(shop.make_agent(tmp_path, "return true;"), file, decision=Deny("it was paid"))
    assert result.turns[2].observation == "Denied: it was paid" and calls(tmp_path) == ["fill", "order", "pay", "pay"]


def test_a_killed_run_goes_on_where_a_second_call_does_no_harm(tmp_path: Path) -> None:
    file = killed(tmp_path, "track")
    result = resumed(shop.make_agent(tmp_path, "return t;"), file, checkpoint_path=file)
    assert result.output == "o-1 is under way"
    assert calls(tmp_path) == ["fill", "order", "track", "track"]
    assert result.bindings["b"].value == shop.Basket(["tea"])
    order = result.bindings["o"].value
    assert order == shop.make_registry(tmp_path)["order"].function(shop.Basket([]))
    assert [turn.number for turn in result.turns] == [1, 2, 3, 4] and result.usage.turns == 4
    # The file now holds the whole run: to go on with it does nothing and gives the same.
    again = resumed(shop.make_agent(tmp_path), file)
    assert (again.output, again.stop_reason, again.run_id) == (result.output, StopReason.RETURNED, result.run_id)
    assert calls(tmp_path)[4:] == ["order"]


# Between turns


REPLIES = (*shop.BEFORE, *shop.STEPS["pay"])


@pytest.mark.parametrize("turns", range(len(REPLIES) + 1))
@pytest.mark.parametrize("as_text", [False, True])
def test_after_any_turn_a_run_goes_on_as_if_nothing_had_been(tmp_path: Path, turns: int, as_text: bool) -> None:
    async def begin() -> Checkpoint:
        async with shop.make_agent(tmp_path, *REPLIES).iter(shop.TASK) as run:
            for _ in range(turns):
                await anext(run)
            return run.checkpoint

    checkpoint = anyio.run(begin)
    result = resumed(shop.make_agent(tmp_path, *REPLIES[turns:]), checkpoint.to_json() if as_text else checkpoint)
    assert result.output is True and calls(tmp_path) == ["fill", "order", "pay"]
    assert [turn.text for turn in result.turns] == list(REPLIES)
    assert [turn.number for turn in result.turns] == [1, 2, 3, 4]
    assert len(result.steps) == 4 and result.usage.tool_calls == 3 and list(result.bindings) == ["b", "o", "p"]
    whole = shop.make_agent(tmp_path, *REPLIES).run_sync(shop.TASK)
    assert result.usage.generated_tokens == whole.usage.generated_tokens
    assert result.messages == whole.messages


def test_wherever_a_process_dies_nothing_is_executed_twice(tmp_path: Path) -> None:
    """The file as it is at every event of a run, and a run gone on with from there."""
    replies = (*shop.BEFORE, "let t = track(o.id);", "let p = pay(o.id);", "return p;")
    seen: list[tuple[str, str, int]] = []
    file = tmp_path / "run.json"

    def look(event: Event) -> None:
        if file.exists() and not isinstance(event, TokenGenerated):
            seen.append((type(event).__name__, file.read_text(), len(calls(tmp_path))))

    shop.make_agent(tmp_path, *replies).run_sync(shop.TASK, checkpoint_path=file, on_event=look)
    whole = calls(tmp_path)
    assert whole == ["fill", "order", "track", "pay"]
    conflicts = 0
    for place, (name, text, made) in enumerate(seen):
        folder = tmp_path / str(place)
        folder.mkdir()
        data = json.loads(text)
        done = len(data["turns"]) + (data["pending"] is not None)
        try:
            result = resumed(shop.make_agent(folder, *replies[done:]), text)
        except ResumeConflict as conflict:
            assert data["pending"]["begun"] and conflict.tools in [("order",), ("pay",)], name
            assert calls(folder) == []
            conflicts += 1
            continue
        again = calls(folder)
        assert result.output is True and [turn.text for turn in result.turns] == list(replies)
        both = [*whole[:made], *again]
        # At most the call at which it died is made again, and only where that does no harm.
        assert [call for call in both if call not in ("fill", "track")] == ["order", "pay"], name
        assert len(both) <= len(whole) + 1
    assert conflicts >= 4 and len(seen) > 20


def test_repetitions_are_remembered(tmp_path: Path) -> None:
    async def begin() -> Checkpoint:
        async with shop.make_agent(tmp_path, *REPLIES).iter(shop.TASK) as run:
            await anext(run)
            return run.checkpoint

    again = shop.make_agent(tmp_path, 'let c = fill("tea");', "return true;")
    result = resumed(again, anyio.run(begin).to_json())
    # The call of a pure tool is not admitted a second time, nor made.
    assert result.turns[1].observation.startswith("Called already: ")
    assert calls(tmp_path) == ["fill"]


def test_a_limit_holds_over_the_whole_run_and_a_higher_one_goes_on(tmp_path: Path) -> None:
    def agent(limit: int, *replies: str) -> Agent:
        limits = UsageLimits(tool_call_limit=limit)
        return Agent(ScriptedModel(replies), tools=shop.make_registry(tmp_path), usage_limits=limits)

    with pytest.raises(UsageLimitExceeded) as caught:
        agent(2, *REPLIES[:3]).run_sync(shop.TASK)
    checkpoint = caught.value.result.checkpoint
    with pytest.raises(UsageLimitExceeded):
        resumed(agent(2), checkpoint)
    # The step that was one too many was not executed, and is executed now without asking the model again.
    assert resumed(agent(3, "return p;"), checkpoint).output is True
    assert calls(tmp_path) == ["fill", "order", "pay"]


def test_text_that_utf8_cannot_hold_is_kept(tmp_path: Path) -> None:
    def listing() -> str:
        """The name of a file, as the system gives one that is no UTF-8."""
        return os.fsdecode(b"\xff.txt")

    path = tmp_path / "run.json"
    agent = Agent(ScriptedModel(["let x = listing();", "return x;"]), tools=[listing])
    assert agent.run_sync("List.", checkpoint_path=path).output == "\udcff.txt"
    assert resumed(agent, path, "List.").output == "\udcff.txt"


def test_many_threads_may_write_one_file(tmp_path: Path) -> None:
    path, texts = tmp_path / "run.json", [str(number) * 5_000 for number in range(4)]

    def write(text: str) -> None:
        for _ in range(25):
            write_atomically(path, text)
            assert path.read_text() in texts

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, texts))
    assert [one.name for one in tmp_path.iterdir()] == ["run.json"]


def test_a_new_name_is_on_disk_before_anything_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bool] = []
    path = tmp_path / "run.json"
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(stat.S_ISDIR(os.fstat(file).st_mode) and path.exists()))
    write_atomically(path, "text")
    assert synced == [False, True]


def test_what_a_failed_tool_left_can_be_gone_on_with() -> None:
    registry, times = Registry(), list[int]()

    @registry.tool
    def flaky() -> int:
        """Fail once."""
        times.append(1)
        if len(times) == 1:
            raise OSError("no network")
        return 7

    with pytest.raises(ToolFailed) as caught:
        Agent(ScriptedModel(["let n = flaky();"]), tools=registry).run_sync("Try.")
    agent = Agent(ScriptedModel(["let n = flaky();", "return n;"]), tools=registry)
    assert resumed(agent, caught.value.result.checkpoint.to_json(), "Try.").output == 7


def test_a_cancelled_step_is_pending(tmp_path: Path) -> None:
    registry = Registry()

    @registry.tool
    async def hang() -> int:
        """Never return."""
        await anyio.sleep_forever()
        raise AssertionError

    agent = Agent(ScriptedModel(["let n = hang();"]), tools=registry, usage_limits=UsageLimits(turn_timeout=0.2))
    file = tmp_path / "run.json"
    with pytest.raises(UsageLimitExceeded) as caught:
        agent.run_sync("Hang.", checkpoint_path=file)
    for checkpoint in (caught.value.result.checkpoint, file):
        with pytest.raises(ResumeConflict):
            resumed(agent, checkpoint, "Hang.")


def test_the_built_in_tools_can_be_kept(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    with builtin() as tools:
        steps = ['let d = search("solar storms");', "let n = count(d);", "return n;"]
        result = Agent(ScriptedModel(steps), tools=tools).run_sync("Count.", checkpoint_path=file)
        checkpoint = Checkpoint.from_json(file.read_text(), tools)
    assert checkpoint.bindings == result.bindings and checkpoint.output == result.output


def test_bindings_of_the_episode_come_from_the_episode() -> None:
    registry = Registry()

    @registry.tool
    def double(n: int) -> int:
        """Twice."""
        return 2 * n

    episode = Episode(name="e", prompt="Double it.", bindings=Bindings([Binding(name="k", type=INT, value=4)]))

    async def begin() -> str:
        async with Agent(ScriptedModel(["let n = double(k);"]), tools=registry).iter(episode) as run:
            await anext(run)
            return run.checkpoint.to_json()

    text = anyio.run(begin)
    assert [one["name"] for one in json.loads(text)["bindings"]] == ["n"]
    agent = Agent(ScriptedModel(["let m = double(n);", "return m;"]), tools=registry)
    assert resumed(agent, text, episode).output == 16


# What is refused


def test_handles_without_a_codec_are_refused_before_the_run(tmp_path: Path) -> None:
    model = ScriptedModel(REPLIES)
    agent = Agent(model, tools=shop.make_registry(tmp_path))
    with pytest.raises(ConfigurationError, match=r"codecs=\{Basket: Codec"):
        agent.run_sync(shop.TASK, checkpoint_path=tmp_path / "run.json")
    assert model.remaining == len(REPLIES) and not list(tmp_path.iterdir())
    with pytest.raises(CheckpointError, match=r"binding 'b': .*handle basket .*nothing is pickled"):
        agent.run_sync(shop.TASK).checkpoint.to_json()


def test_a_file_that_cannot_be_written_ends_the_run_before_the_step(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no folder"):
        shop.make_agent(tmp_path, *REPLIES).run_sync(shop.TASK, checkpoint_path=tmp_path / "absent" / "run.json")
    (tmp_path / "run.json").mkdir()
    with pytest.raises(CheckpointError, match="nothing more was executed"):
        shop.make_agent(tmp_path, *REPLIES).run_sync(shop.TASK, checkpoint_path=tmp_path / "run.json")
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_lower_limit_holds_for_the_step_that_waits(tmp_path: Path) -> None:
    def agent(*replies: str, **limits: int) -> Agent:
        given = UsageLimits(**limits)
        return Agent(ScriptedModel(replies), tools=shop.make_registry(tmp_path), usage_limits=given)

    with pytest.raises(UsageLimitExceeded) as caught:
        agent(*REPLIES, tool_call_limit=2).run_sync(shop.TASK)
    with pytest.raises(UsageLimitExceeded, match="within 2 turns"):
        resumed(agent(turn_limit=2), caught.value.result.checkpoint)
    assert calls(tmp_path) == ["fill", "order"]


def test_a_conversation_of_ones_own_is_refused(tmp_path: Path) -> None:
    result = shop.make_agent(tmp_path, *REPLIES).run_sync(shop.TASK)
    with pytest.raises(ConfigurationError, match="holds the conversation already"):
        resumed(shop.make_agent(tmp_path), result.checkpoint, message_history=result.messages)


def test_another_episode_is_refused(tmp_path: Path) -> None:
    checkpoint = shop.make_agent(tmp_path, *REPLIES).run_sync(shop.TASK).checkpoint
    with pytest.raises(CheckpointError, match=r"Order tea.*cannot go on with .*Order coffee"):
        resumed(shop.make_agent(tmp_path), checkpoint, "Order coffee.")


BROKEN = [
    ("{", "is JSON, and this is not"),
    ("[]", "expected a checkpoint of version 1"),
    ('{"version": 2}', "expected a checkpoint of version 1"),
    ('{"version": 1}', "not a checkpoint that to_json wrote: KeyError"),
]


@pytest.mark.parametrize(("text", "said"), BROKEN)
def test_what_is_no_checkpoint_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(CheckpointError, match=said):
        resumed(shop.make_agent(tmp_path), text)
    with pytest.raises(CheckpointError, match="cannot be read"):
        resumed(shop.make_agent(tmp_path), tmp_path / "absent.json")


def test_types_that_have_changed_are_refused(tmp_path: Path) -> None:
    text = shop.make_agent(tmp_path, *REPLIES).run_sync(shop.TASK).checkpoint.to_json()
    gone = Agent(ScriptedModel([]), tools=Registry([shop.make_registry(tmp_path)["pay"]]), codecs=shop.CODECS)
    with pytest.raises(CheckpointError, match="tools that the checkpoint was made with"):
        resumed(gone, text)
    data = json.loads(text)
    data["bindings"][1]["value"]["size"] = "huge"
    with pytest.raises(CheckpointError, match=r"binding 'o': .*tools that the checkpoint was made with"):
        resumed(shop.make_agent(tmp_path), json.dumps(data))


# Values


@dataclass(frozen=True)
class Pair:
    """A record within a record."""

    left: int
    right: str | None


@dataclass(frozen=True)
class Nest:
    """A record with parts of many types."""

    pairs: list[Pair]
    day: date
    size: shop.Size
    id: shop.OrderId


PAIRS = st.builds(Pair, left=st.integers(), right=st.none() | st.text())
SIZES = st.sampled_from(shop.Size)
VALUES: dict[object, st.SearchStrategy[object]] = {
    int: st.integers(),
    float: st.floats(allow_nan=False),
    str: st.text(),
    bool: st.booleans(),
    date: st.dates(),
    shop.Size: SIZES,
    list[float]: st.lists(st.floats(allow_nan=False)),
    Nest: st.builds(Nest, pairs=st.lists(PAIRS), day=st.dates(), size=SIZES, id=st.text().map(shop.OrderId)),
    list[shop.Basket]: st.lists(st.builds(shop.Basket, st.lists(st.text()))),
    shop.OrderId: st.text().map(lambda text: Identifier(type="order_id", value=text)),
}
TYPED = st.sampled_from(list(VALUES)).flatmap(
    lambda hint: VALUES[hint].map(lambda value: (type_from_hint(hint, name="x"), value))
)


@given(TYPED)
def test_values_come_back_from_json(typed: tuple[ToolType, object]) -> None:
    kind, value = typed
    saver = Saver(shop.CODECS)
    data = json.loads(json.dumps(saver.encode(kind, value), allow_nan=False))
    back = saver.decode(kind, data)
    assert (back, type(back)) == (value, type(value))
