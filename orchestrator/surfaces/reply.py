"""What became of one question to the parent's own agent, for a person and for a program.

Decides how it ended from what is told; runs nothing and prints nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.agents.events import AgentEvent, CallEnded, InputMissing
from orchestrator.agents.results import AgentResult
from orchestrator.core.content import AUTHORITY, TRUST
from orchestrator.core.display import safe_line, safe_text
from orchestrator.core.errors import DenyReason, RemitError
from orchestrator.core.outcomes import RunStatus
from orchestrator.sessions.standing import Notice

__all__ = ["Missing", "Reply", "Unanswered", "reply_object", "reply_status", "unanswered"]

UNANSWERED_MAX: Final = 100
"""Calls that waited for a person in vain and are told; the others are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """Something that a person would have been asked, where nobody could be."""

    agent: str
    server: str
    tool: str
    rule: str

    def to_json(self) -> dict[str, str]:
        """Return it as an object of texts: what was wanted, by whom, and which rule asks."""
        return {
            "kind": "approval",
            "agent": self.agent,
            "server": self.server,
            "tool": self.tool,
            "rule": self.rule,
        }

    @property
    def text(self) -> str:
        """What was wanted, on one line."""
        return f"{self.agent} wanted {self.server}/{self.tool}; rule {self.rule} asks a person"


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Something that a server wanted of a person, where nobody could be asked; it was told so (S-12).

    `agent` is empty where it cannot be told whose call it was. `message` and `schema` are the
    server's own: bounded and untrusted.
    """

    agent: str
    server: str
    mode: str
    message: str
    schema: Mapping[str, object]
    host: str = ""

    def to_json(self) -> dict[str, object]:
        """Return it as an object: what was wanted, by which server, in whose call."""
        return {
            "kind": "elicitation",
            "agent": self.agent,
            "server": self.server,
            "mode": self.mode,
            "message": {"trust": TRUST, "authority": AUTHORITY, "value": self.message},
            "schema": dict(self.schema),
            "host": self.host,
        }

    @property
    def text(self) -> str:
        """What was wanted, on one line."""
        what = "an address visited" if self.mode == "url" else "a form filled in"
        return f"server {self.server} wanted {what} for {self.agent or 'the session'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """How one question ended.

    `result` is None where no agent has started. `notices` are what was left out of the session.
    `told` is True if the text was shown already, while it was written.
    """

    status: RunStatus
    result: AgentResult | None = None
    error: RemitError | None = None
    unanswered: Sequence[Unanswered | Missing] = ()
    notices: Sequence[Notice] = ()
    run: str = ""
    audit: str = ""
    told: bool = False

    @property
    def text(self) -> str:
        """The answer as text, safe for a terminal; empty where there is none."""
        answer = None if self.result is None else self.result.answer
        if answer is None:
            return ""
        plain = answer if isinstance(answer, str) else json.dumps(answer, indent=2)
        return safe_text(plain, reveal=True, chars_max=None)


def unanswered(event: AgentEvent) -> Unanswered | Missing | None:
    """Return what a person would have been asked, for a call or by a server."""
    if isinstance(event, InputMissing):
        return Missing(
            agent=event.agent,
            server=event.server,
            mode=event.mode,
            message=safe_text(event.message, reveal=True),
            schema=event.schema,
            host=event.host,
        )
    if not isinstance(event, CallEnded) or event.reason is not DenyReason.ASK_UNANSWERED:
        return None
    return Unanswered(
        agent=event.agent, server=event.server, tool=event.tool, rule=safe_line(event.rule)
    )


def reply_status(result: AgentResult, asked: Sequence[Unanswered | Missing]) -> RunStatus:
    """Return how it ended: an answer that was given without what a person had to say is not whole.

    What failed after a server had asked in vain wants that input first.
    """
    in_vain = any(isinstance(item, Missing) for item in asked)
    if (result.status is RunStatus.OK and asked) or (result.status is RunStatus.FAILED and in_vain):
        return RunStatus.INPUT_REQUIRED
    return result.status


def reply_object(reply: Reply) -> dict[str, object]:
    """Return the object of `--json`. What an agent answered is marked as what it is: untrusted."""
    result = reply.result
    answer = None if result is None else result.answer
    marked: Mapping[str, object] | None = None
    if answer is not None:
        marked = {"trust": TRUST, "authority": AUTHORITY, "value": answer}
    error = reply.error or (None if result is None else result.error)
    return {
        "status": reply.status.value,
        "run": reply.run,
        "result": marked,
        "input_required": [item.to_json() for item in reply.unanswered[:UNANSWERED_MAX]],
        "usage": _usage(result),
        "sources": [] if result is None else list(result.sources),
        "notices": [
            {"name": item.name, "state": item.state, "message": item.message, "fix": item.fix}
            for item in reply.notices
        ],
        "error": None
        if error is None
        else {"code": error.code, "message": error.message, "why": error.why, "fix": error.fix},
        "audit": reply.audit,
    }


def _usage(result: AgentResult | None) -> dict[str, object]:
    if result is None:
        return {"calls": 0, "denied": 0, "refused": 0, "turns": 0, "tokens": 0, "usd": 0.0}
    return {
        "calls": result.calls,
        "denied": result.denied,
        "refused": result.refused,
        "turns": result.turns,
        "tokens": result.tokens,
        "usd": round(result.usd, 6),
    }
