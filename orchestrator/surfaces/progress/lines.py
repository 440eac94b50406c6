"""One plain line about an event, safe for a terminal. Writes nothing."""

from __future__ import annotations

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
from orchestrator.core.errors import Delivery, DenyReason
from orchestrator.core.outcomes import CallOutcome

__all__ = ["event_line", "shown_name"]

_NAME_CHARS: Final = 64


def event_line(event: AgentEvent) -> str | None:
    """Return one plain line about an event, safe for a terminal; None for what is not worth one."""
    match event:
        case AgentStarted():
            return _line("started", event.agent, safe_line(event.model))
        case AgentNoted():
            return _line("note", event.agent, safe_line(event.text))
        case CallEnded():
            return _line(event.outcome.value, event.agent, _ending(event))
        case InputMissing():
            return _line(
                "asked", event.agent, f"{safe_line(event.server)}  nobody can be asked here"
            )
        case VisitEnded():
            return _line("visited", event.agent, f"{safe_line(event.server)}  says that it is over")
        case AgentEnded():
            message = f"  {safe_line(event.message)}" if event.message else ""
            return _line(
                "ended", event.agent, f"{event.status.value}  {event.seconds:.1f} s{message}"
            )
        case CallStarted() | CallProgressed() | TurnEnded() | AgentSaid():
            return None
        case _:
            assert_never(event)


def _line(word: str, agent: str, rest: str) -> str:
    """Return one line; `rest` has been made safe."""
    return f"{word:<8} {shown_name(agent):<12} {rest}".rstrip()


def _ending(event: CallEnded) -> str:
    """Return what became of a call: for one that was turned down the cause, and what was sent."""
    target = f"{shown_name(event.server)}/{shown_name(event.tool)}"
    reason = event.reason.value if event.reason is not None else ""
    match event.outcome:
        case CallOutcome.OK:
            return f"{target}  {event.seconds:.2f} s"
        case CallOutcome.DENIED:
            # without a permit no rule decided; what stands there says itself what it is
            word = "" if event.reason is DenyReason.NO_PERMIT else "rule "
            rule = f"{word}{safe_line(event.rule)}" if event.rule else ""
            return "  ".join(part for part in (target, reason, rule, _sent(event)) if part)
        case CallOutcome.REFUSED:
            return "  ".join(part for part in (target, reason, _sent(event)) if part)
        case CallOutcome.FAILED | CallOutcome.LOST:
            message = safe_line(event.message)
            return "  ".join(part for part in (target, f"{event.seconds:.2f} s", message) if part)
        case _:
            assert_never(event.outcome)


def _sent(event: CallEnded) -> str:
    sent = f"bytes sent: {event.bytes_sent}"
    return sent if event.delivery is Delivery.NOT_SENT else f"{sent} ({event.delivery.value})"


def shown_name(text: str) -> str:
    """Return a name that is somebody else's, within bounds and with hidden characters written out."""
    return safe_line(text, reveal=True, chars_max=_NAME_CHARS)
