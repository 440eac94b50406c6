"""The stop reason follows from how the agent ended, and from nothing else."""

from __future__ import annotations

import pytest

from orchestrator.agents.results import AgentResult
from orchestrator.core.errors import ConfigError
from orchestrator.core.ids import AgentId
from orchestrator.core.outcomes import RunStatus
from orchestrator.surfaces.acp.ending import StopReason, answer_text, stop_reason
from orchestrator.surfaces.acp.errors import RequestError


def result(status: RunStatus, code: str = "", answer: object = None) -> AgentResult:
    error = ConfigError("it is so", code=code, fix="mend it") if code else None
    return AgentResult(agent=AgentId("parent"), status=status, error=error, answer=answer)


@pytest.mark.parametrize(
    ("ended", "reason"),
    [
        (result(RunStatus.OK), StopReason.END_TURN),
        (result(RunStatus.CANCELLED, "E-AUTHORITY-AGENT-CANCELLED"), StopReason.CANCELLED),
        (result(RunStatus.FAILED, "E-BUDGET-TOKENS"), StopReason.MAX_TOKENS),
        (result(RunStatus.FAILED, "E-BUDGET-TURNS"), StopReason.MAX_TURN_REQUESTS),
        (result(RunStatus.FAILED, "E-BUDGET-CALLS"), StopReason.MAX_TURN_REQUESTS),
        (result(RunStatus.FAILED, "E-BUDGET-USD"), StopReason.MAX_TURN_REQUESTS),
        (result(RunStatus.DENIED, "E-AUTHORITY-FORBIDDEN"), StopReason.REFUSAL),
        (result(RunStatus.INPUT_REQUIRED, "E-AUTHORITY-ASK-UNANSWERED"), StopReason.REFUSAL),
        (result(RunStatus.NEEDS_AUTH, "E-AUTHORITY-NEEDS-AUTH"), StopReason.REFUSAL),
    ],
)
def test_each_end_has_its_stop_reason(ended: AgentResult, reason: StopReason):
    assert stop_reason(ended) is reason


def test_a_failure_is_an_error_with_its_code():
    with pytest.raises(RequestError) as caught:
        stop_reason(result(RunStatus.FAILED, "E-MODEL-CALLS"))

    assert caught.value.data is not None
    assert caught.value.data["code"] == "E-MODEL-CALLS"


def test_a_refusal_says_what_mends_it():
    denied = result(RunStatus.DENIED, "E-AUTHORITY-FORBIDDEN")
    assert "fix: mend it" in answer_text(denied, told=False)


def test_an_answer_cut_short_by_a_budget_is_told_with_the_budget():
    text = answer_text(result(RunStatus.FAILED, "E-BUDGET-TOKENS", "half of"), told=False)

    assert text.startswith("half of\n\nE-BUDGET-TOKENS")


def test_what_was_told_as_it_came_is_not_told_again():
    cut = result(RunStatus.FAILED, "E-BUDGET-TOKENS", "half of")

    assert answer_text(result(RunStatus.OK, "", "all of it"), told=True) == ""
    assert answer_text(cut, told=True).startswith("\n\nE-BUDGET-TOKENS")
