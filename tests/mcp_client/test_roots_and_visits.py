"""Roots that are granted, and addresses that a server wants visited."""

from __future__ import annotations

import pytest

from mcp_client import (
    DECLINE,
    ClientLimits,
    ElicitationAnswer,
    Handlers,
    LocalProtocolError,
    PeerError,
    Root,
    UrlElicitation,
    UrlElicitationRequiredError,
)
from mcp_client.protocol.events import Violation
from mcp_client.testing import ScriptedServer
from tests.mcp_client.peer_kit import (
    ELICIT,
    URL,
    accept,
    answer_to,
    connected,
)

# ----------------------------------------------------------------------------------------- roots


@pytest.mark.requirement("C-1", "S-44")
async def test_a_root_that_cannot_be_granted_stops_the_connection_before_it_begins() -> None:
    server = ScriptedServer()

    with pytest.raises(LocalProtocolError):
        async with connected(server, Handlers(roots=(Root("https://example.com/"),))):
            pass

    assert server.received == []


@pytest.mark.requirement("C-1", "S-44")
async def test_roots_that_stay_the_same_are_not_told_and_bad_ones_change_nothing() -> None:
    server = ScriptedServer()
    async with connected(server, Handlers(roots=(Root("file:///a"),))) as client:
        client.set_roots([Root("file:///a")])
        with pytest.raises(LocalProtocolError):
            client.set_roots([Root("file:///a/../b")])
        await client.ping()

        assert client.roots == (Root("file:///a"),)
    assert server.requests("notifications/roots/list_changed") == []


@pytest.mark.requirement("L-4")
async def test_roots_cannot_be_set_where_they_were_not_declared() -> None:
    async with connected(ScriptedServer(), Handlers()) as client:
        with pytest.raises(LocalProtocolError):
            client.set_roots([])


# ---------------------------------------------------------------------------------------- visits


def required(*elicitations: object) -> dict[str, object]:
    return {"elicitations": list(elicitations)}


async def called(
    server: ScriptedServer, handlers: Handlers, data: object, limits: ClientLimits | None = None
) -> PeerError:
    """Call a tool that needs a visit, and return the error."""
    server.on("tools/call", lambda request: request.refuse(-32042, "visit", data))
    async with connected(server, handlers, limits) as client:
        with pytest.raises(PeerError) as caught:
            await client.call_tool("t", {})
    return caught.value


@pytest.mark.requirement("C-26")
async def test_an_error_that_asks_for_visits_has_those_that_can_be_shown() -> None:
    data = required(URL, {**URL, "url": "http://a.b/"}, {**URL, "mode": "form"}, 7)

    error = await called(ScriptedServer(), Handlers(elicitation_url=accept), data)

    assert isinstance(error, UrlElicitationRequiredError)
    assert [each.address.url for each in error.elicitations] == [URL["url"]]
    assert (error.elicitations[0].server, len(error.quarantined)) == ("scripted", 3)
    assert (error.code, error.data) == (-32042, data)


@pytest.mark.requirement("C-26", "L-4")
@pytest.mark.parametrize(
    ("handlers", "version", "data"),
    [
        (Handlers(), "2025-11-25", required(URL)),
        (Handlers(elicitation_form=accept), "2025-11-25", required(URL)),
        (Handlers(elicitation_url=accept), "2025-06-18", required(URL)),
        (Handlers(elicitation_url=accept), "2025-11-25", None),
        (Handlers(elicitation_url=accept), "2025-11-25", {"elicitations": {}}),
    ],
)
async def test_where_visits_were_not_negotiated_it_is_any_error(
    handlers: Handlers, version: str, data: object
) -> None:
    error = await called(ScriptedServer(version=version), handlers, data)

    assert type(error) is PeerError
    assert error.code == -32042


async def test_one_visit_over_the_bound_makes_it_any_error() -> None:
    limits = ClientLimits(elicitations_max=1)
    handlers = Handlers(elicitation_url=accept)

    fits = await called(ScriptedServer(), handlers, required(URL), limits)
    over = await called(ScriptedServer(), handlers, required(URL, URL), limits)

    assert isinstance(fits, UrlElicitationRequiredError)
    assert type(over) is PeerError


@pytest.mark.requirement("C-26")
async def test_only_the_end_of_a_known_visit_is_told_and_only_once() -> None:
    told: list[str] = []
    server = ScriptedServer()
    server.on("tools/call", lambda request: request.refuse(-32042, "visit", required(URL)))
    handlers = Handlers(elicitation_url=accept, on_visited=told.append)
    complete = "notifications/elicitation/complete"
    async with connected(server, handlers) as client:
        server.notify(complete, {"elicitationId": "e1"})
        with pytest.raises(UrlElicitationRequiredError):
            await client.call_tool("t", {})
        for elicitation_id in ("e2", None, ["e1"], "e1", "e1"):
            server.notify(complete, {"elicitationId": elicitation_id})
        await client.ping()

        assert client.session.violations == {Violation.UNASKED_NOTICE: 5}
    assert told == ["e1"]


async def test_of_one_visit_over_the_bound_the_oldest_is_known_no_more() -> None:
    told: list[str] = []
    server = ScriptedServer()
    handlers = Handlers(elicitation_url=accept, on_visited=told.append)
    async with connected(server, handlers, ClientLimits(elicitations_max=2)) as client:
        for name in ("e1", "e2", "e3"):
            server.ask(name, ELICIT, {**URL, "elicitationId": name})
            await answer_to(server, name)
        for name in ("e1", "e2", "e3"):
            server.notify("notifications/elicitation/complete", {"elicitationId": name})
        await client.ping()

    assert told == ["e2", "e3"]


@pytest.mark.requirement("C-26")
async def test_the_end_of_a_visit_that_was_declined_is_not_told() -> None:
    told: list[str] = []

    async def decline(_request: UrlElicitation) -> ElicitationAnswer:
        return DECLINE

    server = ScriptedServer()
    handlers = Handlers(elicitation_url=decline, on_visited=told.append)
    async with connected(server, handlers) as client:
        server.ask("q", ELICIT, URL)
        await answer_to(server, "q")
        server.notify("notifications/elicitation/complete", {"elicitationId": "e1"})
        await client.ping()

    assert told == []


@pytest.mark.requirement("L-4")
async def test_the_end_of_a_visit_is_not_negotiated_without_visits() -> None:
    server = ScriptedServer()
    async with connected(server, Handlers(elicitation_form=accept)) as client:
        server.notify("notifications/elicitation/complete", {"elicitationId": "e1"})
        await client.ping()

        assert client.session.violations == {Violation.UNDECLARED_NOTIFICATION: 1}
