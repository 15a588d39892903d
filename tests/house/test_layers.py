"""Imports point left only: aufbau, registry <- dialects <- episodes <- agentkit, without a cycle."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# What each package may import of ours, besides itself.
ALLOWED: dict[str, set[str]] = {
    "aufbau": set(),
    "registry": set(),
    "dialects": {"aufbau", "registry"},
    "episodes": {"aufbau", "registry", "dialects"},
    "agentkit": {"aufbau", "registry", "dialects", "episodes"},
}
# Libraries that take seconds to load or come with an extra, and the only folder that may import them.
CONFINED = {
    "torch": "agentkit/models",
    "transformers": "agentkit/models",
    "gguf": "agentkit/models",
    "tokenizers": "agentkit/models",
    "outlines": "agentkit/models",
    "llama_cpp": "agentkit/models",
    "mlx": "agentkit/models",
    "vllm": "agentkit/models",
}


def module_name(path: Path) -> str:
    """The dotted name of a module file."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES: dict[str, Path] = {
    module_name(path): path for package in ALLOWED for path in sorted((ROOT / package).rglob("*.py"))
}


def resolve(dotted: str) -> str:
    """The module of ours that an imported name lies in, or the name itself for others'."""
    name = dotted
    while name:
        if name in MODULES:
            return name
        name = name.rpartition(".")[0]
    return dotted


def imports(source: str, name: str, *, is_package: bool, load_time: bool = False) -> Iterator[str]:
    """Every module that a module imports, wherever the import stands; only those run on loading if asked."""
    pending: list[ast.AST] = [ast.parse(source)]
    while pending:
        node = pending.pop()
        if load_time and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if load_time and isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            pending.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            yield from (resolve(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = name.split(".") if is_package else name.split(".")[:-1]
            base = parents[: len(parents) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            yield from (resolve(f"{origin}.{alias.name}") for alias in node.names)
        pending.extend(ast.iter_child_nodes(node))


def imported_by(name: str, *, load_time: bool = False) -> set[str]:
    """What a module of ours imports."""
    path = MODULES[name]
    source = path.read_text(encoding="utf-8")
    return set(imports(source, name, is_package=path.name == "__init__.py", load_time=load_time)) - {name}


@pytest.mark.parametrize("package", ALLOWED)
def test_every_package_is_there(package: str) -> None:
    assert package in MODULES, f"{package}/__init__.py is missing"


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_left(name: str) -> None:
    package = name.partition(".")[0]
    ours = {other.partition(".")[0] for other in imported_by(name)} & ALLOWED.keys()
    wrong = ours - ALLOWED[package] - {package}
    assert not wrong, f"{name} imports {sorted(wrong)}; {package} may import {sorted(ALLOWED[package])}"


@pytest.mark.parametrize("name", MODULES)
def test_heavy_libraries_are_confined(name: str) -> None:
    folder = MODULES[name].relative_to(ROOT).as_posix()
    for other in imported_by(name):
        allowed = CONFINED.get(other.partition(".")[0])
        assert allowed is None or folder.startswith(f"{allowed}/"), f"{name} imports {other} outside {allowed}"


def test_no_import_cycles() -> None:
    # Function-level imports count, since a cycle hidden in a function is one still. A package's own
    # __init__ is loaded before its modules anyway, so only what modules say themselves is an edge.
    graph = {name: imported_by(name) & MODULES.keys() for name in MODULES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail("import cycle: " + " <- ".join(error.args[1]))


@pytest.mark.parametrize("package", ["aufbau", "registry", "dialects", "episodes", "agentkit"])
def test_importing_loads_nothing_heavy(package: str) -> None:
    heavy = sorted(CONFINED)
    program = f"import sys, {package}; print(sorted(set({heavy}) & set(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize("package", ["aufbau", "registry", "dialects", "episodes", "agentkit"])
def test_importing_needs_no_system_of_a_kind(package: str) -> None:
    """What only some systems have (locks on files, limits of processes) is loaded where it is used."""
    program = f"import sys; sys.modules.update(dict.fromkeys(['fcntl', 'grp', 'pwd', 'resource'])); import {package}"
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 0, result.stderr


# source, the imports it has in all, those that run on loading (seen from the module `dialects.base`)
IMPORT_CASES = [
    ("import os.path", {"os.path"}, {"os.path"}),
    ("from .steps import Let", {"dialects.steps.Let"}, {"dialects.steps.Let"}),
    ("from . import steps", {"dialects.steps"}, {"dialects.steps"}),
    ("def f():\n    import torch", {"torch"}, set()),
    ("if t.TYPE_CHECKING:\n    import torch\nelse:\n    import os", {"torch", "os"}, {"os"}),
    ("try:\n    import torch\nexcept ImportError:\n    pass", {"torch"}, {"torch"}),
]


@pytest.mark.parametrize(("source", "everywhere", "on_loading"), IMPORT_CASES)
def test_the_reader_of_imports(
    source: str, everywhere: set[str], on_loading: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "MODULES", {})
    assert set(imports(source, "dialects.base", is_package=False)) == everywhere
    assert set(imports(source, "dialects.base", is_package=False, load_time=True)) == on_loading
