"""`agentkit synthesize`: what it prints, its exit status, and one line for wrong input."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from agentkit import cli
from agentkit.models import Model, ScriptedModel


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The replies of the model that the command finds, whatever is asked for."""
    replies: list[str] = []

    def resolve(spec: str) -> Model:
        return ScriptedModel(replies)

    monkeypatch.setattr("agentkit.synthesis.single.resolve_model", resolve)
    return replies


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = cli.main(["synthesize", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_a_good_program(script: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    script.append(" return a > b ? a : b;\n}")
    status, out, err = shown(
        capsys, "c", "The larger.", "--goal", "int larger(int a, int b)", "--test", "larger(2, 3) => 3"
    )
    assert (status, err) == (0, "")
    wanted = ["int larger(int a, int b) {", "satisfied", "cc accepts", "the tests hold", "scripted, direct:"]
    assert [part for part in wanted if part not in out] == []


def test_bad_programs(script: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    script[:] = ["let f x = x + true"]
    status, out, _ = shown(capsys, "ml", "Add.", "--goal", "int -> int", "--mode", "unconstrained")
    assert status == 1 and "lost" in out and "ocamlc refuses" in out
    script[:] = ["λx:A."]
    status, out, _ = shown(capsys, "stlc", "Identity.", "--goal", "A -> A", "--stop-policy", "paper")
    assert status == 1 and "live" in out and "the checker refuses" in out
    script[:] = ["let f x = x + 1"]
    status, out, _ = shown(capsys, "ml", "Twice.", "--test", "f 1 => 3")
    assert status == 1 and "ocamlc accepts" in out and "the tests fail: f 1 = 3" in out


def test_json(script: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    script += ["Think.\n", "f(1)"]
    options = ["--mode", "mixed", "--context", "f: Int -> Bool", "--goal", "Bool", "--json"]
    status, out, _ = shown(capsys, "fun", "Call f.", *options)
    data = json.loads(out)
    assert (status, data["program"], data["reasoning"].strip()) == (0, "f(1)", "Think.")
    assert data["compiled"]["passed"]


def test_a_missing_compiler_is_said(
    script: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    script[:] = ["let f x = x + 1"]
    status, out, _ = shown(capsys, "ml", "Add one.")
    assert status == 0 and "ocamlc is not on PATH" in out and "install" in out
    status, out, _ = shown(capsys, "ml", "Add one.", "--no-compile")
    assert status == 0 and "ocamlc" not in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nosuch", "x"], "there is no grammar"),
        (["fun", "x", "--goal", "Int ->"], "goal"),
        (["c", "x", "--goal", "int f"], "no prototype"),
        (["fun", "x", "--context", "f"], "--context 'f'"),
        (["ml", "x", "--test", "f 1"], "--test 'f 1'"),
        (["fun", "x", "--max-tokens", "0"], "--max-tokens 0"),
        (["fun", "x", "--prefix", ")"], "begins with the prefix"),
    ],
)
def test_wrong_input_is_status_2_in_one_line(
    arguments: list[str], message: str, script: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = shown(capsys, *arguments)
    assert (status, out) == (2, "")
    assert message in err and err.count("\n") == 1 and err.startswith("agentkit: ")


def test_the_example_runs(script: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    script.append("  return a > b ? a : b;\n}")
    runpy.run_path(str(Path(__file__).parents[3] / "examples" / "synthesis.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert [line.count("passed=True") for line in lines[-4:]] == [2, 1, 0, 1]
    assert "sum [1; 2] = 3 failed" in lines[-2]
