"""Habits every module keeps: a first line naming its job, sorted exports that exist, a readable size."""

from __future__ import annotations

import ast
import importlib
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("aufbau", "registry", "dialects", "episodes", "agentkit")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
OTHERS = sorted(path for folder in ("tests", "benchmarks") for path in (ROOT / folder).rglob("*.py"))
MAX_LINES = 500  # the guide is 300; beyond this a module certainly has a second job


def identify(path: Path) -> str:
    """How a file is named in test reports."""
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", MODULES + OTHERS, ids=identify)
def test_first_line_names_the_job(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(source), clean=False)
    assert docstring is not None, f"{identify(path)} has no docstring"
    assert source.startswith('"""'), f"{identify(path)} does not begin with its docstring"
    heading = docstring.splitlines()[0]
    assert len(heading.split()) >= 3, f"{identify(path)}: {heading!r} does not say what the module is for"


@pytest.mark.parametrize("path", MODULES + OTHERS, ids=identify)
def test_size_is_readable(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MAX_LINES, f"{identify(path)} has {lines} lines; find its second job and move that out"


def exports(path: Path) -> list[str] | None:
    """The names in a module's `__all__`, or None if it has none."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return None


def order(name: str) -> tuple[int, str]:
    """The order in which ruff (RUF022) sorts exports: constants, then classes, then the rest."""
    rank = 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2
    return rank, name


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_says_what_it_exports(package: str) -> None:
    assert exports(ROOT / package / "__init__.py"), f"{package}/__init__.py has no __all__"


@pytest.mark.parametrize("path", [p for p in MODULES if exports(p) is not None], ids=identify)
def test_exports_are_sorted_and_exist(path: Path) -> None:
    names = exports(path)
    assert names is not None
    assert names == sorted(set(names), key=order), f"{identify(path)}: __all__ is not sorted or names something twice"
    parts = path.relative_to(ROOT).with_suffix("").parts
    module = importlib.import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    missing = [name for name in names if not hasattr(module, name)]
    assert not missing, f"{identify(path)}: __all__ names {missing}, which do not exist"


@pytest.mark.parametrize("path", [p for p in MODULES if p.name == "__init__.py"], ids=identify)
def test_package_files_hold_no_logic(path: Path) -> None:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        text = ast.unparse(node)
        plain = isinstance(node, ast.Import | ast.ImportFrom | ast.Expr) or text.startswith("__all__")
        assert plain, f"{identify(path)}: {text.splitlines()[0]!r} is logic; move it to a module"


def test_wheel_carries_every_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert tuple(project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) == PACKAGES
