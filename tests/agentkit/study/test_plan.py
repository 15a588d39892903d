"""The order of attempts: complete, the same each time, and balanced in every beginning."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from agentkit.study import ConfigError, StudyConfig, StudyError, study_tasks
from agentkit.study.plan import groups, spread

EXAMPLE = Path(__file__).parents[3] / "examples" / "study.toml"
TASKS = study_tasks(StudyConfig.load(EXAMPLE))


@pytest.mark.parametrize("seed", range(5))
def test_every_beginning_is_balanced(seed: int) -> None:
    order = spread(TASKS, seed)
    assert sorted(task.id for task in order) == sorted(task.id for task in TASKS)
    sizes = Counter(task.suite for task in TASKS)
    seen: Counter[str] = Counter()
    for place, task in enumerate(order, 1):
        seen[task.suite] += 1
        for suite, size in sizes.items():
            assert abs(seen[suite] - size * place / len(TASKS)) < 2


def test_the_order_depends_on_the_seed_alone() -> None:
    assert spread(TASKS, 1) == spread(TASKS, 1) != spread(TASKS, 2)


def test_shards_share_the_work_out() -> None:
    whole = [(group.task.id, group.seed) for group in groups(TASKS, (0, 1))]
    parts = [[(one.task.id, one.seed) for one in groups(TASKS, (0, 1), shard=(part, 3))] for part in (1, 2, 3)]
    assert sorted(whole) == sorted(name for part in parts for name in part)
    assert len(whole) == 2 * len(TASKS)
    with pytest.raises(ValueError, match="shard 4/3"):
        list(groups(TASKS, (0,), shard=(4, 3)))


def test_the_example_is_a_study_of_all_tasks() -> None:
    config = StudyConfig.load(EXAMPLE)
    assert len(config.modes) == 5 and len(config.tasks) == 132
    assert sum(task.suite == "episodes" for task in TASKS) == 10
    assert config.model("SmolLM2-135M-Instruct", {}) == "default"


def test_a_model_is_found_where_the_caller_says(monkeypatch: pytest.MonkeyPatch) -> None:
    config = StudyConfig.load(EXAMPLE)
    with pytest.raises(ConfigError, match=r"--model 'Gemma-3-270M=PATH' or set AUFBAU_STUDY_GEMMA_3_270M"):
        config.model("Gemma-3-270M", {})
    monkeypatch.setenv("AUFBAU_STUDY_GEMMA_3_270M", "from the environment")
    assert config.model("Gemma-3-270M", {}) == "from the environment"
    assert config.model("Gemma-3-270M", {"Gemma-3-270M": "given"}) == "given"
    with pytest.raises(ConfigError, match="no model 'other'"):
        config.model("other", {})


BASE = 'name = "n"\nsuites = ["c"]\n[[model]]\nname = "m"\n'
FAULTS = [
    ("name = 1", "name"),
    ('name = "n"', "model"),
    (BASE.replace('["c"]', '["c", "c"]'), "stands there twice"),
    (BASE.replace('["c"]', '["none.toml"]'), "can't be read"),
    (BASE + "colour = 1", "colour"),
    ('modes = ["direct", "guessing"]\n' + BASE, "'guessing' is unknown; known are unconstrained"),
    ('stop_policy = "never"\n' + BASE, "stop_policy"),
    ("max_tokens = 0\n" + BASE, "max_tokens"),
    ("name", "not TOML"),
]


@pytest.mark.parametrize(("text", "said"), FAULTS)
def test_faulty_settings_are_named(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(StudyError) as caught:
        StudyConfig.parse(text, folder=tmp_path, source="study.toml")
    assert said in str(caught.value)


def test_the_digest_follows_what_attempts_depend_on(tmp_path: Path) -> None:
    def digest(text: str) -> str:
        return StudyConfig.parse(text, folder=tmp_path).digest

    assert digest(BASE) == digest(BASE.replace('"n"', '"other"')) == digest("seeds = [1, 2]\n" + BASE)
    assert len({digest(text + BASE) for text in ("", "max_tokens = 5\n", "temperature = 0.5\n")}) == 3
