"""Build hook: AUFBAU_COMPILE=1 compiles the engine's hot modules (mypyc) into the wheel, from the same source."""

from __future__ import annotations

import os
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# What a byte and a mask go through. The rest of the package is not worth a compiler's time.
MODULES = (
    "aufbau/typesystem/terms.py",
    "aufbau/typesystem/unify.py",
    "aufbau/typesystem/context.py",
    "aufbau/earley/chart.py",
    "aufbau/earley/arena.py",
    "aufbau/earley/demand.py",
    "aufbau/earley/failure.py",
    "aufbau/earley/machine.py",
    "aufbau/earley/parser.py",
    "aufbau/grammar/production.py",
    "aufbau/lexer/automaton.py",
    "aufbau/lexer/reach.py",
    "aufbau/lexer/state.py",
    "aufbau/named.py",
    "aufbau/places.py",
    "aufbau/beginnings.py",
    "aufbau/lookahead.py",
    "aufbau/plans.py",
    "aufbau/masks.py",
    "aufbau/vocabulary/texts.py",
    "aufbau/vocabulary/series.py",
)


def wanted() -> bool:
    """Whether the caller asked for a compiled build."""
    return os.environ.get("AUFBAU_COMPILE", "") not in ("", "0")


class CompileHook(BuildHookInterface[Any]):
    """Adds the compiled modules beside their sources, which stay in the wheel for tracebacks and type checkers."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What a compiled build needs beside a C compiler."""
        return ["mypy[mypyc]>=1.15", "setuptools>=75", "numpy>=2.0"] if wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the files of the wheel are collected."""
        if self.target_name != "wheel" or version == "editable" or not wanted():
            return
        self._folder = tempfile.TemporaryDirectory(prefix="aufbau-mypyc-")
        for path in compiled(Path(self.root), Path(self._folder.name)):
            build_data["force_include"][str(path)] = str(path.relative_to(self._folder.name))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what the compiler left."""
        folder: tempfile.TemporaryDirectory[str] | None = getattr(self, "_folder", None)
        if folder is not None:
            folder.cleanup()


def compiled(root: Path, target: Path) -> list[Path]:
    """Compile the modules under `root`; the extension modules lie in `target` as in the package."""
    from mypyc.build import mypycify
    from setuptools import Distribution

    before = Path.cwd()
    os.chdir(root)  # module names follow from relative paths
    with tempfile.TemporaryDirectory(prefix="aufbau-c-") as scratch:
        try:
            extensions = mypycify(
                ["--strict", "--namespace-packages", "--explicit-package-bases", *MODULES],
                opt_level="3",
                debug_level="0",
                target_dir=scratch,
            )
            command = Distribution({"name": "aufbau", "ext_modules": extensions}).get_command_obj("build_ext")
            command.build_lib, command.build_temp = str(target), scratch
            command.ensure_finalized()
            command.run()
        finally:
            os.chdir(before)
    return sorted(target.rglob(f"*{sysconfig.get_config_var('EXT_SUFFIX')}"))
