"""What all tests share: the hypothesis profiles, and that nothing is kept in the user's cache."""

from __future__ import annotations

import os

from hypothesis import settings

# No deadline: a shared machine stalls now and then, and pytest-timeout bounds every test as a whole.
settings.register_profile("default", deadline=None)
# In continuous integration the same examples every time, so that a red run can be repeated.
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")
# Tests of the cache have one of their own.
os.environ.setdefault("AUFBAU_NO_CACHE", "1")
