"""How a turn ended, in the protocol's words. Decides from a result; sends nothing."""

from __future__ import annotations

import json
from enum import Enum
from typing import Final

from orchestrator.agents.results import AgentResult
from orchestrator.core.display import safe_line
from orchestrator.core.errors import RemitError
from orchestrator.core.outcomes import RunStatus
from orchestrator.surfaces.acp.errors import INTERNAL, RequestError, request_error

__all__ = ["StopReason", "answer_text", "as_text", "stop_reason"]


class StopReason(Enum):
    """Why a turn is over; the protocol's own words."""

    END_TURN = "end_turn"
    MAX_TOKENS = "max_tokens"
    MAX_TURN_REQUESTS = "max_turn_requests"
    REFUSAL = "refusal"
    CANCELLED = "cancelled"


_BUDGET: Final = "E-BUDGET-"
_REFUSED: Final = frozenset({RunStatus.DENIED, RunStatus.INPUT_REQUIRED, RunStatus.NEEDS_AUTH})


def stop_reason(result: AgentResult) -> StopReason:
    """Return why a turn ended. Raises RequestError for what is a failure and no end of a turn."""
    if result.status is RunStatus.OK:
        return StopReason.END_TURN
    if result.status is RunStatus.CANCELLED:
        return StopReason.CANCELLED
    error = result.error
    if error is not None and error.code.startswith(_BUDGET):
        spent_tokens = error.code == f"{_BUDGET}TOKENS"
        return StopReason.MAX_TOKENS if spent_tokens else StopReason.MAX_TURN_REQUESTS
    if result.status in _REFUSED:
        return StopReason.REFUSAL
    if error is None:
        raise RequestError(INTERNAL, f"the agent ended: {result.status.value}")
    raise request_error(error)


def answer_text(result: AgentResult, *, told: bool) -> str:
    """Return what is left to say to the person: the answer unless it was told, and why it is not whole."""
    text = "" if told or result.answer is None else as_text(result.answer)
    refused = result.status in _REFUSED or (
        result.error is not None and result.error.code.startswith(_BUDGET)
    )
    if refused and result.error is not None:
        text = f"{text}\n\n{_told(result.error)}"
        return text if told else text.strip()
    return text


def as_text(answer: object) -> str:
    """Return an answer as text: plain JSON values are written out."""
    return answer if isinstance(answer, str) else json.dumps(answer, indent=2, ensure_ascii=False)


def _told(error: RemitError) -> str:
    lines = [f"{error.code}: {safe_line(error.message, reveal=True)}"]
    if error.fix:
        lines.append(f"fix: {safe_line(error.fix, reveal=True)}")
    return "\n".join(lines)
