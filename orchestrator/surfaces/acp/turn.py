"""One turn as an editor sees it: what agents do becomes tool calls, a plan and chunks. No I/O.

The parent's own calls are tool calls; each agent below it is one, with its own calls as its lines.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, assert_never

from orchestrator.agents.events import (
    AgentEnded,
    AgentEvent,
    AgentNoted,
    AgentSaid,
    AgentStarted,
    CallEnded,
    CallProgressed,
    CallStarted,
    InputMissing,
    TurnEnded,
    VisitEnded,
)
from orchestrator.core.display import safe_line
from orchestrator.core.ids import AgentId
from orchestrator.core.outcomes import CallOutcome, RunStatus
from orchestrator.sessions.family import PARENT
from orchestrator.surfaces.acp.limits import AcpLimits
from orchestrator.surfaces.acp.shown import locations, raw_input, result_text
from orchestrator.surfaces.acp.updates import Update, chunks, content, plan_update, usage_update

__all__ = ["LINE_CHARS", "SUBAGENT_META", "TurnView"]

SUBAGENT_META: Final = "remit/subagent"
"""The key of `_meta` under which the path of a subagent stands."""
LINE_CHARS: Final = 500
"""Of what a subagent says in one turn of its model: its result is its parent's."""
WINDOW_TOKENS: Final = 100_000
"""Of one request to a model: what remit keeps a conversation within."""


@dataclass(slots=True)
class _Below:
    """An agent below the parent's own, and its tool call."""

    tool_call: str
    lines: deque[str]
    status: str = "in_progress"
    saying: str = ""


@dataclass(slots=True)
class TurnView:
    """What one turn has shown so far. `prefix` makes its ids differ from those of other turns.

    `cwd` is the session's folder. `streamed` is true once a piece of the answer was told as it came.
    """

    prefix: str
    limits: AcpLimits
    cwd: Path
    streamed: bool = False
    _count: int = 0
    _calls: dict[tuple[AgentId, int], tuple[str, str]] = field(
        default_factory=dict[tuple[AgentId, int], tuple[str, str]]
    )
    _below: dict[AgentId, _Below] = field(default_factory=dict[AgentId, "_Below"])

    def see(self, event: AgentEvent) -> Iterator[Update]:
        """Yield what an event changes for the editor."""
        match event:
            case CallStarted():
                yield from self._call_started(event)
            case CallEnded():
                yield from self._call_ended(event)
            case AgentStarted():
                yield from self._agent_started(event)
            case AgentEnded():
                yield from self._agent_ended(event)
            case AgentNoted():
                yield from self._noted(event)
            case AgentSaid():
                yield from self._said(event)
            case TurnEnded():
                yield from self._turn_ended(event)
            case CallProgressed():
                yield from self._call_progressed(event)
            case InputMissing() | VisitEnded():
                return  # an editor is asked, and told; or the agent says what it missed
            case _:
                assert_never(event)

    def asked_about(self, agent: AgentId, server: str, tool: str) -> str:
        """Return the tool call that a question is about; another id where it may be one of several."""
        name = f"{server}/{tool}"
        fitting = [
            made
            for (whose, _), (made, shown) in self._calls.items()
            if whose == agent and shown == name
        ]
        return fitting[0] if len(fitting) == 1 else self.new_id()

    def close(self) -> Iterator[Update]:
        """Yield the end of what has none: nothing is left to turn in circles."""
        for made, _ in self._calls.values():
            yield _ended(made, "failed")
        for below in self._below.values():
            if below.status == "in_progress":
                below.status = "completed"
                yield _ended(below.tool_call, "failed")
        self._calls.clear()

    def _call_started(self, event: CallStarted) -> Iterator[Update]:
        name = f"{event.server}/{event.tool}"
        if event.agent != PARENT:
            yield from self._line(event.agent, f"calls {name}")
            return
        made = self.new_id()
        self._calls[event.agent, event.number] = made, name
        yield {
            "sessionUpdate": "tool_call",
            "toolCallId": made,
            "title": safe_line(name, reveal=True),
            "kind": "other",
            "status": "in_progress",
            "rawInput": raw_input(event.arguments, self.limits),
            "locations": locations(event.arguments, self.cwd, self.limits),
        }

    def _call_progressed(self, event: CallProgressed) -> Iterator[Update]:
        made, _ = self._calls.get((event.agent, event.number), ("", ""))
        if not made:
            return
        yield {
            "sessionUpdate": "tool_call_update",
            "toolCallId": made,
            "status": "in_progress",
            "content": [{"type": "content", "content": content(event.how_far)}],
        }

    def _call_ended(self, event: CallEnded) -> Iterator[Update]:
        name = f"{event.server}/{event.tool}"
        why = safe_line(event.message, reveal=True)
        if event.agent != PARENT:
            told = f"{name}: {event.outcome.value}" + (f" ({why})" if why else "")
            yield from self._line(event.agent, told)
            return
        made, _ = self._calls.pop((event.agent, event.number), ("", ""))
        if not made:  # of a turn that is over, or refused before it began
            return
        update = _ended(made, "completed" if event.outcome is CallOutcome.OK else "failed")
        raw: dict[str, object] = {
            "outcome": event.outcome.value,
            "seconds": round(event.seconds, 3),
            "delivery": event.delivery.value,
            "reason": event.reason.value if event.reason is not None else "",
            "rule": safe_line(event.rule, reveal=True),
        }
        update["rawOutput"] = raw
        shown = [why] if why else []
        if event.content is not None:
            raw["trust"] = event.content.trust
            shown.append(result_text(event.content, self.limits))
        if shown:
            update["content"] = [{"type": "content", "content": content(text)} for text in shown]
        yield update

    def _agent_started(self, event: AgentStarted) -> Iterator[Update]:
        if event.agent == PARENT:
            return
        made = self.new_id()
        self._below[event.agent] = _Below(made, deque(maxlen=self.limits.lines_kept_max))
        yield {
            "sessionUpdate": "tool_call",
            "toolCallId": made,
            "title": f"subagent {safe_line(event.agent, reveal=True)}",
            "kind": "think",
            "status": "in_progress",
            "_meta": {SUBAGENT_META: {"path": event.agent, "model": event.model}},
        }
        yield self._plan()

    def _agent_ended(self, event: AgentEnded) -> Iterator[Update]:
        below = self._below.get(event.agent)
        if below is None or below.status != "in_progress":
            return
        below.status = "completed"
        ok = event.status is RunStatus.OK
        update = _ended(below.tool_call, "completed" if ok else "failed")
        update["rawOutput"] = {
            "status": event.status.value,
            "seconds": round(event.seconds, 3),
            "message": safe_line(event.message, reveal=True),
        }
        yield update
        yield self._plan()

    def _noted(self, event: AgentNoted) -> Iterator[Update]:
        if event.agent == PARENT:
            yield from chunks("agent_thought_chunk", event.text + "\n", self.limits)
        else:
            yield from self._line(event.agent, event.text)

    def _said(self, event: AgentSaid) -> Iterator[Update]:
        """Tell a piece of the answer at once; what one below says is a line, once it has said it."""
        if event.agent == PARENT:
            self.streamed = True
            yield from chunks("agent_message_chunk", event.text, self.limits)
            return
        below = self._below.get(event.agent)
        if below is not None and len(below.saying) < LINE_CHARS:
            below.saying = (below.saying + event.text)[:LINE_CHARS]

    def _turn_ended(self, event: TurnEnded) -> Iterator[Update]:
        if event.agent == PARENT:
            if event.tokens:
                yield usage_update(event.tokens, WINDOW_TOKENS, event.usd)
            return
        below = self._below.get(event.agent)
        if below is not None and below.saying.strip():
            text, below.saying = below.saying, ""
            yield from self._line(event.agent, f"says {text}")

    def _line(self, agent: AgentId, text: str) -> Iterator[Update]:
        below = self._below.get(agent)
        if below is None or below.status != "in_progress":
            return
        below.lines.append(safe_line(text, reveal=True))
        shown = "\n".join(below.lines)
        yield {
            "sessionUpdate": "tool_call_update",
            "toolCallId": below.tool_call,
            "status": "in_progress",
            "content": [{"type": "content", "content": content(shown)}],
        }

    def _plan(self) -> Update:
        entries = [
            (f"subagent {safe_line(agent, reveal=True)}", below.status)
            for agent, below in self._below.items()
        ]
        return plan_update(entries[-self.limits.plan_entries_max :])

    def new_id(self) -> str:
        """Return the id of another tool call."""
        self._count += 1
        return f"{self.prefix}.{self._count}"


def _ended(tool_call: str, status: str) -> dict[str, object]:
    return {"sessionUpdate": "tool_call_update", "toolCallId": tool_call, "status": status}
