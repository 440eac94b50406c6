from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path

import pytest

from orchestrator.core.errors import ConfigError, ExitCode
from orchestrator.core.ids import RunId
from orchestrator.sessions.state import SHOWN_MAX, StatePaths, keep_shown, read_own, replace_json


def paths(home: Path) -> StatePaths:
    return StatePaths.from_environment({"REMIT_HOME": str(home)})


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_remit_home_holds_everything(tmp_path: Path) -> None:
    found = paths(tmp_path)

    assert found.config == tmp_path / "config"
    assert found.approvals == tmp_path / "state" / "approvals.json"
    assert found.cache == tmp_path / "cache"


def test_without_remit_home_the_platforms_folders_are_taken() -> None:
    found = StatePaths.from_environment({"REMIT_HOME": ""})

    assert found.config.is_absolute()
    assert "remit" in found.state.parts


def test_a_relative_home_is_refused_since_a_project_could_bring_it() -> None:
    with pytest.raises(ConfigError) as caught:
        StatePaths.from_environment({"REMIT_HOME": ".remit"})

    assert caught.value.code == "E-STATE-HOME"
    assert caught.value.exit_code is ExitCode.USAGE


def test_asking_for_the_folders_makes_none(tmp_path: Path) -> None:
    paths(tmp_path / "home")

    assert not (tmp_path / "home").exists()


def test_prepared_folders_are_the_owners_alone(tmp_path: Path) -> None:
    found = paths(tmp_path / "deep" / "home")

    found.prepare()

    made = [found.config, found.state, found.cache, found.runs, tmp_path / "deep" / "home"]
    assert [mode(folder) for folder in made] == [0o700] * len(made)


@pytest.mark.parametrize("bits", [0o770, 0o702])
def test_a_folder_that_others_may_write_is_refused(tmp_path: Path, bits: int) -> None:
    found = paths(tmp_path)
    found.prepare()
    found.state.chmod(bits)

    with pytest.raises(ConfigError) as caught:
        found.prepare()

    assert caught.value.code == "E-STATE-SHARED"
    assert caught.value.fix == f"chmod go-w {found.state}"


def test_a_file_where_a_folder_should_be_is_an_error_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("")

    with pytest.raises(ConfigError, match=r"cannot make .*config"):
        paths(tmp_path).prepare()


def test_a_new_run_has_an_output_folder_and_no_log_yet(tmp_path: Path) -> None:
    found = paths(tmp_path)
    found.prepare()

    run = found.new_run(RunId("20261130-a1"))

    assert run.out.is_dir()
    assert run.audit.parent == found.runs / "20261130-a1"
    assert not run.audit.exists()


def test_a_run_is_never_made_twice(tmp_path: Path) -> None:
    found = paths(tmp_path)
    found.prepare()
    found.new_run(RunId("r1"))

    with pytest.raises(ConfigError, match="cannot make"):
        found.new_run(RunId("r1"))


@pytest.mark.parametrize("name", ["", "..", "a/b", "/etc", "-x", "a" * 65, "a\x00"])
def test_a_run_cannot_be_named_out_of_its_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        paths(tmp_path).run(RunId(name))

    assert caught.value.code == "E-STATE-RUN"


def test_a_replaced_file_holds_the_new_value_for_the_owner_alone(tmp_path: Path) -> None:
    target = tmp_path / "x.json"
    target.write_text("old")
    target.chmod(0o644)

    replace_json(target, {"a": [1, "é"]})

    assert json.loads(target.read_text()) == {"a": [1, "é"]}
    assert mode(target) == 0o600


def test_a_replacement_leaves_nothing_beside_the_file(tmp_path: Path) -> None:
    replace_json(tmp_path / "x.json", {})

    assert [item.name for item in tmp_path.iterdir()] == ["x.json"]


def test_a_replacement_does_not_write_through_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    link = tmp_path / "x.json"
    link.symlink_to(victim)

    replace_json(link, {})

    assert victim.read_text() == "untouched"
    assert not link.is_symlink()


def test_a_failed_replacement_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "x.json"
    target.write_text("old")

    with pytest.raises(TypeError):
        replace_json(target, {"a": object()})

    assert target.read_text() == "old"


def test_a_folder_that_does_not_exist_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        replace_json(tmp_path / "none" / "x.json", {})

    assert caught.value.where is not None
    assert caught.value.where.path.endswith("x.json")


def test_what_was_replaced_is_read_back_and_no_file_is_nothing(tmp_path: Path) -> None:
    file = tmp_path / "kept.json"
    assert read_own(file, bytes_max=100) is None

    replace_json(file, {"remit": 1})

    document = read_own(file, bytes_max=file.stat().st_size)
    assert document is not None
    assert document.table().integer("remit") == 1


def test_one_byte_past_its_bound_a_file_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "kept.json"
    replace_json(file, {"remit": 1})

    with pytest.raises(ConfigError):
        read_own(file, bytes_max=file.stat().st_size - 1)


@pytest.mark.parametrize("leads_to", ["/dev/zero", "pipe"])
def test_what_would_never_end_is_not_read(tmp_path: Path, leads_to: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "kept.json").symlink_to(leads_to)

    with pytest.raises(ConfigError) as caught:
        read_own(tmp_path / "kept.json", bytes_max=100)

    assert caught.value.code == "E-STATE-IO"


def test_a_file_that_others_may_write_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "kept.json"
    replace_json(file, {"remit": 1})
    file.chmod(0o620)

    with pytest.raises(ConfigError) as caught:
        read_own(file, bytes_max=100)

    assert caught.value.code == "E-STATE-SHARED"


def test_what_cannot_be_read_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_own(tmp_path, bytes_max=100)

    assert caught.value.code == "E-STATE-IO"
    assert str(tmp_path) in caught.value.message


def test_a_text_that_is_kept_for_a_person_is_the_owners_alone(tmp_path: Path) -> None:
    path, digest = keep_shown(tmp_path / "shown", "long\u00e9")

    assert path.read_bytes() == "long\u00e9".encode()
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)


def test_past_the_bound_the_oldest_text_is_removed(tmp_path: Path) -> None:
    first, _ = keep_shown(tmp_path, "first")
    os.utime(first, (1, 1))
    others = [keep_shown(tmp_path, str(number))[0] for number in range(SHOWN_MAX - 1)]
    assert first.exists()

    last, _ = keep_shown(tmp_path, "last")

    assert not first.exists()
    assert all(path.exists() for path in (*others, last))
