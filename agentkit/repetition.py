"""What a run has proposed and called so far, so that a repetition is recognised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import final

from dialects import Call, Expression, Let, ListLiteral, RecordLiteral, Step
from registry import Registry


def calls_of(step: Step) -> Iterator[Call]:
    """The calls in a step, nested ones included, outermost first."""
    yield from _calls_in(step.call if isinstance(step, Let) else step.value)


def _calls_in(expression: Expression) -> Iterator[Call]:
    if isinstance(expression, Call):
        yield expression
        for _, argument in expression.arguments:
            yield from _calls_in(argument)
    elif isinstance(expression, ListLiteral):
        for item in expression.items:
            yield from _calls_in(item)
    elif isinstance(expression, RecordLiteral):
        for _, value in expression.fields:
            yield from _calls_in(value)


@final
class History:
    """The steps of one run. A binder is fresh every time, so steps are compared without it."""

    def __init__(
        self,
        registry: Registry,
        *,
        proposed: Mapping[str, int] | None = None,
        called: Mapping[str, str | None] | None = None,
    ) -> None:
        """`proposed` and `called` are those of the history that this one goes on from."""
        self._registry = registry
        self._proposed: Counter[str] = Counter(proposed or {})
        self._pure: dict[str, str | None] = dict(called or {})

    @property
    def proposed(self) -> dict[str, int]:
        """How often each step was proposed."""
        return dict(self._proposed)

    @property
    def called(self) -> dict[str, str | None]:
        """The calls of pure tools, with the names that hold their results; None for one that failed."""
        return dict(self._pure)

    def propose(self, step: Step | str) -> int:
        """Count a proposed step (its text, where it could not be read) and say how often it has come."""
        key = step if isinstance(step, str) else _key(step)
        self._proposed[key] += 1
        return self._proposed[key]

    def record(self, step: Step, *, succeeded: bool = True) -> None:
        """Remember a step whose outcome will not change, well or not: a call of pure tools only."""
        if isinstance(step, Let) and all(self._registry[call.tool].pure for call in calls_of(step)):
            self._pure.setdefault(_key(step), step.name if succeeded else None)

    def has_called(self, step: Step) -> bool:
        """Whether `step` repeats a pure call."""
        return isinstance(step, Let) and _key(step) in self._pure

    def bound_to(self, step: Step) -> str | None:
        """The name that holds the result of the pure call that `step` repeats; None where the call failed."""
        return self._pure.get(_key(step))

    @property
    def has_pure_calls(self) -> bool:
        return bool(self._pure)


def _key(step: Step) -> str:
    # The representation, unlike equality, keeps 1, 1.0 and true apart.
    return repr(step.call if isinstance(step, Let) else step)
