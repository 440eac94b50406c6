"""Why calls are refused: every cause says what it took away, and how to get it back."""

from __future__ import annotations

import pytest

from orchestrator.core.denials import DENIALS, DenyReason
from orchestrator.core.errors import AuthorityError


def test_every_reason_says_what_is_lost_and_how_to_get_it_back() -> None:
    assert set(DENIALS) == set(DenyReason)
    assert all(denial.lost and denial.regain for denial in DENIALS.values())


def test_no_two_reasons_share_a_word() -> None:
    assert len({reason.value for reason in DenyReason}) == len(DenyReason)


@pytest.mark.parametrize("reason", DenyReason)
def test_a_refusal_says_how_to_get_back_what_was_lost(reason: DenyReason) -> None:
    assert AuthorityError("no", reason=reason).fix == DENIALS[reason].regain


def test_a_better_advice_stays() -> None:
    assert AuthorityError("no", reason=DenyReason.NO_VIEW, fix="do this").fix == "do this"
