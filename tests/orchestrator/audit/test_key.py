from __future__ import annotations

import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchestrator.audit.key import KEY_BYTES, argument_digests, load_or_create_key
from orchestrator.core.errors import ConfigError


def test_a_key_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "state" / "audit.key"

    key = load_or_create_key(path)

    assert len(key) == KEY_BYTES
    assert load_or_create_key(path) == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["audit.key"]


def test_all_who_start_together_get_the_same_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        keys = list(pool.map(load_or_create_key, [tmp_path / "audit.key"] * 32))

    assert len(set(keys)) == 1


def _short(path: Path) -> None:
    path.write_bytes(b"x" * (KEY_BYTES - 1))


def _long(path: Path) -> None:
    path.write_bytes(b"x" * (KEY_BYTES + 1))


def _open_to_others(path: Path) -> None:
    path.write_bytes(b"x" * KEY_BYTES)
    path.chmod(0o640)


@pytest.mark.parametrize("spoil", [_short, _long, _open_to_others, os.mkdir, os.mkfifo])
def test_what_is_not_a_key_is_not_used(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    path = tmp_path / "audit.key"
    spoil(path)

    with pytest.raises(ConfigError) as caught:
        load_or_create_key(path)

    assert caught.value.code == "E-AUDIT-KEY"


def test_a_key_is_not_read_through_a_link(tmp_path: Path) -> None:
    load_or_create_key(tmp_path / "real")
    (tmp_path / "audit.key").symlink_to(tmp_path / "real")

    with pytest.raises(ConfigError) as caught:
        load_or_create_key(tmp_path / "audit.key")

    assert caught.value.code == "E-AUDIT-KEY"
    assert "symbolic links" in caught.value.why


def test_equal_arguments_have_equal_digests_under_one_key_only() -> None:
    one, other = b"1" * KEY_BYTES, b"2" * KEY_BYTES

    assert argument_digests(one)(b"{}") == argument_digests(one)(b"{}")
    assert len({argument_digests(one)(b"{}"), argument_digests(other)(b"{}")}) == 2
    assert argument_digests(one)(b"{}") != argument_digests(one)(b"{ }")
