"""A suite of episodes as a task of inspect-ai: its runner, its logs and its viewer over our agent.

    @task
    def tools() -> Task:
        return evaluation_task(Suite.load("examples/episodes"), Agent("default"))

The agent decodes with its own model, so inspect's is not asked: `inspect eval FILE.py --model none/none`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from agentkit.agent import Agent
from agentkit.evaluation import Outcome, run_to_end
from agentkit.models import MissingExtraError
from episodes import Episode, plain


def evaluation_task(episodes: Iterable[Episode], agent: Agent, *, name: str = "agentkit") -> Any:
    """An `inspect_ai.Task` that runs each episode with the agent and scores it by the episode's own grader.

    A run that ends in a `RunError` is a wrong answer whose explanation says why. A sample's metadata has the stop
    reason, the turns and the figures of the run; other errors are the runner's to handle.
    """
    sdk = _sdk()
    by_name = {episode.name: episode for episode in episodes}
    samples = [
        sdk.dataset.Sample(
            id=one.name, input=one.prompt, target=json.dumps(plain(one.expected)) if one.expected is not None else ""
        )
        for one in by_name.values()
    ]
    return sdk.Task(
        name=name,
        dataset=sdk.dataset.MemoryDataset(samples),
        solver=_solver(sdk, by_name, agent),
        scorer=_scorer(sdk),
    )


def _solver(sdk: Any, episodes: dict[str, Episode], agent: Agent) -> Any:
    @sdk.solver.solver(name="agentkit_agent")  # type: ignore[untyped-decorator]
    def agentkit_agent() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            outcome = await run_to_end(agent, episodes[str(state.sample_id)])
            state.output = sdk.model.ModelOutput.from_content("agentkit", json.dumps(plain(outcome.result.output)))
            for turn in outcome.result.turns:
                state.messages.append(sdk.model.ChatMessageAssistant(content=turn.text))
                state.messages.append(sdk.model.ChatMessageUser(content=turn.observation))
            state.metadata["agentkit"] = outcome.to_data()
            state.store.set("passed", outcome.passed)
            state.store.set("why", _why(outcome))
            state.completed = True
            return state

        return solve

    return agentkit_agent()


def _scorer(sdk: Any) -> Any:
    scoring = sdk.scorer

    @scoring.scorer(metrics=[scoring.accuracy(), scoring.stderr()], name="episode_grader")  # type: ignore[untyped-decorator]
    def episode_grader() -> Any:
        async def score(state: Any, target: Any) -> Any:
            value = scoring.CORRECT if state.store.get("passed") else scoring.INCORRECT
            return scoring.Score(value=value, answer=state.output.completion, explanation=state.store.get("why"))

        return score

    return episode_grader()


def _why(outcome: Outcome) -> str:
    grade = outcome.result.grade
    return outcome.error or (grade.reason if grade is not None else outcome.result.stop_reason.value)


def _sdk() -> Any:
    """The package, with the modules that are used loaded."""
    try:
        for part in ("dataset", "model", "scorer", "solver"):
            import_module(f"inspect_ai.{part}")
        return import_module("inspect_ai")
    except ModuleNotFoundError as error:
        raise MissingExtraError("inspect-ai", extra="inspect", purpose="evaluating with inspect-ai") from error
