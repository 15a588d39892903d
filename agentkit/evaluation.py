"""Runs several episodes with one agent and sums up what came of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Self

import anyio

from agentkit.agent import Agent
from agentkit.errors import RunError
from agentkit.models import Session
from agentkit.modes import Mode
from agentkit.result import RunResult, StopReason
from episodes import Episode


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """One episode's result, and the message of the error that ended its run, if one did."""

    result: RunResult
    error: str | None = None

    @property
    def passed(self) -> bool:
        """Returned, and judged well by the grader where there is one."""
        grade = self.result.grade
        return self.result.stop_reason is StopReason.RETURNED and (grade is None or grade.passed)

    def to_data(self) -> dict[str, object]:
        """The outcome as JSON-able data."""
        return {**self.result.to_data(), "passed": self.passed, "error": self.error}


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """The figures of several runs in one mode."""

    mode: Mode
    episodes: int
    returned: int
    """Episodes that ended with an output."""

    passed: int
    """Episodes whose output was judged well."""

    turns: int
    well_typed: int
    """Turns whose text was a well-typed step."""

    executed: int
    """Steps that were executed to their end."""

    tokens: int
    model_s: float
    oracle_s: float

    @classmethod
    def of(cls, mode: Mode, outcomes: Iterable[Outcome]) -> Self:
        """The figures of these outcomes."""
        all_of = list(outcomes)
        results = [one.result for one in all_of]
        turns = [turn for result in results for turn in result.turns]
        return cls(
            mode=mode,
            episodes=len(results),
            returned=sum(result.stop_reason is StopReason.RETURNED for result in results),
            passed=sum(one.passed for one in all_of),
            turns=len(turns),
            well_typed=sum(turn.step is not None for turn in turns),
            executed=sum(len(result.steps) for result in results),
            tokens=sum(result.usage.generated_tokens for result in results),
            model_s=sum(result.timing.model_s for result in results),
            oracle_s=sum(result.timing.oracle_s for result in results),
        )

    @property
    def well_typed_share(self) -> float:
        """Well-typed turns of all turns."""
        return self.well_typed / self.turns if self.turns else 0.0

    @property
    def passed_share(self) -> float:
        """Episodes passed of all episodes."""
        return self.passed / self.episodes if self.episodes else 0.0

    @property
    def oracle_ratio(self) -> float:
        """Time of the oracle for each token, over the time of the model for each token."""
        return self.oracle_s / self.model_s if self.model_s else 0.0

    def to_data(self) -> dict[str, object]:
        """The figures as JSON-able data."""
        return {
            "mode": self.mode.value,
            "episodes": self.episodes,
            "returned": self.returned,
            "passed": self.passed,
            "turns": self.turns,
            "well_typed_share": self.well_typed_share,
            "executed": self.executed,
            "tokens": self.tokens,
            "model_s": self.model_s,
            "oracle_s": self.oracle_s,
            "oracle_ratio": self.oracle_ratio,
        }


async def run_to_end(agent: Agent, episode: Episode, *, session: Session | None = None) -> Outcome:
    """Run an episode; a run that ends by a `RunError` is an outcome too."""
    try:
        return Outcome(result=await agent.run(episode, session=session))
    except RunError as error:
        return Outcome(result=error.result, error=str(error))


async def evaluate(
    agent: Agent, episodes: Iterable[Episode], *, on_outcome: Callable[[Outcome], None] | None = None
) -> list[Outcome]:
    """Run the episodes one after the other in one session; `on_outcome` hears of each as it ends."""
    outcomes = []
    session = await agent.open_session()
    try:
        for episode in episodes:
            outcomes.append(await run_to_end(agent, episode, session=session))
            if on_outcome is not None:
                on_outcome(outcomes[-1])
    finally:
        with anyio.CancelScope(shield=True):
            await session.aclose()
    return outcomes
