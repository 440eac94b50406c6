from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from orchestrator.core.errors import ConfigError
from orchestrator.sessions.projects import output_folder, project_of

# ------------------------------------------------------------------------------- whose file it is


@pytest.mark.parametrize("mark", [".git", ".mcp.json", "remit.toml"])
def test_a_file_belongs_to_the_folder_with_a_mark(tmp_path: Path, mark: str) -> None:
    (tmp_path / mark).touch()

    assert project_of(tmp_path / "a" / "b" / "file") == tmp_path


def test_without_a_mark_a_file_belongs_to_its_own_folder(tmp_path: Path) -> None:
    assert project_of(tmp_path / "file") == tmp_path


def test_a_mark_of_another_user_makes_no_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    below = tmp_path / "mine"
    below.mkdir()
    real = Path.lstat

    def lstat(path: Path) -> os.stat_result:
        status = real(path)
        if path.name != ".git":
            return status
        return os.stat_result((*status[:4], os.geteuid() + 1, *status[5:]))

    monkeypatch.setattr(Path, "lstat", lstat)

    assert project_of(below / "file") == below


# ------------------------------------------------------------------------------ where agents write


def test_an_output_folder_is_where_it_really_is(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to(project)

    found = output_folder(tmp_path / "link" / "sub" / ".." / "new" / "out", projects=[project])

    assert found == project / "new" / "out"


@pytest.mark.parametrize("where", ["out", "out/below", "sub/../out", "sub/back/out", "a/out/x"])
@pytest.mark.parametrize("target", ["victim", "nowhere", "project/sub"])
def test_no_link_of_a_project_decides_where_agents_write(
    tmp_path: Path, where: str, target: str
) -> None:
    project = tmp_path / "project"
    for folder in ("project/sub", "project/a", "victim"):
        (tmp_path / folder).mkdir(parents=True)
    (project / "out").symlink_to(tmp_path / target)
    (project / "a" / "out").symlink_to(tmp_path / target)
    (project / "sub" / "back").symlink_to("..")

    with pytest.raises(ConfigError) as caught:
        output_folder(project / where, projects=[project])

    assert caught.value.code == "E-OUT-LINK"


def test_a_link_of_a_project_that_leads_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to("out")

    with pytest.raises(ConfigError, match="through a link"):
        output_folder(tmp_path / "out", projects=[tmp_path])


def test_nor_does_a_link_of_the_project_that_we_stand_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "sub").mkdir()
    (tmp_path / "out").symlink_to("/")
    monkeypatch.chdir(tmp_path / "sub")

    with pytest.raises(ConfigError, match="through a link"):
        output_folder(Path("../out"), projects=[])


def test_a_project_that_is_itself_reached_by_a_link_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "link").symlink_to("project")
    (tmp_path / "project" / "out").symlink_to("/")

    with pytest.raises(ConfigError, match="through a link"):
        output_folder(tmp_path / "link" / "out", projects=[tmp_path / "link"])


def test_marks_are_looked_for_without_following_them(tmp_path: Path) -> None:
    (tmp_path / ".git").symlink_to("nowhere")

    assert stat.S_ISLNK((tmp_path / ".git").lstat().st_mode)
    assert project_of(tmp_path / "a" / "file") == tmp_path
