"""A suite evaluated by inspect-ai: scores are the graders', failed runs are wrong answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentkit import Agent
from agentkit.connect import inspect_ai
from agentkit.connect.inspect_ai import evaluation_task
from agentkit.models import FunctionModel, Message, MissingExtraError, PrefixLike
from episodes import Episode
from registry import INT, Registry, tool


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def episode(name: str, expected: int) -> Episode:
    return Episode(name=name, prompt=f"Return {name}.", registry=Registry([add]), output_type=INT, expected=expected)


def answer(messages: object, prefix: PrefixLike | None) -> str:
    """Returns 3 whatever is asked, but breaks off where the task is 'cut'."""
    assert isinstance(messages, tuple)
    said = " ".join(message.content for message in messages if isinstance(message, Message))
    return "let x = " if "Return cut." in said else "return 3;"


# The runner leaves some of its own streams open.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_scores_are_those_of_the_graders(tmp_path: Path) -> None:
    sdk = pytest.importorskip("inspect_ai", reason="needs the package inspect-ai")
    suite = [episode("right", 3), episode("wrong", 4), episode("cut", 3)]
    task = evaluation_task(suite, Agent(FunctionModel(answer)))
    (log,) = sdk.eval(task, model="none/none", log_dir=str(tmp_path), display="none")
    assert log.status == "success"
    scores = {sample.id: sample.scores["episode_grader"] for sample in log.samples}
    assert {name: score.value for name, score in scores.items()} == {"right": "C", "wrong": "I", "cut": "I"}
    assert "incomplete" in scores["cut"].explanation
    assert log.samples[0].metadata["agentkit"]["usage"]["turns"] == 1
    (accuracy,) = [metric.value for metric in log.results.scores[0].metrics.values() if metric.name == "accuracy"]
    assert accuracy == pytest.approx(1 / 3)


def test_without_the_package_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(inspect_ai, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r"aufbau\[inspect\]"):
        evaluation_task([], Agent(FunctionModel(answer)))
