"""The policies to begin with: their own tests pass, nothing is found in them, they are laid out."""

from __future__ import annotations

from pathlib import Path

import pytest

from policies import PolicySet, Source, load
from policies.analysis.findings import findings_of
from policies.formatting import format_text
from policies.testing import run_tests
from tests.architecture.sources import ROOT

FILES = sorted((ROOT / "examples" / "policies").glob("*.policy"))


def loaded(file: Path) -> PolicySet:
    return load([Source(file.name, file.read_text("utf-8"))], {"notes": "notes", "out": "out"})


def test_there_are_five() -> None:
    assert len(FILES) == 5


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_its_own_tests_pass(file: Path) -> None:
    outcomes = run_tests(loaded(file))
    assert len(outcomes) >= 9
    assert [str(each.case.place) + each.why for each in outcomes if not each.passed] == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_nothing_is_found_in_it_and_its_claims_are_proved(file: Path) -> None:
    assert [str(found) for found in findings_of(loaded(file))] == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_is_in_its_one_layout(file: Path) -> None:
    text = file.read_text("utf-8")
    assert format_text(text, file.name) == text
