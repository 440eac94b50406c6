from __future__ import annotations

from pathlib import Path

import pytest

from tests.orchestrator.cli.running import Remit


@pytest.fixture
def profile(home: Path) -> Path:
    folder = home / "config"
    folder.mkdir(parents=True)
    path = folder / "config.toml"
    path.write_text('model = "openai:gpt-5"\n[budget]\nturns = 20\n')
    return path


def test_each_value_is_shown_with_the_file_that_set_it(remit: Remit, profile: Path):
    ended = remit("config", "show", "--origin")

    assert ended.out.splitlines() == [
        f"model = openai:gpt-5  ({profile}:1:1)",
        f"budget.turns = 20  ({profile}:3:1)",
    ]


def test_a_projects_settings_are_pending_and_set_nothing(remit: Remit, profile: Path):
    Path(".git").mkdir()
    Path("remit.toml").write_text("[budget]\nturns = 5\n")

    ended = remit("config", "show")
    as_json = remit("config", "show", "--json")

    assert "turns = 5" not in ended.out
    assert "is pending and sets nothing" in ended.err
    assert as_json.json["project"] == "pending"


def test_where_nothing_is_set_it_says_where_it_would_stand(remit: Remit, home: Path):
    ended = remit("config", "show")

    assert ended.code == 0
    assert "config.toml" in ended.err
