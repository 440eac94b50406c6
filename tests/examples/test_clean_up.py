"""The clean-up under policy: a gate, an approval in advance, and what is denied whoever asks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import pytest

from tests.examples.running import approved, copied, remit
from tests.orchestrator.cli.running import Finished

pytestmark = pytest.mark.subprocess
Ended = tuple[Path, Finished, Finished]


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """The run up to its gate, and what followed once a person had said yes to the plan."""
    folder = copied(tmp_path_factory.mktemp("clean_up"), "clean_up")
    flags = approved(folder, "clean_up.toml")
    stopped = remit(folder, "run", "clean_up.toml", *flags)
    run = re.findall(r"^run +(\S+):", stopped.out, re.MULTILINE)[0]
    leave = re.findall(r"--pass (\S+)", stopped.out)[0]
    went_on = remit(folder, "run", "--resume", run, "--json", *flags, "--pass", leave)
    return folder, stopped, went_on


def test_nothing_is_moved_before_a_person_has_seen_the_plan(ended: Ended):
    assert ended[1].code == 4
    assert "move_file" not in ended[1].err


def test_what_the_policy_permits_is_moved_and_the_rest_is_left(ended: Ended):
    finished = ended[2]
    out = Path(str(finished.json["out"])) / "inbox"
    result = cast("dict[str, Any]", finished.json["result"])["value"]["mover"]

    assert (finished.code, finished.json["status"]) == (0, "ok")
    assert result["left"] == ["contract-2024.txt"]
    assert sorted(path.name for path in (out / "archive").iterdir()) == [
        "invoice-2023-11.txt",
        "invoice-2024-02.txt",
    ]


def test_nothing_is_deleted_and_no_byte_of_it_goes_out(ended: Ended):
    out = Path(str(ended[2].json["out"])) / "inbox"
    lines = [line for line in ended[2].err.splitlines() if "delete_file" in line]

    assert {"draft.tmp", "cache.tmp"} <= {path.name for path in out.iterdir()}
    assert len(lines) == 2
    assert all("denied" in line and "bytes sent: 0" in line for line in lines)


def test_the_project_itself_is_as_it_was(ended: Ended):
    assert len(list((ended[0] / "inbox").iterdir())) == 7
