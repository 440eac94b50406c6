"""The records that each call has, as forms: what is the same for many calls is written once. Appends none."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from orchestrator.audit.forms import RecordForm

__all__ = ["answered", "decided", "ended", "sent"]

_FORMS_MAX: Final = 1024
"""Of each kind: of things that many calls have in common, such as a tool and the rule about it."""


@lru_cache(_FORMS_MAX)
def decided(server: str, tool: str, definition: str, effect: str, rule: str) -> RecordForm:
    """Decisions about one tool, by one rule. Their own: call, agent, and the arguments' digest."""
    return RecordForm(
        "decision",
        {
            "call": None,
            "agent": None,
            "server": server,
            "tool": tool,
            "definition": definition,
            "arguments": None,
            "effect": effect,
            "rule": rule,
        },
    )


@lru_cache(_FORMS_MAX)
def sent(server: str, method: str, agent: str) -> RecordForm:
    """Requests of which the first byte was handed to the kernel. Their own: the call.

    `agent` is whose connection it is alone; empty where all share it.
    """
    return RecordForm("sent", {"call": None, **_where(server, agent), "method": method})


@lru_cache(_FORMS_MAX)
def answered(server: str, method: str, agent: str) -> RecordForm:
    """Requests that their server has answered. Their own: the call. `agent` as with `sent`."""
    return RecordForm("answered", {"call": None, **_where(server, agent), "method": method})


@lru_cache(_FORMS_MAX)
def ended(outcome: str, delivery: str) -> RecordForm:
    """Calls that are over. Their own: the call."""
    return RecordForm("call_ended", {"call": None, "outcome": outcome, "delivery": delivery})


def _where(server: str, agent: str) -> dict[str, str]:
    return {"server": server, "agent": agent} if agent else {"server": server}
