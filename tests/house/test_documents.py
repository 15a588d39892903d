"""What the documents name exists: tests, files and commands of ARCHITECTURE.md and README.md."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
README = ROOT / "README.md"
SCRIPTS = (
    "scripts/bench",
    "scripts/check",
    "scripts/correspond",
    "scripts/demo",
    "scripts/test",
    "scripts/test-compiled",
    "scripts/validate",
    ".ci/run",
)
SHELLS = ("bash", "sh", "shell", "console")
FOLDERS = (
    "aufbau",
    "registry",
    "dialects",
    "episodes",
    "agentkit",
    "tests",
    "benchmarks",
    "examples",
    "scripts",
)


def functions_of(path: Path) -> set[str]:
    """The names of all test functions of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    return {node.name for node in functions if node.name.startswith("test_")}


TESTS: dict[str, set[str]] = {
    path.relative_to(ROOT).as_posix(): functions_of(path) for path in sorted((ROOT / "tests").rglob("test_*.py"))
}
TEST_NAME = re.compile(r"(?:(tests/[\w/]+\.py)::)?\b(test_\w+)(?!\w|\.py)")


def named_tests(text: str) -> Iterator[tuple[str, str]]:
    """Every test a text names, with its file where that is given."""
    for match in TEST_NAME.finditer(text):
        yield match[1] or "", match[2]


def test_tests_named_by_the_architecture_exist() -> None:
    named = list(named_tests(ARCHITECTURE.read_text(encoding="utf-8")))
    assert named, "ARCHITECTURE.md names no test; every invariant in it names the one that keeps it"
    everywhere = set().union(*TESTS.values())
    missing = [f"{file}::{name}" for file, name in named if name not in TESTS.get(file, everywhere)]
    missing += [file for file, _ in named if file and file not in TESTS]
    assert not missing, f"ARCHITECTURE.md names tests that do not exist: {missing}"


def test_architecture_is_short() -> None:
    assert len(ARCHITECTURE.read_text(encoding="utf-8").splitlines()) <= 150


def named_paths(text: str) -> set[str]:
    """Backticked paths below our folders; a pattern or a placeholder is none."""
    quoted = re.findall(r"`([^`\s]+)`", text)
    starts = tuple(f"{folder}/" for folder in FOLDERS)
    return {q.partition("::")[0] for q in quoted if q.startswith(starts) and not re.search(r"[*<>{}…]", q)}


@pytest.mark.parametrize("document", [ARCHITECTURE, README], ids=lambda path: path.name)
def test_paths_named_by_documents_exist(document: Path) -> None:
    missing = [path for path in named_paths(document.read_text(encoding="utf-8")) if not (ROOT / path).exists()]
    assert not missing, f"{document.name} names paths that do not exist: {sorted(missing)}"


def commands(text: str) -> list[str]:
    """The command lines of a document's code blocks, without prompts and comments.

    In a block marked as shell every line is one; in a block without a mark, those after a prompt or below `./`.
    """
    found: list[str] = []
    language: str | None = None
    for line in (line.strip() for line in text.splitlines()):
        if line.startswith("```"):
            language = None if language is not None else line.removeprefix("```")
        elif language in SHELLS or (language == "" and line.startswith(("$ ", "./"))):
            found.append(line.removeprefix("$ ").partition(" #")[0].strip())
    return [command for command in found if command and not command.startswith("#")]


def subcommands(source: str) -> set[str]:
    """The first arguments of `add_parser` calls in a command line's source."""
    return set(re.findall(r"add_parser\(\s*[\"'](\w+)[\"']", source))


def known(command: str) -> bool:
    """Whether a README command starts something that exists."""
    words = re.sub(r"^\w+=\S+ ", "", command).split()
    program = words[0].removeprefix("./").removeprefix(".venv/bin/")
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    if program in scripts:
        module = ROOT / (scripts[program].partition(":")[0].replace(".", "/") + ".py")
        return len(words) > 1 and words[1] in subcommands(module.read_text(encoding="utf-8"))
    return os.access(ROOT / program, os.X_OK) or program in ("cd", "git", "pip", "python", "pytest", "echo", "printf")


def test_commands_of_the_readme_exist() -> None:
    found = commands(README.read_text(encoding="utf-8"))
    assert found, "README.md shows no command; the first thing a reader needs is how to run it"
    unknown = [command for command in found if not known(command)]
    assert not unknown, f"README.md shows commands that do not exist: {unknown}"


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_run_from_anywhere(script: str, tmp_path: Path) -> None:
    path = ROOT / script
    assert os.access(path, os.X_OK), f"{script} is not executable"
    checked = subprocess.run(["bash", "-n", str(path)], cwd=tmp_path, capture_output=True, timeout=10, check=False)
    assert checked.returncode == 0, checked.stderr.decode()


# text, the tests it names
NAMING_CASES = [
    ("kept by `tests/a/test_x.py::test_one`", [("tests/a/test_x.py", "test_one")]),
    ("kept by `test_one` and `test_two`", [("", "test_one"), ("", "test_two")]),
    ("the file `tests/a/test_x.py` holds them", []),
    ("a test of ours", []),
]


@pytest.mark.parametrize(("text", "expected"), NAMING_CASES)
def test_the_reader_of_test_names(text: str, expected: list[tuple[str, str]]) -> None:
    assert list(named_tests(text)) == expected


def test_the_reader_of_commands() -> None:
    shell = "```bash\n# first\n$ ./scripts/demo\n\naufbau check x.auf  # the report\n```\n"
    other = "```\n$ aufbau trace x\nits output\n./scripts/test\n```\n```python\n./no\n```\n./neither\n"
    assert commands(shell) == ["./scripts/demo", "aufbau check x.auf"]
    assert commands(other) == ["aufbau trace x", "./scripts/test"]


# command, whether it starts something that exists
KNOWN_CASES = [
    ("./scripts/demo", True),
    ("aufbau check x.auf", True),
    ("agentkit run x.toml --model default", True),
    ("scripts/nonsense", False),
    ("aufbau frobnicate", False),
    ("aufbau", False),
    ("frobnicate now", False),
]


@pytest.mark.parametrize(("command", "expected"), KNOWN_CASES)
def test_the_judge_of_commands(command: str, expected: bool) -> None:
    assert known(command) is expected
