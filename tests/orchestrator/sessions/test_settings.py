from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.agents.budget import Budget, Price
from orchestrator.core.errors import ConfigError
from orchestrator.sessions.approvals import Origin
from orchestrator.sessions.settings import Settings, load_settings, merge_settings

PROFILE = """
remit = 1
model = "openai:gpt-5"
policy = ["policies/own.policy"]

[budget]
turns = 20
usd = 1.5

[prices."openai:gpt-5"]
input_usd = 1.25
output_usd = 10
"""


def written(folder: Path, text: str, name: str = "config.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_what_a_person_set_is_read(tmp_path: Path):
    found = load_settings(written(tmp_path, PROFILE), Origin.PROFILE)

    assert found.model == "openai:gpt-5"
    assert found.policies == (tmp_path / "policies/own.policy",)
    assert found.budget == Budget(turns=20, usd=1.5)
    assert found.prices == {"openai:gpt-5": Price(1.25, 10.0)}
    assert found.item is None


def test_a_file_that_is_not_there_sets_nothing(tmp_path: Path):
    assert load_settings(tmp_path / "none.toml", Origin.PROFILE) == Settings()


def test_every_value_has_its_place(tmp_path: Path):
    found = load_settings(written(tmp_path, PROFILE), Origin.PROFILE)

    places = {setting.name: setting.where.line for setting in found.origins}
    assert places == {
        "model": 3,
        "policy": 4,
        "budget.turns": 7,
        "budget.usd": 8,
        "prices.openai:gpt-5": 10,
    }


@pytest.mark.parametrize(
    "text",
    [
        'base_url = "https://elsewhere.example"',
        '[telemetry]\nendpoint = "https://elsewhere.example"',
        '[models."openai:x"]\nbase_url = "https://elsewhere.example"',
        'approve = ["files@00"]',
        '[prices."openai:gpt-5"]\ninput_usd = 0\noutput_usd = 0',
    ],
)
def test_a_project_cannot_set_what_would_widen(tmp_path: Path, text: str):
    with pytest.raises(ConfigError) as caught:
        load_settings(written(tmp_path, text, "remit.toml"), Origin.PROJECT)

    assert caught.value.code == "E-SETTINGS-PROJECT"
    assert caught.value.where is not None
    assert caught.value.where.line == 1


def test_a_key_that_is_not_known_is_an_error_with_the_nearest(tmp_path: Path):
    with pytest.raises(ConfigError) as caught:
        load_settings(written(tmp_path, 'modell = "openai:x"'), Origin.PROFILE)

    assert "model" in caught.value.fix


def test_the_profile_wins_and_budgets_are_the_smaller(tmp_path: Path):
    project = 'model = "openai:other"\npolicy = ["a.policy"]\n[budget]\nturns = 50\ncalls = 5\n'
    mine = load_settings(written(tmp_path, PROFILE), Origin.PROFILE)
    theirs = load_settings(written(tmp_path, project, "remit.toml"), Origin.PROJECT)

    merged = merge_settings(mine, theirs)

    assert merged.model == "openai:gpt-5"
    assert merged.policies == (tmp_path / "policies/own.policy", tmp_path / "a.policy")
    assert merged.budget == Budget(turns=20, calls=5, usd=1.5)
    assert "openai:other" not in [setting.value for setting in merged.origins]


def test_a_projects_settings_are_an_item_over_all_of_the_file(tmp_path: Path):
    first = load_settings(written(tmp_path, "[budget]\nturns = 5\n", "remit.toml"), Origin.PROJECT)
    other = load_settings(written(tmp_path, "[budget]\nturns = 6\n", "remit.toml"), Origin.PROJECT)

    assert first.item is not None
    assert other.item is not None
    assert first.item.digest != other.item.digest
    assert first.item.description_lines == ("budget: at most 5 turns",)


@pytest.mark.parametrize(
    "text",
    [
        "remit = 2",
        'model = "nothing"',
        "[budget]\nturns = -1",
        "[budget]\nturn = 1",
        '[prices."a:b"]\ninput_usd = 1',
        '[prices."a:b"]\ninput_usd = -1\noutput_usd = 1',
        'policy = "one.policy"',
        "policy = [" + '"a.policy",' * 101 + "]",
    ],
)
def test_a_value_that_makes_no_sense_is_an_error_with_its_place(tmp_path: Path, text: str):
    with pytest.raises(ConfigError) as caught:
        load_settings(written(tmp_path, text), Origin.PROFILE)

    assert caught.value.where is not None


@pytest.mark.parametrize("name", ["../other/netrc", "/etc/passwd", "link", "folder/netrc"])
def test_a_project_names_no_policy_outside_of_it(tmp_path: Path, name: str):
    other = tmp_path / "other"
    other.mkdir()
    (other / "netrc").write_text("machine x password secret")
    project = tmp_path / "project"
    project.mkdir()
    (project / "link").symlink_to(other / "netrc")
    (project / "folder").symlink_to(other)
    path = written(project, f'policy = ["{name}"]', "remit.toml")

    with pytest.raises(ConfigError) as caught:
        load_settings(path, Origin.PROJECT)

    assert (caught.value.code, caught.value.where.line) == ("E-SETTINGS-PROJECT", 1)  # pyright: ignore[reportOptionalMemberAccess]
    assert load_settings(path, Origin.PROFILE).policies == (project / name,)


def test_a_name_that_no_file_can_have_is_an_error_with_its_place(tmp_path: Path):
    with pytest.raises(ConfigError, match="no such character"):
        load_settings(written(tmp_path, r'policy = ["a\u0000b"]'), Origin.PROFILE)
