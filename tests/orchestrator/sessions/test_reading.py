from __future__ import annotations

import os
from pathlib import Path

import pytest

from orchestrator.core.errors import ConfigError
from orchestrator.sessions.approvals import Origin
from orchestrator.sessions.configuration import ServersSource, load_servers
from orchestrator.sessions.policing import read_policies
from orchestrator.sessions.reading import TooLargeError, read_regular


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 3_000_000)

    assert read_regular(path, bytes_max=3_000_000) == b"x" * 3_000_000


def test_one_byte_past_the_bound_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")

    assert read_regular(path, bytes_max=5) == b"12345"
    with pytest.raises(TooLargeError):
        read_regular(path, bytes_max=4)


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "missing"])
def test_what_is_no_regular_file_is_an_error_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "device":
            path.symlink_to("/dev/zero")
        case _:
            pass

    with pytest.raises(OSError, match=r"."):
        read_regular(path, bytes_max=100)


def test_a_link_is_followed_only_where_it_may_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    link = tmp_path / "link"
    link.symlink_to("file")

    assert read_regular(link, bytes_max=1) == b"x"
    with pytest.raises(OSError, match=r"."):
        read_regular(link, bytes_max=1, follow=False)


ENDLESS = ["/proc/self/mem", "/proc/self/pagemap", "/dev/zero", "/dev/tty", "pipe"]


@pytest.mark.parametrize("target", ENDLESS)
def test_no_servers_file_holds_anybody_up(tmp_path: Path, target: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    path = tmp_path / ".mcp.json"
    path.symlink_to(target)
    source = ServersSource(
        minimum=None, origin=Origin.PROJECT, project=tmp_path, home=tmp_path, environ={}
    )

    with pytest.raises(ConfigError):
        load_servers(path, source)


@pytest.mark.parametrize("target", ENDLESS)
def test_no_policy_file_holds_anybody_up(tmp_path: Path, target: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    path = tmp_path / "p.policy"
    path.symlink_to(target)

    with pytest.raises(ConfigError):
        read_policies([path], project=tmp_path, parameters={})
