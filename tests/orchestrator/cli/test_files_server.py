"""The demo's files server against a folder that means harm: it reads below its root, and runs nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from orchestrator.cli.demo.files_server import Files, Server, ToolFailedError
from orchestrator.cli.demo_repository import repository_at


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, timeout=20)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with one file in a folder."""
    root = tmp_path / "top"
    (root / "notes").mkdir(parents=True)
    (root / "notes" / "a.txt").write_text("TODO: inside\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "one")
    return root


def files(root: Path) -> Files:
    return Files(root, root.parent / "out")


@pytest.mark.subprocess
def test_what_the_repository_would_have_git_run_is_not_run(root: Path) -> None:
    ran = root.parent / "ran"
    for key in ("core.fsmonitor", "core.hooksPath", "core.pager"):
        git(root, "config", key, f"touch {ran}")

    listed = files(root).list_files({})
    found = repository_at(root)

    assert listed == "notes/a.txt"
    assert found == root.resolve()
    assert not ran.exists()


@pytest.mark.subprocess
def test_a_folder_that_became_a_link_is_not_followed(root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("TODO: outside\n")
    (root / "notes" / "a.txt").unlink()
    (root / "notes").rmdir()
    (root / "notes").symlink_to(outside)

    assert files(root).search({"words": ["TODO"]}) == ""
    assert files(root).list_files({}) == ""


@pytest.mark.parametrize("path", ["../outside", "/etc/hostname", "notes/../../outside"])
def test_nothing_outside_of_the_root_is_read(root: Path, path: str) -> None:
    (root.parent / "outside").write_text("secret")

    with pytest.raises(ToolFailedError, match="outside"):
        files(root).read_file({"path": path})


@pytest.mark.parametrize("path", ["../top/notes/a.txt", "/tmp/remit-elsewhere"])
def test_nothing_outside_of_the_output_folder_is_written(root: Path, path: str) -> None:
    with pytest.raises(ToolFailedError, match="outside"):
        files(root).write_file({"path": path, "content": "x"})

    assert (root / "notes" / "a.txt").read_text() == "TODO: inside\n"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"nonsense", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"resources/list"}', -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"}}', -32602),
    ],
)
def test_what_it_cannot_do_it_answers_with_an_error(root: Path, line: bytes, code: int) -> None:
    response = Server(files(root)).answer(line)

    assert response is not None
    assert f"'code': {code}" in str(response["error"])
