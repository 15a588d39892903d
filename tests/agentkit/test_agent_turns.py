"""Turns that are left: the last can only return, and what can't be returned in time is no step."""

from __future__ import annotations

import pytest

from agentkit import ConfigurationError, IncompleteStep, UsageLimitExceeded, UsageLimits
from tests.agentkit.test_agent import THREE_TURNS, Book, Calls, Paper, calls, make_agent, refused

__all__ = ["calls"]  # the fixture


def test_what_no_steps_return_is_refused_at_once(calls: Calls) -> None:
    with pytest.raises(ConfigurationError, match="no steps return a book"):
        make_agent(calls, *THREE_TURNS, output_type=Book).run_sync("Count.")


def test_what_cannot_be_returned_in_time_is_no_step(calls: Calls) -> None:
    """The last turn can only return, and a run whose answer takes more turns than there are ends at once."""
    for limit, ends in ((1, IncompleteStep), (2, IncompleteStep)):
        error = refused(ends, make_agent(calls, *THREE_TURNS, usage_limits=UsageLimits(turn_limit=limit)))
        assert len(error.result.steps) == limit - 1
    error = refused(
        UsageLimitExceeded, make_agent(calls, *THREE_TURNS, output_type=Paper, usage_limits=UsageLimits(turn_limit=1))
    )
    assert "no answer can be returned within 1 turns" in str(error)
    assert error.result.turns == ()
