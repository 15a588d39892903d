"""The example episodes as an inspect-ai task: `inspect eval examples/inspect_eval.py --model none/none`.

`-T model=…` takes what `agentkit run --model` takes; "reference" replays each episode's own reference program.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inspect_ai import task  # type: ignore[import-not-found, unused-ignore]

from agentkit import Agent
from agentkit.connect.inspect_ai import evaluation_task
from agentkit.models import FunctionModel, Message, PrefixLike
from episodes import Suite
from registry import builtin

EPISODES = Path(__file__).parent / "episodes"


@task  # type: ignore[untyped-decorator, unused-ignore]
def example_episodes(model: str = "default", mode: str = "direct") -> Any:
    """The ten example episodes with the built-in tools."""
    suite = list(Suite.load(EPISODES, builtin()))
    steps = {one.prompt.strip(): [line for line in one.reference.splitlines() if line] for one in suite}

    def reference(messages: Sequence[Message], prefix: PrefixLike | None) -> str:
        """The next step of the reference program of the task that is asked."""
        asked = "\n".join(message.content for message in messages)
        prompt, program = next((prompt, program) for prompt, program in steps.items() if prompt in asked)
        done = asked.rpartition(prompt)[2].splitlines()
        return next(line for line in program if line not in done)

    agent = Agent(FunctionModel(reference) if model == "reference" else model, mode=mode)
    return evaluation_task(suite, agent)
