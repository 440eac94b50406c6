"""What the audit logs of a run say, as values for a page. Opens no file and knows no markup.

A record holds names, digests, counts and reasons: no argument, result, address or text of a server's
stderr is in one, so none can be in a report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from orchestrator.audit.kinds import AuditKind
from orchestrator.audit.record import Record

__all__ = ["ROWS_MAX", "AgentFacts", "CallFacts", "Facts", "Refusal", "facts_of"]

_PINNED: Final = "pinned without a question"

ROWS_MAX: Final = 1_000
"""Rows of one table: a page with more is read by nobody. What is left out is counted."""


@dataclass(slots=True, kw_only=True)
class CallFacts:
    """One call that was decided on. Times are seconds from the run's start."""

    agent: str
    tool: str
    began: float
    ended: float | None = None
    outcome: str = ""
    rule: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One call that was turned down."""

    at: float
    agent: str
    tool: str
    reason: str
    rule: str
    delivery: str
    bytes_sent: int


@dataclass(slots=True, kw_only=True)
class Asked:
    """What a person was asked. `about` is the call, known from the record that follows the answer."""

    at: float
    who: str
    about: str
    rule: str
    yes: bool


@dataclass(slots=True, kw_only=True)
class AgentFacts:
    """One agent, or all its attempts. `usd` is None where no record tells of money."""

    name: str
    model: str = ""
    began: float = 0.0
    ended: float | None = None
    status: str = "interrupted"
    code: str = ""
    calls: int = 0
    denied: int = 0
    refused: int = 0
    failed: int = 0
    tokens: int = 0
    usd: float | None = None
    attempts: int = 0


@dataclass(slots=True, kw_only=True)
class Facts:
    """All of one run.

    Attributes:
        events: what else happened, with its time: authority taken back, pins, servers, resumes.
        approvals: what people were asked, with their answers.
        asked_of: the last of these for each call.
        left_out: rows that no table has room for.
    """

    run: str = ""
    pipeline: str = ""
    status: str = "interrupted"
    started: float = 0.0
    seconds: float = 0.0
    agents: dict[str, AgentFacts] = field(default_factory=dict[str, AgentFacts])
    calls: dict[str, CallFacts] = field(default_factory=dict[str, CallFacts])
    refusals: list[Refusal] = field(default_factory=list[Refusal])
    approvals: list[Asked] = field(default_factory=list[Asked])
    events: list[tuple[float, str, str]] = field(default_factory=list[tuple[float, str, str]])
    replayed: int = 0
    left_out: int = 0
    asked_of: dict[str, Asked] = field(default_factory=dict[str, Asked], repr=False)

    @property
    def usd(self) -> float | None:
        """What it cost in all; None where no record tells of money."""
        known = [agent.usd for agent in self.agents.values() if agent.usd is not None]
        return sum(known) if known else None

    def total(self, name: str) -> int:
        """Return the sum of a count over all agents."""
        return sum(int(getattr(agent, name)) for agent in self.agents.values())


def facts_of(records: Iterable[Record]) -> Facts:
    """Return what the records of a run say, all its logs one after the other."""
    facts = Facts()
    for record in records:
        if not facts.started:
            facts.started = record.time
        at = max(0.0, record.time - facts.started)
        facts.seconds = max(facts.seconds, at)
        _take(facts, record.kind, record.fields, at)
    return facts


def _take(facts: Facts, kind: str, fields: Mapping[str, object], at: float) -> None:
    match kind:
        case AuditKind.LOG_OPENED:
            facts.run = _text(fields, "run")
        case AuditKind.RUN_STARTED | AuditKind.RUN_ENDED:
            _run(facts, kind, fields, at)
        case AuditKind.AGENT_STARTED | AuditKind.AGENT_ENDED:
            _agent(facts, kind, fields, at)
        case AuditKind.DECISION | AuditKind.CALL_ENDED | AuditKind.REFUSED:
            _call(facts, kind, fields, at)
        case AuditKind.APPROVAL | AuditKind.GATE:
            _asked(facts, kind, fields, at)
        case AuditKind.CALL_REPLAYED:
            facts.replayed += 1
        case _:
            _other(facts, kind, fields, at)


def _run(facts: Facts, kind: str, fields: Mapping[str, object], at: float) -> None:
    if kind == AuditKind.RUN_ENDED:
        facts.status = _text(fields, "status")
        return
    facts.pipeline = _text(fields, "pipeline")
    facts.status = "interrupted"
    if fields.get("resumed"):
        _event(facts, at, "resumed", "the run was taken up again")


def _other(facts: Facts, kind: str, fields: Mapping[str, object], at: float) -> None:
    match kind:
        case AuditKind.REVOKED:
            # every agent's end takes its authority back: that is no event
            if fields.get("what") != "agent" or fields.get("reason") != "agent_closed":
                what = f"{_text(fields, 'what')} {_text(fields, 'name')}"
                _event(facts, at, "taken back", f"{what}: {_text(fields, 'reason')}")
        case AuditKind.DEFINITION_CHANGED | AuditKind.SERVER_LOST | AuditKind.SERVER_CONNECTED:
            _event(facts, at, kind.replace("_", " "), _text(fields, "server"))
        case AuditKind.DEFINITION_PINNED:
            _pinned(facts, at, _text(fields, "server"), _text(fields, "tool"))
        case _:
            pass


def _agent(facts: Facts, kind: str, fields: Mapping[str, object], at: float) -> None:
    name = _text(fields, "agent")
    if name not in facts.agents and len(facts.agents) >= ROWS_MAX:
        facts.left_out += 1
        return
    agent = facts.agents.setdefault(name, AgentFacts(name=name, began=at))
    if kind == AuditKind.AGENT_STARTED:
        agent.model = _text(fields, "model")
        agent.attempts += 1
        agent.ended, agent.status = None, "interrupted"
        return
    agent.ended, agent.status, agent.code = at, _text(fields, "status"), _text(fields, "code")
    for count in ("calls", "denied", "refused", "failed", "tokens"):
        value = fields.get(count)
        setattr(agent, count, getattr(agent, count) + (value if isinstance(value, int) else 0))
    usd = fields.get("usd")
    if isinstance(usd, int | float):
        agent.usd = (agent.usd or 0.0) + usd


def _call(facts: Facts, kind: str, fields: Mapping[str, object], at: float) -> None:
    call = _text(fields, "call")
    tool = f"{_text(fields, 'server')}/{_text(fields, 'tool')}"
    if kind != AuditKind.CALL_ENDED and call in facts.asked_of:
        facts.asked_of[call].about = tool
    if kind == AuditKind.CALL_ENDED:
        known = facts.calls.get(call)
        if known is not None:
            known.ended, known.outcome = at, _text(fields, "outcome")
        return
    if kind == AuditKind.DECISION:
        if len(facts.calls) >= ROWS_MAX:
            facts.left_out += 1
            return
        facts.calls[call] = CallFacts(
            agent=_text(fields, "agent"), tool=tool, began=at, rule=_text(fields, "rule")
        )
        return
    if call in facts.calls:
        facts.calls[call].ended, facts.calls[call].outcome = at, "refused"
    if len(facts.refusals) >= ROWS_MAX:
        facts.left_out += 1
        return
    sent = fields.get("bytes_sent")
    facts.refusals.append(
        Refusal(
            at=at,
            agent=_text(fields, "agent"),
            tool=tool,
            reason=_text(fields, "reason"),
            rule=_text(fields, "rule"),
            delivery=_text(fields, "delivery"),
            bytes_sent=sent if isinstance(sent, int) else 0,
        )
    )


def _asked(facts: Facts, kind: str, fields: Mapping[str, object], at: float) -> None:
    if len(facts.approvals) >= ROWS_MAX:
        facts.left_out += 1
        return
    gate = kind == AuditKind.GATE
    who = _text(fields, "step" if gate else "agent")
    asked = Asked(
        at=at,
        who=who,
        about="a gate" if gate else "",
        rule="" if gate else _text(fields, "rule") or "every call is asked about",
        yes=fields.get("passed" if gate else "approved") is True,
    )
    facts.approvals.append(asked)
    if not gate:
        facts.asked_of[_text(fields, "call")] = asked


def _pinned(facts: Facts, at: float, server: str, tool: str) -> None:
    """Tell of the tools of one server together."""
    if facts.events and facts.events[-1][1] == _PINNED:
        began, _, told = facts.events[-1]
        if told.startswith(f"{server}: "):
            facts.events[-1] = (began, _PINNED, f"{told}, {tool}")
            return
    _event(facts, at, _PINNED, f"{server}: {tool}")


def _event(facts: Facts, at: float, what: str, text: str) -> None:
    if len(facts.events) >= ROWS_MAX:
        facts.left_out += 1
        return
    facts.events.append((at, what, text))


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""
