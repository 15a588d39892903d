"""The command line: what it prints, its exit status, and one line for wrong input."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from agentkit import Mode, cli
from agentkit.models import MissingExtraError, Model, ModelNotFoundError, ScriptedModel
from dialects import DIALECTS

SOLVED = ('let d = search("aurora");', "let n = count(d);", "return n;")
EPISODE = """
name = "{name}"
prompt = "How many documents mention the aurora?"
output_type = "int"
expected = {expected}
"""


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The replies of the model that the command line finds, whatever is asked for."""
    replies: list[str] = []

    def resolve(spec: str) -> Model:
        return ScriptedModel(replies)

    monkeypatch.setattr(cli, "resident_model", resolve)
    return replies


@pytest.fixture
def count() -> int:
    from registry import Docs, builtin

    with builtin() as registry:
        found = registry["search"].function(query="aurora")
        assert isinstance(found, Docs)
        return len(found)


def write(folder: Path, names: Iterable[str], expected: int) -> Path:
    for name in names:
        (folder / f"{name}.toml").write_text(EPISODE.format(name=name, expected=expected), encoding="utf-8")
    return folder


def test_one_episode_is_printed_turn_by_turn(
    tmp_path: Path, script: list[str], count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    script += SOLVED
    assert cli.main(["run", str(write(tmp_path, ["a"], count) / "a.toml")]) == 0
    shown = capsys.readouterr().out
    wanted = ["How many documents", "turn 3", *SOLVED, "d : docs, n : int", "passed", "3 turns, 2 tool calls"]
    assert [part for part in wanted if part not in shown] == []


def test_a_wrong_answer_is_status_1(
    tmp_path: Path, script: list[str], count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    script += SOLVED
    assert cli.main(["run", str(write(tmp_path, ["a"], count + 1) / "a.toml")]) == 1
    assert "not passed" in capsys.readouterr().out


def test_a_run_that_stops_is_shown_to_its_end(
    tmp_path: Path, script: list[str], count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    script += [SOLVED[0], "let n = count(5);"]
    assert cli.main(["run", str(write(tmp_path, ["a"], count) / "a.toml")]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "turn 2" in shown and "let n = count(" in shown and "was not executed" in shown


def test_a_folder_gives_tables(
    tmp_path: Path, script: list[str], count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    script += [*SOLVED, *SOLVED, "Hm.", *SOLVED, *SOLVED]
    arguments = ["run", str(write(tmp_path, ["a", "b"], count)), "--mode", "direct", "--mode", "unconstrained"]
    assert cli.main(arguments) == 0
    shown = capsys.readouterr().out
    for part in ("direct", "unconstrained", "100%", "86%", "well", "oracle"):
        assert part in shown


def test_json_and_nothing_else(
    tmp_path: Path, script: list[str], count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    script += SOLVED
    one = str(write(tmp_path, ["a"], count) / "a.toml")
    assert cli.main(["run", one, "--json"]) == 0
    single = json.loads(capsys.readouterr().out)
    assert single["output"] == count and single["passed"] and single["error"] is None

    arguments = [one, "--json", "--mode", "direct", "--mode", "unconstrained", "--max-turns", "3"]
    script += ["No.", "No!", "No?"]
    assert cli.main(["run", *arguments]) == 1
    several = json.loads(capsys.readouterr().out)
    assert [row["passed"] for row in several["summaries"]] == [1, 0]
    assert "turn_limit" in several["runs"]["unconstrained"][0]["error"]


def test_the_demo_is_an_episode_that_can_be_solved(script: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    script += ['let d = search("solar storms 1859");', "let n = count(d);", "return n;"]
    assert cli.main(["demo"]) == 0
    assert "passed" in capsys.readouterr().out


@pytest.mark.parametrize("mode", list(Mode))
def test_every_mode_and_policy_can_be_asked_for(
    tmp_path: Path, script: list[str], capsys: pytest.CaptureFixture[str], mode: Mode
) -> None:
    script += [" it is said again and again", "return 1;"] if mode.reasons else ["return 1;"]
    one = str(write(tmp_path, ["a"], 1) / "a.toml")
    arguments = ["run", one, "--json", "--mode", mode.value, "--reasoning-tokens", "5", "--stop-policy", "paper"]
    assert cli.main(arguments) == 0
    run = json.loads(capsys.readouterr().out)
    assert run["telemetry"][0]["reasoning_tokens"] == (5 if mode.reasons else 0)
    assert run["telemetry"][0]["steering"] == "off"
    assert run["turns"][0]["thought"] == ("it is said again and" if mode.reasons else "")


IN_DIALECTS = {
    "c": ("let n = format(7);", "return n;"),
    "sexpr": ("(let n (format 7))", "(return n)"),
    "xml": ('<let name="n"><format><int>7</int></format></let>', '<return><var name="n"/></return>'),
}


def test_every_dialect_has_a_script() -> None:
    assert list(IN_DIALECTS) == list(DIALECTS)


@pytest.mark.parametrize("dialect", IN_DIALECTS)
def test_steps_are_written_in_the_dialect_asked_for(
    tmp_path: Path, script: list[str], capsys: pytest.CaptureFixture[str], dialect: str
) -> None:
    script += IN_DIALECTS[dialect]
    (tmp_path / "a.toml").write_text('prompt = "Format 7."\nexpected = "7"', encoding="utf-8")
    assert cli.main(["run", str(tmp_path / "a.toml"), "--json", "--dialect", dialect]) == 0
    run = json.loads(capsys.readouterr().out)
    assert tuple(turn["text"] for turn in run["turns"]) == IN_DIALECTS[dialect]


def test_the_dialect_of_an_episode_comes_before_the_one_asked_for(
    tmp_path: Path, script: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    script += IN_DIALECTS["xml"]
    (tmp_path / "a.toml").write_text('prompt = "Format 7."\nexpected = "7"\ndialect = "xml"', encoding="utf-8")
    assert cli.main(["run", str(tmp_path / "a.toml"), "--json", "--dialect", "sexpr"]) == 0
    assert json.loads(capsys.readouterr().out)["passed"]


BAD_FILES = [
    ("prompt = 'x'\noutput = 'int'", "output"),
    ("prompt = 3", "prompt"),
    ("prompt = ''", "empty"),
    ("prompt = ", "TOML"),
    ("prompt = 'x'\nprefix = 'lett'", "no step can begin"),
]


@pytest.mark.parametrize(("text", "said"), BAD_FILES)
def test_a_bad_file_is_told_in_one_line(
    tmp_path: Path, script: list[str], capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(text, encoding="utf-8")
    assert cli.main(["run", str(file)]) == 2
    told = capsys.readouterr().err
    assert told.startswith("agentkit: ") and told.count("\n") == 1 and said in told


def test_a_missing_file_or_an_empty_folder(
    tmp_path: Path, script: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (tmp_path / "none.toml", tmp_path):
        assert cli.main(["run", str(path)]) == 2
        assert str(path) in capsys.readouterr().err


@pytest.mark.parametrize("error", [MissingExtraError("torch"), ModelNotFoundError("nothing is called x")])
def test_a_model_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    def resolve(spec: str) -> Model:
        raise error

    monkeypatch.setattr(cli, "resident_model", resolve)
    assert cli.main(["run", str(write(tmp_path, ["a"], 1)), "--model", "x"]) == 2
    told = capsys.readouterr().err
    assert str(error) in told and "Traceback" not in told


BAD_OPTIONS = [
    (["walk"], "invalid choice: 'walk'"),
    (["run"], "EPISODE.toml|FOLDER"),
    (["demo", "--mode", "mixd"], "invalid choice: 'mixd'"),
    (["demo", "--max-turns", "0"], "'0' is no whole number from 1 on"),
    (["demo", "--reasoning-tokens", "few"], "'few' is no whole number from 1 on"),
    (["eval", "a.toml", "--repeat", "twice"], "'twice' is no whole number from 1 on"),
    (["serve-mcp", "builtin", "--http", "99999"], "'99999' is no port"),
    (["demo", "--stop-policy", "mine"], "invalid choice: 'mine'"),
    (["run", "a.toml", "--dialect", "json"], "invalid choice: 'json'"),
]


@pytest.mark.parametrize(("arguments", "said"), BAD_OPTIONS)
def test_bad_options_are_status_2(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


def test_a_negative_temperature_is_wrong_input(script: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["demo", "--temperature", "-1"]) == 2
    assert "temperature" in capsys.readouterr().err


def test_control_characters_of_a_model_do_not_reach_the_terminal(
    tmp_path: Path, script: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    script += ["\x1b[2J hello", "return 0;"]
    cli.main(["run", str(write(tmp_path, ["a"], 0) / "a.toml"), "--mode", "unconstrained"])
    assert "\x1b[2J" not in capsys.readouterr().out


def test_the_module_runs() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "agentkit", "--help"], capture_output=True, text=True, check=True, timeout=60
    )
    assert "run" in done.stdout and "demo" in done.stdout
