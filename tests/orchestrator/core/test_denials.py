"""Why calls are refused: every cause says what it took away, and how to get it back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestrator.core.denials import DENIALS, DenyReason
from orchestrator.core.errors import AuthorityError
from tests.architecture.sources import ROOT

LISTS = {
    ROOT / "orchestrator" / name
    for name in ("core/denials.py", "agents/results.py", "cli/audit/replay.py")
}
"""Where all reasons stand, whoever gives them."""
OF_CALLERS = {DenyReason.SESSION_REPLACED}
"""Given to `ParentSession.close` by whoever puts another session in its place."""


def test_every_reason_says_what_is_lost_and_how_to_get_it_back() -> None:
    assert set(DENIALS) == set(DenyReason)
    assert all(denial.lost and denial.regain for denial in DENIALS.values())


def test_no_two_reasons_share_a_word() -> None:
    assert len({reason.value for reason in DenyReason}) == len(DenyReason)


@pytest.mark.parametrize("reason", DenyReason)
def test_each_reason_is_given_somewhere_and_met_by_a_test(reason: DenyReason) -> None:
    gives = [path for path in _naming(ROOT / "orchestrator", reason) if path not in LISTS]
    meets = [path for path in _naming(ROOT / "tests", reason) if path != Path(__file__)]

    assert gives or reason in OF_CALLERS
    assert meets


def _naming(folder: Path, reason: DenyReason) -> list[Path]:
    name = re.compile(rf"\b(?:DenyReason|_R)\.{reason.name}\b")
    return [path for path in sorted(folder.rglob("*.py")) if name.search(path.read_text("utf-8"))]


@pytest.mark.parametrize("reason", DenyReason)
def test_a_refusal_says_how_to_get_back_what_was_lost(reason: DenyReason) -> None:
    assert AuthorityError("no", reason=reason).fix == DENIALS[reason].regain


def test_a_better_advice_stays() -> None:
    assert AuthorityError("no", reason=DenyReason.NO_VIEW, fix="do this").fix == "do this"
