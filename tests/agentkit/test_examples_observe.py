"""The examples of observation and connections run."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_run_is_observed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("opentelemetry", reason="spans need the extra otel")
    page = tmp_path / "run.html"
    monkeypatch.setattr(sys, "argv", ["observe.py", str(page)])
    runpy.run_path(str(EXAMPLES / "observe.py"), run_name="__main__")
    assert capsys.readouterr().out.startswith("3 after 3 turns")
    assert "Γ after the turn: 2, n new" in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_tools_go_over_mcp_both_ways(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("mcp", reason="connections need the extra mcp")
    runpy.run_path(str(EXAMPLES / "mcp_both_ways.py"), run_name="__main__")
    shown = capsys.readouterr().out.splitlines()
    assert "search(query: string) -> docs" in shown
    assert shown[-1] == "3"
