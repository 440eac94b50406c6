"""The first example, run as in CI: nobody to ask, approvals by options, the same end each time."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final, cast

import pytest

from tests.architecture.sources import ROOT
from tests.orchestrator.cli.running import Finished

pytestmark = pytest.mark.subprocess

PIPELINE: Final = "refunds.toml"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    return copied(tmp_path)


def copied(place: Path) -> Path:
    """Copy the example and its server: what a run leaves there would be seen."""
    folder = place / "examples"
    for name in ("first_pipeline", "servers"):
        shutil.copytree(ROOT / "examples" / name, folder / name)
    return folder / "first_pipeline"


def remit(folder: Path, *words: str) -> Finished:
    finished = subprocess.run(
        [sys.executable, "-m", "orchestrator.cli", *words],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "REMIT_HOME": str(folder.parents[1] / "home"),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Finished(finished.returncode, finished.stdout, finished.stderr)


def approvals(ended: Finished) -> tuple[str, ...]:
    """The options that an error says to add."""
    _, _, options = str(ended.json["fix"]).partition(" add ")
    return tuple(shlex.split(options))


@pytest.fixture(scope="module")
def approved(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """All options that a run needs, as the how-to says: one error leads to the next."""
    folder = copied(tmp_path_factory.mktemp("approved"))
    options: tuple[str, ...] = ()
    for _ in range(2):
        ended = remit(folder, "run", PIPELINE, "--json", *options)
        assert ended.code == 6
        options += approvals(ended)
    return options


def test_without_approvals_nothing_is_started(example: Path):
    ended = remit(example, "run", PIPELINE, "--json")

    assert (ended.code, ended.json["code"]) == (6, "E-PENDING-APPROVAL")
    assert not list((example.parents[1] / "home").rglob("refunds.jsonl"))


def test_the_example_ends_well_and_leaves_the_large_refund_to_a_person(
    example: Path, approved: tuple[str, ...]
):
    before = {path.name for path in example.iterdir()}
    ended = remit(example, "run", PIPELINE, "--json", *approved)
    result = cast("dict[str, dict[str, object]]", ended.json["result"])["value"]
    paid = (Path(str(ended.json["out"])) / "refunds.jsonl").read_text().splitlines()

    assert (ended.code, ended.json["status"]) == (0, "ok")
    assert result["cashier"] == {"paid": [102], "left to a person": [103]}
    assert [json.loads(line) for line in paid] == [{"order": 102, "customer": "Ben", "amount": 30}]
    assert {path.name for path in example.iterdir()} - {"__pycache__"} == before


def test_an_input_changes_what_is_found(example: Path, approved: tuple[str, ...]):
    ended = remit(example, "run", PIPELINE, "--json", "--input", "days=30", *approved)
    result = cast("dict[str, dict[str, object]]", ended.json["result"])["value"]

    assert result == {"clerk": [], "cashier": {"paid": [], "left to a person": []}}


def test_the_plan_names_the_rule_behind_each_tool(example: Path, approved: tuple[str, ...]):
    ended = remit(example, "run", PIPELINE, "--dry-run", *approved)

    assert ended.code == 0
    assert 'orders/get_order    permitted    by "look" (shop.policy:7)' in ended.out


def test_a_changed_recipe_is_not_run(example: Path, approved: tuple[str, ...]):
    with (example / "recipes.py").open("a") as file:
        file.write("# changed\n")
    ended = remit(example, "run", PIPELINE, "--json", *approved)

    assert (ended.code, "recipe recipes.py" in str(ended.json["message"])) == (6, True)


def test_an_approval_of_what_there_is_not_is_an_error(example: Path):
    ended = remit(example, "run", PIPELINE, "--json", "--approve", "ordrs@" + "0" * 64)

    assert (ended.code, ended.json["fix"]) == (2, "did you mean 'orders'?")


def test_a_model_without_a_provider_is_an_error_before_anything_is_asked(example: Path):
    ended = remit(example, "run", PIPELINE, "--json", "--model", "gpt-5")

    assert (ended.code, ended.json["code"]) == (2, "E-MODEL-FORM")


def test_what_a_server_said_before_it_ended_is_told(example: Path, approved: tuple[str, ...]):
    (example / "orders.json").write_text("no JSON")
    first = remit(example, "run", PIPELINE, "--json", *approved)
    ended = remit(example, "run", PIPELINE, *approved, *approvals(first))

    assert (ended.code, "JSONDecodeError" in ended.err) == (1, True)
