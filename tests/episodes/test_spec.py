"""Episodes and suites from TOML: what they say, and the faults that are named with file, line and remedy."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator
from pathlib import Path

import pytest

from episodes import Binding, Bindings, Environment, Episode, EpisodeLimits, SpecError, Suite
from registry import Registry, builtin
from registry.types import INT, OptionalType


@dataclasses.dataclass(frozen=True)
class Point:
    """A record."""

    x: int
    day: datetime.date


def show(point: Point) -> str:
    """Show."""
    return str(point)


SHAPES = Registry([show])


def make_shapes() -> Registry:
    """A registry, made anew."""
    return Registry([show])


@pytest.fixture
def tools() -> Iterator[Registry]:
    """The built-in tools."""
    with builtin() as made:
        yield made


FULL = """
name = "full"
prompt = "Do it."
tools = ["count", "search"]
prefix = "let d = "
output_type = "optional[int]"
expected = 3

[bindings.n]
type = "int"
value = 2

[bindings.names]
type = "list[string]"
value = ["a", "é"]

[limits]
turn_limit = 4
tool_timeout = 1.5

[grader]
kind = "approx"
tolerance = 1
"""


def test_a_full_episode(tools: Registry) -> None:
    episode = Episode.parse(FULL, tools)
    assert (episode.name, episode.prompt, episode.prefix) == ("full", "Do it.", "let d = ")
    assert episode.output_type == OptionalType(INT)
    assert episode.limits == EpisodeLimits(turn_limit=4, tool_timeout=1.5)
    assert {name: binding.value for name, binding in episode.bindings.items()} == {"n": 2, "names": ["a", "é"]}
    assert list(episode.registry_for(tools)) == ["count", "search"]
    passed = episode.grade(4, Environment())
    failed = episode.grade(5, Environment())
    assert passed is not None and passed.passed and failed is not None and not failed.passed


def test_the_least_episode_uses_the_builtin_tools(tmp_path: Path) -> None:
    path = tmp_path / "least.toml"
    path.write_text('prompt = "Go."', encoding="utf-8")
    episode = Episode.from_toml(path)
    assert episode.name == "least" and episode.registry is not None
    assert list(episode.registry) == ["search", "summarize", "count", "format"]
    assert episode.grade(3) is None
    assert Episode.load(path).name == "least"


@pytest.mark.parametrize("attribute", ["SHAPES", "make_shapes"])
def test_a_named_registry_and_a_record(attribute: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "shapes", __import__("types").ModuleType("shapes"))
    monkeypatch.setattr("shapes.found", globals()[attribute], raising=False)
    text = """
    prompt = "Go."
    registry = "shapes:found"
    output_type = "Point"
    expected = {x = 1, day = 2026-01-02}
    bindings.p = {type = "Point", value = {x = 1, day = 2026-01-02}}
    """
    episode = Episode.parse(text)
    value = Point(x=1, day=datetime.date(2026, 1, 2))
    assert episode.bindings["p"].value == value
    grade = episode.grade(value)
    assert grade is not None and grade.passed


FAULTS: list[tuple[str, str]] = [
    ("prompt = = 1", r"e\.toml: not TOML: .*line 1"),
    ("", r"e\.toml:1: the key 'prompt' is missing"),
    ('prompt = " "', r"e\.toml: episode 'e' is empty"),
    ('prompt = "a"\n\ntols = []', r"e\.toml:3: unknown key 'tols'; did you mean 'tools'\?"),
    ('prompt = "a"\n[limits]\nturns = 3', r"e\.toml:3: unknown key 'limits\.turns'; "),
    ('prompt = "a"\n[limits]\nturn_limit = "3"', r"e\.toml:3: limits\.turn_limit: expected a valid integer, got '3'"),
    ('prompt = "a"\nlimits.turn_limit = 0', r"e\.toml:2: limits\.turn_limit: expected greater than 0, got 0"),
    ("prompt = 3", r"e\.toml:1: prompt: expected a valid string, got 3"),
    ('prompt = "a"\ntools = ["serch"]', r"e\.toml:2: tools: no tool is called 'serch'; did you mean 'search'\?"),
    ('prompt = "a"\noutput_type = "in"', r"e\.toml:2: output_type: no type is spelled 'in'; did you mean 'int'"),
    ('prompt = "a"\noutput_type = "int"\nexpected = "3"', r"e\.toml:3: expected: not a value of the output type"),
    ('prompt = "a"\n[bindings.n]\ntype = "it"\nvalue = 1', r"e\.toml:3: bindings\.n\.type: no type is spelled 'it'"),
    ('prompt = "a"\n[bindings.n]\ntype = "int"\nvalue = "1"', r"e\.toml:2: bindings\.n: expected int, got '1'"),
    ('prompt = "a"\n[bindings.n]\ntype = "docs"\nvalue = 1', r"e\.toml:2: bindings\.n: .*handle \(docs\)"),
    ('prompt = "a"\nexpected = 1\n[grader]\nkind = "equal"', r"e\.toml:4: grader\.kind: expected 'equals'"),
    ('prompt = "a"\n[grader]\nkind = "equals"', r"e\.toml:2: grader: .*give the key expected"),
    ('prompt = "a"\nexpected = 1\n[grader]\nkind = "approx"', r"e\.toml:3: grader\.tolerance: "),
    ('prompt = "a"\nexpected = "1"\n[grader]\nkind = "approx"\ntolerance = 1', r"e\.toml:2: expected: .*a number"),
    ('prompt = "a"\nexpected = 1\n[grader]\nkind = "one_of"', r"e\.toml:2: expected: .*list"),
    ('prompt = "a"\nregistry = "nowhere"', r"e\.toml:2: registry: expected module:attribute"),
    ('prompt = "a"\nregistry = "no_such_module:x"', r"e\.toml:2: registry: module 'no_such_module' can't be imported"),
    ('prompt = "a"\nregistry = "json:x"', r"e\.toml:2: registry: module 'json' has no attribute 'x'"),
    ('prompt = "a"\nregistry = "json:decoder"', r"e\.toml:2: registry: json:decoder is a module"),
]


@pytest.mark.parametrize(("text", "message"), FAULTS, ids=[message for _, message in FAULTS])
def test_faults_name_file_line_and_remedy(text: str, message: str, tools: Registry) -> None:
    with pytest.raises(SpecError, match=rf"^{message}"):
        Episode.parse(text, tools, source="e.toml")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="can't be read"):
        Episode.from_toml(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b'prompt = "\xff"')
    with pytest.raises(SpecError, match="not UTF-8"):
        Episode.from_toml(tmp_path / "bytes.toml")


def test_episodes_in_python_are_checked_too(tools: Registry) -> None:
    with pytest.raises(SpecError, match="is empty"):
        Episode(name="e", prompt="\n")
    with pytest.raises(SpecError, match="needs a name"):
        Episode(name="", prompt="a")
    with pytest.raises(SpecError, match="type_from_hint"):
        Episode(name="e", prompt="a", output_type=int)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="did you mean 'count'"):
        Episode(name="e", prompt="a", tools=("cuont",), registry=tools)
    with pytest.raises(SpecError, match="turn_limit is 0"):
        EpisodeLimits(turn_limit=0)
    episode = Episode(name="e", prompt="a", expected=3, bindings=Bindings([Binding(name="n", type=INT, value=1)]))
    grade = episode.grade(3)
    assert grade is not None and grade.passed and episode.registry_for(tools) is tools


def test_suites(tmp_path: Path, tools: Registry) -> None:
    with pytest.raises(SpecError, match="is no folder"):
        Suite.load(tmp_path / "none")
    with pytest.raises(SpecError, match=r"holds no \.toml file"):
        Suite.load(tmp_path)
    for name in ("b", "a"):
        (tmp_path / f"{name}.toml").write_text('prompt = "Go."', encoding="utf-8")
    suite = Suite.load(tmp_path, tools)
    assert [episode.name for episode in suite] == ["a", "b"] and len(suite) == 2
    (tmp_path / "c.toml").write_text('prompt = "Go."\nname = "a"', encoding="utf-8")
    with pytest.raises(SpecError, match="two episodes are called 'a'"):
        Suite.load(tmp_path, tools)
