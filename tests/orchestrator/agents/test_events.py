from __future__ import annotations

import pytest

from orchestrator.agents.event_objects import EventOutline, event_object
from orchestrator.agents.events import (
    AgentEnded,
    AgentEvent,
    AgentNoted,
    AgentStarted,
    CallEnded,
    CallStarted,
    InputMissing,
    TurnEnded,
    VisitEnded,
)
from orchestrator.core.content import Origin, UntrustedContent
from orchestrator.core.errors import Delivery, DenyReason
from orchestrator.core.ids import AgentId, CallId, ServerName
from orchestrator.core.outcomes import CallOutcome, RunStatus

A = AgentId("a")
CONTENT = UntrustedContent(
    origin=Origin(server=ServerName("s"), kind="tool", name="t", call=CallId("1")),
    blocks=({"type": "text", "text": "theirs"},),
)
EVENTS: list[AgentEvent] = [
    AgentStarted(agent=A, model="m"),
    TurnEnded(agent=A, number=1, calls=2, tokens=3, usd=0.1234567),
    AgentNoted(agent=A, text="theirs"),
    CallStarted(agent=A, server="s", tool="t", arguments={"q": "theirs"}),
    CallEnded(
        agent=A,
        server="s",
        tool="t",
        outcome=CallOutcome.DENIED,
        seconds=0.5,
        delivery=Delivery.NOT_SENT,
        reason=DenyReason.NO_PERMIT,
        message="theirs",
        content=CONTENT,
    ),
    InputMissing(agent=A, server="s", mode="form", message="theirs", schema={"theirs": 1}),
    VisitEnded(agent=A, server="s", visit="v1"),
    AgentEnded(agent=A, status=RunStatus.FAILED, seconds=1.0, message="theirs"),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_what_is_kept_of_an_event_says_what_the_event_says_but_for_anothers_words(
    event: AgentEvent,
) -> None:
    kept = EventOutline(event).object()

    whole = event_object(event)
    assert kept == {name: value for name, value in whole.items() if name in kept}
    assert set(whole) - set(kept) == {"text", "message", "schema", "host"} & set(whole)
    assert "theirs" not in repr(kept)
