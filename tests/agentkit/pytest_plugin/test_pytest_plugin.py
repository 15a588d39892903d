"""Episodes as pytest tests: what is collected, how they fail, what is reported, and that nothing loads when off."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import agentkit.pytest_plugin.plugin
import agentkit.synthesis

pytest_plugins = ["pytester"]

INI = """
[pytest]
agentkit_episodes = episodes
asyncio_default_fixture_loop_scope = function
{more}
"""
# The model answers with what stands behind ANSWER in the prompt, turn after turn.
CONFTEST = """
import asyncio
import anyio
import pytest
from agentkit.models import FunctionModel
from registry import Registry, tool

@tool
async def hang() -> int:
    "Never return."
    await anyio.sleep_forever()

@tool
def explode() -> int:
    "Raise."
    raise ZeroDivisionError("no fuse")

@tool
def cancel() -> int:
    "Cancel the task of the test."
    raise AssertionError

LOOPS = []

async def answer(messages, prefix):
    LOOPS.append(asyncio.get_running_loop())
    said = "\\n".join(message.content for message in messages).rpartition("ANSWER ")[2].partition(" END")[0]
    if said == "cancel":
        asyncio.current_task().cancel()
        await anyio.sleep(1)
    if said == "bug":
        raise RuntimeError("the model fell over")
    return said

@pytest.fixture(scope="session")
def agentkit_model():
    return FunctionModel(answer, name="echo")

@pytest.fixture(scope="session")
def agentkit_registry():
    return Registry([hang, explode])
"""
EPISODE = """
prompt = "ANSWER {answer} END"
output_type = "int"
expected = 1
{more}
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project with one folder of episodes, and a test of its own after them."""
    pytester.makeini(INI.format(more=""))
    pytester.makeconftest(CONFTEST)
    pytester.mkdir("episodes")
    pytester.makepyfile(test_zz_after="def test_after():\n    pass\n")
    return pytester


def add(project: pytest.Pytester, name: str, answer: str, more: str = "") -> None:
    (project.path / "episodes" / f"{name}.toml").write_text(EPISODE.format(answer=answer, more=more), encoding="utf-8")


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return project.runpytest_inprocess("-p", "no:randomly", *arguments)


def test_every_episode_is_a_test(project: pytest.Pytester) -> None:
    add(project, "good", "return 1;")
    add(project, "wrong", "return 2;")
    result = run(project, "-v", "--junit-xml", "junit.xml")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "episodes/good.toml::episode?direct? PASSED*",
            "episodes/wrong.toml::episode?direct? FAILED*",
            "*test_zz_after.py::test_after PASSED*",
            "wrong output: the output should be equal to 1, but is 2",
            "turn 1: return 2;",
            "*= agentkit episodes =*",
            "direct: 1 of 2 = 50.00% [[]9.45%, 90.55%[]] passed",
            "  1 wrong output (wrong)",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    cases = {case.get("classname"): case for case in ET.parse(project.path / "junit.xml").iter("testcase")}
    said = {one.get("name"): one.get("value") for one in cases["episodes.wrong.toml"].iter("property")}
    assert {"agentkit.episode": "wrong", "agentkit.mode": "direct", "agentkit.model": "echo"}.items() <= said.items()
    assert said["agentkit.failure"] == "wrong output" and said["agentkit.turns"] == "1"


# name, answer, more of its file, what the failure says
FAILURES = [
    ("raises", "let x = explode();", "", "error: ToolFailed: step 1*no fuse*"),
    ("hangs", "let x = hang();", "[limits]\nrun_timeout = 0.2", "limit: run_timeout: the run took longer than 0.2 s*"),
    ("cut", "return", "", "error: IncompleteStep: *was not executed*"),
    ("cancelled", "cancel", "", "*CancelledError*"),
    ("bug", "bug", "", "*RuntimeError: the model fell over*"),
    ("no spec", "return 1;", "[limits]\nturn_limt = 2", "*unknown key 'limits.turn_limt'*did you mean 'turn_limit'*"),
    ("no tool", "return 1;", 'tools = ["hung"]', "*no tool is called 'hung'; did you mean 'hang'*"),
]


@pytest.mark.parametrize(("name", "answer", "more", "said"), FAILURES, ids=[one[0] for one in FAILURES])
def test_a_failure_is_clean_and_the_next_test_runs(
    project: pytest.Pytester, name: str, answer: str, more: str, said: str
) -> None:
    add(project, "a", answer, more)
    add(project, "b", "return 1;")
    result = run(project, "-W", "error")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines([said])
    for noise in ("*cancel scope*", "*never awaited*", "*was destroyed*", "*ERROR at*", "*ExceptionGroup*"):
        result.stdout.no_fnmatch_line(noise)
        result.stderr.no_fnmatch_line(noise)


def test_a_timeout_of_pytest_is_a_clean_failure(project: pytest.Pytester) -> None:
    add(project, "a", "let x = hang();")
    add(project, "b", "return 1;")
    result = run(project, "--timeout", "1", "-W", "error")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*Timeout (>1.0s)*"])
    result.stdout.no_fnmatch_line("*cancel scope*")


def test_no_scope_crosses_an_asynchronous_fixture(project: pytest.Pytester) -> None:
    # A fixture of the project that holds a task group over its yield; an episode that fails must not disturb it.
    project.makeconftest(
        CONFTEST
        + """
import pytest_asyncio

CLOSED = []

@pytest_asyncio.fixture(autouse=True)
async def server():
    task = asyncio.ensure_future(anyio.sleep_forever())
    try:
        yield
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        CLOSED.append(task)

@pytest.fixture(autouse=True, scope="session")
def all_closed():
    yield
    assert len(CLOSED) == 5 and len({id(loop) for loop in LOOPS}) >= 3, (CLOSED, LOOPS)
"""
    )
    add(project, "a", "let x = hang();", "[limits]\nturn_timeout = 0.2")
    add(project, "b", "cancel")
    add(project, "c", "let x = explode();")
    add(project, "d", "return 1;")
    result = run(project, "-W", "error")
    result.assert_outcomes(passed=2, failed=3)


def test_modes_and_repetitions(project: pytest.Pytester) -> None:
    add(project, "good", "return 1;")
    result = run(
        project, "--agentkit-mode", "direct", "--agentkit-mode", "unconstrained", "--agentkit-repeat", "3", "-v"
    )
    result.assert_outcomes(passed=7)
    result.stdout.fnmatch_lines(
        ["*good.toml::episode*unconstrained* PASSED*", "direct: 3 of 3 = *", "unconstrained: 3 *"]
    )


def test_settings_of_the_configuration_file(project: pytest.Pytester) -> None:
    project.makeini(INI.format(more="agentkit_mode = syntactic mixed\nagentkit_repeat = 2"))
    add(project, "good", "return 1;")
    result = run(project)
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(["syntactic: 2 of 2*", "mixed: 2 of 2*"])


def test_tests_are_selected_as_usual(project: pytest.Pytester) -> None:
    add(project, "good", "return 1;")
    add(project, "bad", "return 2;")
    run(project, "-m", "agentkit", "-k", "good").assert_outcomes(passed=1, deselected=2)
    run(project, "episodes/bad.toml").assert_outcomes(failed=1)
    run(project, "episodes/bad.toml::episode[direct]").assert_outcomes(failed=1)
    run(project, "test_zz_after.py").assert_outcomes(passed=1)
    run(project, "test_zz_after.py", "--agentkit-episodes", "episodes/good.toml").assert_outcomes(passed=2)
    run(project, "episodes", "test_zz_after.py").assert_outcomes(passed=2, failed=1)


def test_options_of_the_agent_are_a_fixture(project: pytest.Pytester) -> None:
    project.makeconftest(
        CONFTEST
        + """
@pytest.fixture(scope="session")
def agentkit_options():
    return {"dialect": "sexpr"}
"""
    )
    add(project, "good", "(return 1)")
    run(project, "episodes").assert_outcomes(passed=1)


BAD_SETTINGS = [
    (["--agentkit-mode", "dirct"], "*agentkit_mode: unknown mode 'dirct'*"),
    (["--agentkit-repeat", "0"], "*agentkit_repeat: '0' is no number from 1 on*"),
    (["--agentkit-episodes", "nowhere"], "*nowhere is not there*"),
]


@pytest.mark.parametrize(("arguments", "said"), BAD_SETTINGS)
def test_bad_settings_are_told(project: pytest.Pytester, arguments: list[str], said: str) -> None:
    result = run(project, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([said])


def test_a_file_that_is_no_toml_is_an_error_of_collection(project: pytest.Pytester) -> None:
    (project.path / "episodes" / "bad.toml").write_text("prompt = ", encoding="utf-8")
    result = run(project)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*bad.toml: not TOML*"])


def test_the_document_is_a_project(pytester: pytest.Pytester) -> None:
    document = Path(agentkit.pytest_plugin.plugin.__file__).parents[2] / "docs" / "testing.md"
    blocks = dict(re.findall(r"```(ini|python|toml)\n(.*?)```", document.read_text(encoding="utf-8"), re.S))
    pytester.makeini(blocks["ini"] + "markers = slow\n")
    pytester.makeconftest(blocks["python"])
    episode = pytester.mkdir("episodes") / "seven.toml"
    episode.write_text(blocks["toml"], encoding="utf-8")
    run(pytester).assert_outcomes(passed=1)


def test_marks_of_the_file(project: pytest.Pytester) -> None:
    project.makeini(INI.format(more="addopts = --strict-markers\nmarkers = slow"))
    add(project, "a", "return 1;", 'markers = ["slow", "skip"]')
    add(project, "b", "return 1;", 'markers = ["slow"]')
    add(project, "c", "return 1;")
    run(project, "-m", "slow").assert_outcomes(passed=1, skipped=1, deselected=2)
    add(project, "d", "return 1;", 'markers = ["solw"]')
    result = run(project)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*'solw' not found in `markers` configuration option*"])


OFF = """
import sys
import pytest
pytest.main(["-q", "--co", sys.argv[1]])
print(sorted({"agentkit", "aufbau", "numpy", "pydantic", "torch", "anyio.abc"} & set(sys.modules)))
"""


def test_nothing_is_imported_where_no_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("def test_a():\n    pass\n", encoding="utf-8")
    root = str(Path(agentkit.pytest_plugin.plugin.__file__).parents[2])
    plugins = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": root}
    done = subprocess.run(
        [sys.executable, "-c", OFF, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=plugins,
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stdout
    assert "test_a.py::test_a" in done.stdout
