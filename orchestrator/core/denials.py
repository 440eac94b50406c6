"""Why a call is refused: one reason for each cause, what it took away, and how to get it back.

Words of ours only: it knows no server, no rule and no call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

__all__ = ["DENIALS", "Denial", "DenyReason"]


class DenyReason(Enum):
    """Why a call was refused: one reason for each cause, never text from a server."""

    # the policy
    NO_PERMIT = "no_permit"
    """No rule permits it."""
    FORBIDDEN = "forbidden"
    """A rule forbids it."""
    ASK_UNANSWERED = "ask_unanswered"
    """A rule asks a person, and none can be asked here."""
    ASK_DECLINED = "ask_declined"
    """A person was asked and said no."""
    APPROVAL_STALE = "approval_stale"
    """What the person approved is not what is about to happen any more."""
    APPROVAL_EXPIRED = "approval_expired"
    """The approval was not used in time."""
    APPROVAL_USED = "approval_used"
    """An approval is for one call, and it was used."""
    # the snapshot
    NO_VIEW = "no_view"
    """The agent has no admitted snapshot."""
    NOT_IN_SNAPSHOT = "not_in_snapshot"
    """The capability is not part of the agent's snapshot."""
    BAD_ARGUMENTS = "bad_arguments"
    """The arguments are not a JSON object within bounds."""
    ARGUMENT_FIXED = "argument_fixed"
    """A spawn above the agent has fixed an argument, and it has another value."""
    # the ledger
    AGENT_CANCELLED = "agent_cancelled"
    AGENT_CLOSED = "agent_closed"
    PARENT_CLOSED = "parent_closed"
    SESSION_CLOSED = "session_closed"
    SESSION_REPLACED = "session_replaced"
    """Another session stands in the place of this one."""
    CONFIGURATION_RELOADED = "configuration_reloaded"
    SERVER_REMOVED = "server_removed"
    SERVER_DISABLED = "server_disabled"
    SERVER_DISCONNECTED = "server_disconnected"
    LOGGED_IN = "logged_in"
    """Another login took the place of the one that it depended on."""
    LOGGED_OUT = "logged_out"
    NEEDS_AUTH = "needs_auth"
    """The server wants a login, or one that reaches further, and nobody can be asked here."""
    SCOPE_CHANGED = "scope_changed"
    """The login reaches further now: what was under way is decided anew."""
    DEFINITION_CHANGED = "definition_changed"
    PIN_FORGOTTEN = "pin_forgotten"
    """The person who had approved the definition took that back."""
    POLICY_CHANGED = "policy_changed"
    LABEL_RAISED = "label_raised"
    """The agent has read something that restricts what it may do since."""
    RATE_EXCEEDED = "rate_exceeded"
    """A policy allows so many such calls in such a time, and they were made."""
    BUDGET_SPENT = "budget_spent"
    LEASE_OVER = "lease_over"
    """What was granted for a time has run out."""
    DEADLINE_PASSED = "deadline_passed"
    PERMIT_SPENT = "permit_spent"
    """A permit is leave to send once."""
    NOT_RECORDED = "not_recorded"
    """The audit record that must precede the byte could not be written."""


@dataclass(frozen=True, slots=True)
class Denial:
    """What a reason means to whoever meets it: `lost`, and how to `regain` it."""

    lost: str
    regain: str


_NEW_AGENT: Final = "start another agent; it gets a view of what there is then"
_SAME_CALL: Final = "make the call again: it is decided anew"

DENIALS: Final[Mapping[DenyReason, Denial]] = MappingProxyType(
    {
        DenyReason.NO_PERMIT: Denial(
            "nothing: it was never permitted", "add a permit for it to the policy"
        ),
        DenyReason.FORBIDDEN: Denial(
            "nothing: a rule forbids it", "change the rule, if it is wrong"
        ),
        DenyReason.ASK_UNANSWERED: Denial(
            "this call", "run it where a person can be asked, or permit it in the policy"
        ),
        DenyReason.ASK_DECLINED: Denial("this call", "a person said no: ask them, not the agent"),
        DenyReason.APPROVAL_STALE: Denial("this approval", "make the call again and be asked anew"),
        DenyReason.APPROVAL_EXPIRED: Denial(
            "this approval", "make the call again and be asked anew"
        ),
        DenyReason.APPROVAL_USED: Denial(
            "this approval: it was for one call", "make the call again and be asked anew"
        ),
        DenyReason.NO_VIEW: Denial(
            "nothing: no view was admitted", "start it with a grant and a policy that admit one"
        ),
        DenyReason.NOT_IN_SNAPSHOT: Denial(
            "nothing: it is not in the agent's view",
            "ask the parent for a new agent with a grant and a policy that include it",
        ),
        DenyReason.BAD_ARGUMENTS: Denial(
            "this call", "make it with a JSON object within the bounds"
        ),
        DenyReason.ARGUMENT_FIXED: Denial(
            "this call", "make it with the value that was fixed when the agent was started"
        ),
        DenyReason.RATE_EXCEEDED: Denial("this call", "make it again after a while"),
        DenyReason.AGENT_CANCELLED: Denial("everything of this agent", _NEW_AGENT),
        DenyReason.AGENT_CLOSED: Denial("everything of this agent", _NEW_AGENT),
        DenyReason.PARENT_CLOSED: Denial(
            "everything of this agent, with the agent above it", "start another parent"
        ),
        DenyReason.SESSION_CLOSED: Denial("everything of the session", "open another session"),
        DenyReason.SESSION_REPLACED: Denial(
            "everything of the session", "use the session that stands in its place"
        ),
        DenyReason.CONFIGURATION_RELOADED: Denial(
            "what the server offered under its old configuration", _NEW_AGENT
        ),
        DenyReason.SERVER_REMOVED: Denial(
            "what the server offered", "add the server again, then " + _NEW_AGENT
        ),
        DenyReason.SERVER_DISABLED: Denial(
            "what the server offered", "enable the server, then " + _NEW_AGENT
        ),
        DenyReason.SERVER_DISCONNECTED: Denial(
            "what the server offered", "connect the server again, then " + _NEW_AGENT
        ),
        DenyReason.LOGGED_IN: Denial("what was reached under the login before", _NEW_AGENT),
        DenyReason.LOGGED_OUT: Denial(
            "what was reached under the login", "log in to the server, then " + _NEW_AGENT
        ),
        DenyReason.NEEDS_AUTH: Denial(
            "what was reached under the login",
            "log in to the server (remit mcp login NAME), then " + _NEW_AGENT,
        ),
        DenyReason.SCOPE_CHANGED: Denial("the leave for this call", _SAME_CALL),
        DenyReason.DEFINITION_CHANGED: Denial(
            "the capability as it was defined when it was approved",
            "look at what has changed and approve it, then " + _NEW_AGENT,
        ),
        DenyReason.PIN_FORGOTTEN: Denial(
            "the approval of the capability's definition",
            "look at the definition and approve it, then " + _NEW_AGENT,
        ),
        DenyReason.POLICY_CHANGED: Denial("the leave for this call", _SAME_CALL),
        DenyReason.LABEL_RAISED: Denial("the leave for this call", _SAME_CALL),
        DenyReason.BUDGET_SPENT: Denial(
            "what the agent could have spent", "start another agent with a larger budget"
        ),
        DenyReason.LEASE_OVER: Denial(
            "everything of this agent: it was granted for a time", _NEW_AGENT
        ),
        DenyReason.DEADLINE_PASSED: Denial(
            "this call", "make it again, or give calls of this server more time"
        ),
        DenyReason.PERMIT_SPENT: Denial("the leave for this call: it was for one send", _SAME_CALL),
        DenyReason.NOT_RECORDED: Denial(
            "this call",
            "free some space in the state directory, or set REMIT_HOME to another one",
        ),
    }
)
"""Every reason, with what it says to a person."""
