from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from orchestrator.core.errors import ConfigError
from orchestrator.sessions.fingerprints import file_digest, file_digests


def named(project: Path, *words: str, cwd: str = "") -> dict[str, str]:
    return dict(file_digests(words, project=project, folders=(project, project / cwd)))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "server.py").write_text("print()")
    (tmp_path / "tools" / "__main__.py").write_text("print(1)")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ("python", "tools/server.py"),
        ("python", "./tools/server.py"),
        ("tools/server.py",),
        ("node", "--require=tools/server.py"),
        ("sh", "-c", "python tools/server.py; echo"),
        ("python", "-m", "tools.server"),
        ("/usr/lib:tools/server.py",),
    ],
)
def test_a_file_of_the_project_is_found_however_it_is_named(
    project: Path, words: tuple[str, ...]
) -> None:
    assert named(project, *words) == {"tools/server.py": hashlib.sha256(b"print()").hexdigest()}


def test_a_package_that_is_run_is_found_by_its_main(project: Path) -> None:
    assert list(named(project, "python", "-m", "tools")) == ["tools/__main__.py"]


def test_a_path_relative_to_the_servers_folder_is_found(project: Path) -> None:
    assert list(named(project, "python", "server.py", cwd="tools")) == ["tools/server.py"]


def test_an_absolute_path_inside_the_project_counts(project: Path) -> None:
    assert list(named(project, str(project / "tools/server.py"))) == ["tools/server.py"]


def test_an_absolute_path_elsewhere_does_not(project: Path) -> None:
    assert named(project / "tools", str(project / "x"), "/bin/sh", "python", "--flag") == {}


def test_a_link_counts_by_what_it_leads_to(project: Path) -> None:
    (project / "link.py").symlink_to(project / "tools" / "server.py")

    assert named(project, "link.py")["link.py"] == hashlib.sha256(b"print()").hexdigest()


def test_what_is_no_file_is_passed_over(project: Path) -> None:
    os.mkfifo(project / "pipe")

    assert named(project, ".", "tools", "pipe", "missing", "a" * 5_000, "tools/server.py/x") == {}


def test_one_byte_past_the_bound_cannot_be_compared(project: Path) -> None:
    exact = len("print()") + len("print(1)")
    words = ("tools/server.py", "tools/__main__.py")

    assert len(file_digests(words, project=project, folders=(project,), bytes_max=exact)) == 2
    with pytest.raises(ConfigError, match="more than can be compared"):
        file_digests(words, project=project, folders=(project,), bytes_max=exact - 1)


def test_a_file_that_is_missing_has_no_digest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no file"):
        file_digest(tmp_path / "none")
