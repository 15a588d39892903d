"""Graders: pure judgements of an output, given the environment before and after the run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from episodes.context import Bindings
from episodes.plain import plain, short


@dataclass(frozen=True, kw_only=True, slots=True)
class Grade:
    """A judgement and, in one sentence, its reason."""

    passed: bool
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Environment:
    """Γ before the first step and after the last."""

    before: Bindings = field(default_factory=Bindings)
    after: Bindings = field(default_factory=Bindings)


Grader = Callable[[object, Environment], Grade]


def equals(expected: object) -> Grader:
    """The output is this value; records compare by their fields, and true is not 1."""

    def grade(output: object, environment: Environment) -> Grade:
        return _grade(_same(plain(output), plain(expected)), output, f"equal to {short(expected)}")

    return grade


def approx(expected: float, tolerance: float) -> Grader:
    """The output is a number no further than `tolerance` from this one."""
    if not tolerance >= 0:
        raise ValueError(f"the tolerance must be a number from 0 on, not {tolerance!r}")

    def grade(output: object, environment: Environment) -> Grade:
        number = isinstance(output, int | float) and not isinstance(output, bool)
        near = isinstance(output, int | float) and number and abs(output - expected) <= tolerance
        return _grade(near, output, f"within {tolerance!r} of {expected!r}")

    return grade


def contains(part: object) -> Grader:
    """The output is a string that contains this text, whatever the case, or a list with this item."""

    def grade(output: object, environment: Environment) -> Grade:
        if isinstance(output, str) and isinstance(part, str):
            inside = part.casefold() in output.casefold()
        else:
            inside = isinstance(output, list) and any(_same(plain(item), plain(part)) for item in output)
        return _grade(inside, output, f"something that contains {short(part)}")

    return grade


def one_of(*options: object) -> Grader:
    """The output is one of these values."""
    if not options:
        raise ValueError("one_of needs at least one option")

    def grade(output: object, environment: Environment) -> Grade:
        hit = any(_same(plain(output), plain(option)) for option in options)
        return _grade(hit, output, f"one of {', '.join(map(short, options))}")

    return grade


def predicate(test: Callable[[object, Environment], bool], description: str = "") -> Grader:
    """The output passes a test of one's own."""
    wanted = (
        description or (test.__doc__ or "").strip().partition("\n")[0] or getattr(test, "__name__", type(test).__name__)
    )

    def grade(output: object, environment: Environment) -> Grade:
        return _grade(bool(test(output, environment)), output, f"something that passes: {wanted}")

    return grade


def _grade(passed: bool, output: object, wanted: str) -> Grade:
    reason = f"the output is {wanted}" if passed else f"the output should be {wanted}, but is {short(output)}"
    return Grade(passed=passed, reason=reason)


def _same(left: object, right: object) -> bool:
    """Equality of plain values, in which truth values equal no numbers and NaN equals itself."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(item, right[key]) for key, item in left.items())
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return isinstance(left, bool) == isinstance(right, bool) and left == right
