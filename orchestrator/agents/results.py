"""How an agent and its calls ended: one table from errors to outcomes. Decides nothing, runs nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, assert_never

from orchestrator.agents.model import CallResult
from orchestrator.core.errors import AuthorityError, CallFailedError, DenyReason, RemitError
from orchestrator.core.ids import AgentId
from orchestrator.core.outcomes import CallOutcome, RunStatus

__all__ = ["AgentResult", "outcome_of", "status_of"]


# frozen by the type checker alone: at run time it costs three times as much to make, and one is made
# for each agent
@dataclass(frozen=TYPE_CHECKING, slots=True, kw_only=True)
class AgentResult:
    """What became of an agent.

    Attributes:
        agent: whose result it is.
        status: how it ended; OK only if it answered within its budget.
        answer: plain JSON values, untrusted. What a model said last, where a budget ended it.
        error: why it did not end well; None with OK.
        calls: calls that it asked for. Each is also counted below if it did not succeed.
        denied: calls that policy or a person said no to.
        refused: calls that the ledger or the budget said no to.
        failed: calls that failed, or whose outcome was lost.
        turns: turns of the model.
        tokens: tokens of all turns, those of the agents below it included.
        usd: what they cost in US dollars, where the model's price is known.
        bytes: bytes of results.
        sources: what it has read of: `server/tool`, each once. Whatever it answers may come from
            there.
        seconds: from start to end.
    """

    agent: AgentId
    status: RunStatus
    answer: object = None
    error: RemitError | None = None
    calls: int = 0
    denied: int = 0
    refused: int = 0
    failed: int = 0
    turns: int = 0
    tokens: int = 0
    usd: float = 0.0
    bytes: int = 0
    seconds: float = 0.0
    sources: tuple[str, ...] = ()


_AGENT_OVER: Final = frozenset(
    {
        DenyReason.AGENT_CANCELLED,
        DenyReason.AGENT_CLOSED,
        DenyReason.PARENT_CLOSED,
        DenyReason.SESSION_CLOSED,
    }
)
"""Reasons that end the agent itself, not only what it wanted to do."""


def outcome_of(result: CallResult) -> CallOutcome:
    """Return how a call ended."""
    error = result.error
    if error is None:
        failed = result.content is not None and result.content.is_error
        return CallOutcome.FAILED if failed else CallOutcome.OK
    if isinstance(error, AuthorityError):
        return _refusal(error.reason)
    if isinstance(error, CallFailedError) and error.peer_code is not None:
        return CallOutcome.FAILED
    return CallOutcome.LOST


def status_of(error: RemitError) -> RunStatus:
    """Return how an agent ends that `error` ends."""
    if not isinstance(error, AuthorityError) or error.reason is DenyReason.BUDGET_SPENT:
        return RunStatus.FAILED
    if error.reason in _AGENT_OVER:
        return RunStatus.CANCELLED
    if error.reason is DenyReason.ASK_UNANSWERED:
        return RunStatus.INPUT_REQUIRED
    if error.reason is DenyReason.NEEDS_AUTH:
        return RunStatus.NEEDS_AUTH
    return RunStatus.DENIED


def _refusal(reason: DenyReason) -> CallOutcome:
    match reason:
        case (
            DenyReason.NO_PERMIT
            | DenyReason.FORBIDDEN
            | DenyReason.ASK_UNANSWERED
            | DenyReason.ASK_DECLINED
            | DenyReason.APPROVAL_STALE
            | DenyReason.APPROVAL_EXPIRED
            | DenyReason.APPROVAL_USED
            | DenyReason.NO_VIEW
            | DenyReason.NOT_IN_SNAPSHOT
            | DenyReason.BAD_ARGUMENTS
            | DenyReason.ARGUMENT_FIXED
        ):
            return CallOutcome.DENIED
        case (
            DenyReason.AGENT_CANCELLED
            | DenyReason.AGENT_CLOSED
            | DenyReason.PARENT_CLOSED
            | DenyReason.SESSION_CLOSED
            | DenyReason.SESSION_REPLACED
            | DenyReason.CONFIGURATION_RELOADED
            | DenyReason.SERVER_REMOVED
            | DenyReason.SERVER_DISABLED
            | DenyReason.SERVER_DISCONNECTED
            | DenyReason.LOGGED_IN
            | DenyReason.LOGGED_OUT
            | DenyReason.NEEDS_AUTH
            | DenyReason.SCOPE_CHANGED
            | DenyReason.DEFINITION_CHANGED
            | DenyReason.PIN_FORGOTTEN
            | DenyReason.POLICY_CHANGED
            | DenyReason.LABEL_RAISED
            | DenyReason.RATE_EXCEEDED
            | DenyReason.BUDGET_SPENT
            | DenyReason.LEASE_OVER
            | DenyReason.DEADLINE_PASSED
            | DenyReason.PERMIT_SPENT
            | DenyReason.NOT_RECORDED
        ):
            return CallOutcome.REFUSED
        case _:
            assert_never(reason)
