"""The section of the terminal's report: pass rates of the episodes by mode, and failures by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

from agentkit.pytest_plugin.collect import EPISODE, FAILURE, MODE
from aufbau.validation.statistics import Share


def summary_lines(reports: Iterable[pytest.TestReport]) -> list[str]:
    """What the section says of these reports; nothing where no episode ran."""
    ran = [properties for report in reports if EPISODE in (properties := dict(report.user_properties))]
    lines = []
    for mode in dict.fromkeys(str(one[MODE]) for one in ran):
        of_mode = [one for one in ran if one[MODE] == mode]
        passed = Share(count=sum(FAILURE not in one for one in of_mode), total=len(of_mode))
        lines.append(f"{mode}: {passed} passed")
        failures = Counter(str(one[FAILURE]) for one in of_mode if FAILURE in one)
        for group, count in failures.most_common():
            names = list(dict.fromkeys(str(one[EPISODE]) for one in of_mode if one.get(FAILURE) == group))
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            lines.append(f"  {count} {group} ({', '.join(names[:5])}{more})")
    return lines
