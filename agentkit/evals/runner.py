"""Makes the attempts of a plan that no record tells of, several at once, and records each as it ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from agentkit.agent import Agent
from agentkit.evals.plan import Cell, EvalPlan
from agentkit.evals.records import EvalRecord, RecordFile, read_records
from agentkit.models import Model
from agentkit.modes import Mode
from episodes.evaluation import attempt_episode, work_through
from registry import Registry


async def run_plan(
    plan: EvalPlan,
    registry: Registry,
    path: Path,
    *,
    load: Callable[[str], Model],
    max_concurrency: int = 1,
    on_record: Callable[[EvalRecord, bool], None] = lambda record, is_new: None,
) -> list[EvalRecord]:
    """The record of every attempt of the plan, in its order; `load` gives a model when something of it is missing.

    `on_record` hears of those that were there already, and then of each new one. Every attempt has a session of its
    own, so it does not depend on which were made before it. Cancelled, what is recorded stays, and the rest of it is
    made the next time.
    """
    with RecordFile(path) as file:
        known = read_records(path)
        for model in plan.models:
            cells = list(plan.cells(model))
            for cell in cells:
                if cell.key in known:
                    on_record(known[cell.key], False)
            missing = [cell for cell in cells if cell.key not in known]
            if not missing:
                continue
            agents = _Agents(plan, load(model), registry)

            async def work(cell: Cell, agents: _Agents = agents) -> None:
                attempt = await attempt_episode(agents.agent(cell.mode, cell.number), cell.task.episode, cell.number)
                record = EvalRecord.of(cell, plan.settings.seed + cell.number, attempt)
                file.append(record)
                known[cell.key] = record
                on_record(record, True)

            await work_through(missing, work, max_concurrency=max_concurrency)
    return [known[cell.key] for model in plan.models for cell in plan.cells(model)]


class _Agents:
    """The agents of one model, one for each mode and seed."""

    def __init__(self, plan: EvalPlan, model: Model, registry: Registry) -> None:
        self._plan = plan
        self._model = model
        self._registry = registry
        self._made: dict[tuple[Mode, int], Agent] = {}

    def agent(self, mode: Mode, number: int) -> Agent:
        """The agent of an attempt."""
        if (mode, number) not in self._made:
            settings = self._plan.settings
            self._made[mode, number] = Agent(
                self._model,
                tools=self._registry,
                dialect=settings.dialect,
                mode=mode,
                usage_limits=settings.limits,
                sampling=settings.sampling(number),
                stop_policy=settings.stop_policy,
            )
        return self._made[mode, number]
