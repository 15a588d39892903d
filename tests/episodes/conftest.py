"""Asynchronous tests of episodes run on both event loops."""

import pytest


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The event loop."""
    name: str = request.param
    return name
