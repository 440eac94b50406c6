"""Sessions over versions without a handshake: how they begin, and what each request says."""

from __future__ import annotations

import pytest

from mcp_client.ports import Handlers
from mcp_client.protocol.connection.legacy import ClientConnection
from mcp_client.protocol.connection.modern import ModernConnection
from mcp_client.protocol.declaration import ClientCapabilities
from mcp_client.protocol.dialect import Dialect
from mcp_client.protocol.eras import Era, EraMemory, Opening
from mcp_client.protocol.errors import (
    Delivery,
    HandshakeError,
    LocalProtocolError,
    PeerError,
    RemoteProtocolError,
    UnsupportedVersionError,
)
from mcp_client.protocol.events import Violation
from mcp_client.protocol.http.headers import HeaderMark
from mcp_client.protocol.jsonrpc import as_object
from mcp_client.protocol.modern.errors import HeaderMismatchError, MissingCapabilityError
from mcp_client.protocol.modern.limits import ModernLimits
from mcp_client.protocol.modern.subscriptions import SubscriptionFilter
from mcp_client.testing import ModernServer, RecordingGuard, ScriptedRequest, ScriptedServer
from tests.mcp_client.kit import Bench, new_bench, open_bench

MODERN = Dialect(opening=Opening.MODERN)
CALL = b'{"arguments":{},"name":"wait"}'
TOOLS_CHANGED = "notifications/tools/list_changed"


def methods(server: ScriptedServer) -> list[object]:
    return [message.get("method") for message in server.received]


def ids(server: ScriptedServer) -> list[object]:
    return [message["id"] for message in server.received if "id" in message]


def said(server: ScriptedServer) -> dict[str, object]:
    """The `_meta` of the last request."""
    params = as_object(server.received[-1].get("params")) or {}
    return dict(as_object(params.get("_meta")) or {})


async def modern_bench(server: ModernServer | None = None, dialect: Dialect = MODERN) -> Bench:
    if server is None:
        server = ModernServer(capabilities={"tools": {"listChanged": True}})
        server.add_tool("wait")
    return await open_bench(server, dialect=dialect)


# ------------------------------------------------------------------------------------- opening


@pytest.mark.requirement("L-23")
async def test_a_server_that_names_a_modern_version_is_asked_what_it_speaks() -> None:
    server = ModernServer()

    bench = await open_bench(server)

    assert methods(server) == ["initialize", "server/discover"]
    assert bench.session.connection.protocol_version == "2026-07-28"
    assert ids(server) == [1, 2]


@pytest.mark.requirement("L-2")
async def test_a_handshake_that_a_modern_server_accepts_is_completed_and_left() -> None:
    server = ModernServer()
    server.on(
        "initialize",
        lambda request: request.answer({"protocolVersion": "2026-07-28", "capabilities": {}}),
    )

    bench = await open_bench(server)

    assert methods(server) == ["initialize", "notifications/initialized", "server/discover"]
    assert isinstance(bench.session.connection, ModernConnection)


@pytest.mark.requirement("L-21")
async def test_a_configuration_that_says_modern_begins_with_the_question() -> None:
    server = ModernServer()

    await open_bench(server, dialect=MODERN)

    assert methods(server) == ["server/discover"]


async def test_an_old_server_is_not_fallen_back_to_where_the_configuration_says_modern() -> None:
    server = ScriptedServer()
    bench = new_bench(server, dialect=MODERN)

    with pytest.raises(HandshakeError) as caught:
        await bench.reactor.finish(bench.session.open)

    assert methods(server) == ["server/discover"]
    assert isinstance(caught.value.__cause__, PeerError)


@pytest.mark.requirement("L-23")
@pytest.mark.parametrize("code", [-32601, -32602, -32000, -1, 0])
async def test_an_old_server_is_found_whatever_its_error_is(code: int) -> None:
    server = ScriptedServer()
    server.on("server/discover", lambda request: request.refuse(code, "no"))

    bench = await open_bench(server, dialect=Dialect(opening=Opening.MODERN_FIRST))

    assert methods(server) == ["server/discover", "initialize", "notifications/initialized"]
    assert isinstance(bench.session.connection, ClientConnection)
    assert ids(server) == [1, 2]


@pytest.mark.requirement("L-23")
async def test_an_old_server_is_found_by_its_silence_and_told_nothing_of_it() -> None:
    server = ScriptedServer()
    dialect = Dialect(opening=Opening.MODERN_FIRST)
    bench = new_bench(server, dialect=dialect)
    server.on(
        "server/discover",
        lambda _: bench.reactor.soon(bench.reactor.advance, dialect.bounds.discover_seconds_max),
    )

    await bench.reactor.finish(bench.session.open)

    assert methods(server) == ["server/discover", "initialize", "notifications/initialized"]


@pytest.mark.requirement("L-23")
async def test_an_answer_that_is_none_is_an_old_servers() -> None:
    server = ScriptedServer()
    server.on("server/discover", lambda request: request.answer({"tools": []}))

    bench = await open_bench(server, dialect=Dialect(opening=Opening.MODERN_FIRST))

    assert isinstance(bench.session.connection, ClientConnection)


@pytest.mark.requirement("L-22")
async def test_a_refused_version_is_asked_for_once_more_if_it_is_named() -> None:
    server = ModernServer()

    def refuse_first(request: ScriptedRequest) -> None:
        if len(server.received) == 1:
            request.refuse(-32022, "no", {"supported": ["2026-07-28"], "requested": "x"})
        else:
            request.answer(server.discover_result)

    server.on("server/discover", refuse_first)

    await open_bench(server, dialect=MODERN)

    assert methods(server) == ["server/discover"] * 2


@pytest.mark.requirement("L-22")
@pytest.mark.parametrize("opening", Opening)
@pytest.mark.parametrize("supported", [["2025-11-25"], ["2099-01-01"], []])
async def test_a_modern_server_of_no_version_of_ours_is_an_error(
    opening: Opening, supported: list[str]
) -> None:
    server = ModernServer(supported=supported)
    server.on(
        "server/discover",
        lambda request: request.refuse(-32022, "no", {"supported": supported, "requested": "x"}),
    )
    bench = new_bench(server, dialect=Dialect(opening=opening))

    with pytest.raises(UnsupportedVersionError) as caught:
        await bench.reactor.finish(bench.session.open)

    assert caught.value.offered == ", ".join(supported)
    assert methods(server)[-1] == "server/discover"


@pytest.mark.requirement("L-22")
@pytest.mark.parametrize("code", [-32020, -32021])
async def test_no_modern_error_leads_back_to_initialize(code: int) -> None:
    server = ModernServer()
    server.on("server/discover", lambda request: request.refuse(code, "no"))
    bench = new_bench(server, dialect=Dialect(opening=Opening.MODERN_FIRST))

    with pytest.raises(HandshakeError):
        await bench.reactor.finish(bench.session.open)

    assert methods(server) == ["server/discover"]


@pytest.mark.requirement("L-25")
async def test_what_a_server_speaks_is_remembered_by_its_configuration() -> None:
    dialect = Dialect()
    await open_bench(ModernServer(), dialect=dialect)
    again = ModernServer()

    await open_bench(again, dialect=dialect)

    assert dialect.memory.era is Era.MODERN
    assert methods(again) == ["server/discover"]


@pytest.mark.requirement("L-25")
async def test_what_was_remembered_is_dropped_by_a_failure() -> None:
    memory = EraMemory()
    memory.era = Era.MODERN
    server = ModernServer(supported=["2099-01-01"])
    bench = new_bench(server, dialect=Dialect(memory=memory))

    with pytest.raises(UnsupportedVersionError):
        await bench.reactor.finish(bench.session.open)

    assert memory.era is None


@pytest.mark.requirement("L-25")
async def test_a_server_that_is_modern_no_more_is_found_anew() -> None:
    memory = EraMemory()
    memory.era = Era.MODERN
    server = ScriptedServer()

    await open_bench(server, dialect=Dialect(memory=memory))

    assert methods(server)[1] == "initialize"
    assert memory.era is Era.LEGACY


async def test_what_the_guard_says_ends_the_opening() -> None:
    bench = new_bench(ModernServer(), dialect=Dialect(opening=Opening.MODERN_FIRST))
    bench.guard.error = LookupError("no")

    with pytest.raises(LookupError):
        await bench.reactor.finish(bench.session.open)

    assert bench.server.wire.writes == []


# ------------------------------------------------------------------------------------ requests


@pytest.mark.requirement("L-20")
async def test_a_call_says_its_version_and_what_it_declares() -> None:
    bench = await modern_bench()

    bench.sent_call()

    assert said(bench.server)["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert said(bench.server)["io.modelcontextprotocol/clientCapabilities"] == {}


@pytest.mark.requirement("L-28")
async def test_a_call_may_declare_less_than_its_connection() -> None:
    server = ModernServer()
    server.add_tool("wait")
    bench = await open_bench(server, dialect=MODERN, handlers=Handlers(roots=()))

    bench.session.start("tools/call", CALL, guard=bench.guard)
    bench.session.start(
        "tools/call", CALL, guard=bench.guard, declares=ClientCapabilities(sampling=True)
    )
    bench.reactor.run()

    declared = [
        (as_object((as_object(message["params"]) or {})["_meta"]) or {})[
            "io.modelcontextprotocol/clientCapabilities"
        ]
        for message in server.received[-2:]
    ]
    assert declared == [{"roots": {}}, {}]


@pytest.mark.requirement("J-6")
async def test_a_result_without_a_type_is_the_answer() -> None:
    bench = await modern_bench()
    pending = bench.sent_call()

    bench.server.send({"jsonrpc": "2.0", "id": pending.id, "result": {"content": []}})

    assert await bench.reactor.finish(pending.wait) == {"content": []}


@pytest.mark.requirement("J-6")
@pytest.mark.parametrize("kind", ["task", "unheard-of", 1])
async def test_a_result_of_an_unknown_type_fails_its_call_alone(kind: object) -> None:
    bench = await modern_bench()
    pending, other = bench.sent_call(), bench.sent_call()

    bench.server.answer(pending.id, {"resultType": kind, "content": []})
    bench.server.answer(other.id, {"content": []})

    with pytest.raises(RemoteProtocolError) as caught:
        await bench.reactor.finish(pending.wait)
    assert caught.value.delivery is Delivery.ANSWERED
    assert await bench.reactor.finish(other.wait)


@pytest.mark.requirement("C-30")
async def test_a_listing_that_needs_input_breaks_the_protocol() -> None:
    bench = await modern_bench()
    bench.server.hold("tools/list")
    pending = bench.session.start("tools/list", b"{}", guard=bench.guard)
    bench.reactor.run()

    bench.server.answer(pending.id, {"resultType": "input_required", "requestState": "s"})

    with pytest.raises(RemoteProtocolError):
        await bench.reactor.finish(pending.wait)


@pytest.mark.requirement("T-4")
@pytest.mark.parametrize("method", ["ping", "roots/list", "sampling/createMessage"])
async def test_a_request_of_the_server_is_counted_and_never_answered(method: str) -> None:
    bench = await modern_bench()
    before = len(bench.server.wire.writes)

    bench.server.ask(7, method)
    bench.reactor.run()

    assert len(bench.server.wire.writes) == before
    assert bench.session.violations[Violation.REQUEST] == 1


@pytest.mark.requirement("T-5")
async def test_a_call_that_is_given_up_is_cancelled_by_a_notice() -> None:
    bench = await modern_bench()
    pending = bench.sent_call()

    bench.session.give_up(pending)
    bench.reactor.run()

    assert methods(bench.server)[-1] == "notifications/cancelled"
    assert bench.cancel_guard.spent == 1


@pytest.mark.parametrize(
    ("code", "kind"), [(-32020, HeaderMismatchError), (-32021, MissingCapabilityError)]
)
async def test_an_error_of_this_version_is_what_it_is(code: int, kind: type[PeerError]) -> None:
    bench = await modern_bench()
    pending = bench.sent_call()

    bench.server.refuse(pending.id, code, "no", {"requiredCapabilities": {}})

    with pytest.raises(kind):
        await bench.reactor.finish(pending.wait)


@pytest.mark.parametrize("code", [-32020, -32021, -32022])
async def test_an_old_servers_codes_mean_nothing_of_the_sort(code: int) -> None:
    bench = await open_bench()
    pending = bench.sent_call()

    bench.server.refuse(pending.id, code, "no")

    with pytest.raises(PeerError) as caught:
        await bench.reactor.finish(pending.wait)
    assert type(caught.value) is PeerError


async def test_an_old_servers_result_types_mean_nothing() -> None:
    bench = await open_bench()
    pending = bench.sent_call()

    bench.server.answer(pending.id, {"resultType": "unheard-of"})

    assert await bench.reactor.finish(pending.wait)


@pytest.mark.requirement("N-2")
async def test_a_ticket_names_what_its_request_is_about() -> None:
    bench = await modern_bench()

    pending = bench.sent_call()

    assert (pending.name, pending.headers) == ("wait", ())


@pytest.mark.requirement("N-3")
async def test_a_ticket_mirrors_the_arguments_that_go_out() -> None:
    bench = await modern_bench()
    mark = HeaderMark(header="Mcp-Param-Region", path=("region",), type="string")
    bench.session.mirror.learn({"wait": (mark,)})
    params = b'{"arguments":{"region":"eu"},"name":"wait"}'

    pending = bench.session.start("tools/call", params, guard=bench.guard)

    assert pending.headers == (("Mcp-Param-Region", "eu"),)


@pytest.mark.requirement("N-6")
async def test_an_integer_that_no_header_can_carry_is_not_sent() -> None:
    bench = await modern_bench()
    mark = HeaderMark(header="Mcp-Param-N", path=("n",), type="integer")
    bench.session.mirror.learn({"wait": (mark,)})
    params = b'{"arguments":{"n":9007199254740992},"name":"wait"}'

    with pytest.raises(LocalProtocolError):
        bench.session.start("tools/call", params, guard=bench.guard)


# ------------------------------------------------------------------------------------- streams


@pytest.mark.requirement("F-40")
async def test_a_stream_is_acknowledged_and_its_notices_go_where_all_go() -> None:
    bench = await modern_bench()
    told: list[object] = []
    bench.session.bulletin.on_list_changed = told.append
    wanted = SubscriptionFilter(tools_list_changed=True)

    stream = bench.session.listen(wanted, guard=bench.guard)
    bench.reactor.run()
    server = bench.server
    assert isinstance(server, ModernServer)
    server.notice(TOOLS_CHANGED)
    bench.reactor.run()

    assert await bench.reactor.finish(stream.wait_acknowledged) == wanted
    assert len(told) == 1


@pytest.mark.requirement("F-41")
async def test_a_stream_that_the_server_answers_has_ended_well() -> None:
    bench = await modern_bench()
    stream = bench.session.listen(SubscriptionFilter(), guard=bench.guard)
    bench.reactor.run()

    bench.server.answer(stream.pending.id, {})

    await bench.reactor.finish(stream.wait_ended)
    assert len(bench.session.streams) == 0


@pytest.mark.requirement("F-41")
async def test_a_stream_that_the_server_cancels_has_ended_well() -> None:
    bench = await modern_bench()
    stream = bench.session.listen(SubscriptionFilter(), guard=bench.guard)
    bench.reactor.run()

    bench.server.notify("notifications/cancelled", {"requestId": stream.pending.id})

    await bench.reactor.finish(stream.wait_ended)
    assert len(bench.session.streams) == 0


@pytest.mark.requirement("F-41")
async def test_a_server_cancels_no_request_but_a_stream() -> None:
    bench = await modern_bench()
    pending = bench.sent_call()

    bench.server.notify("notifications/cancelled", {"requestId": pending.id})

    assert not pending.settled


async def test_a_stream_that_is_refused_is_never_acknowledged() -> None:
    bench = await modern_bench()
    bench.server.on("subscriptions/listen", lambda request: request.refuse(-32602, "no"))

    stream = bench.session.listen(SubscriptionFilter(), guard=bench.guard)

    with pytest.raises(PeerError):
        await bench.reactor.finish(stream.wait_acknowledged)


async def test_a_stream_has_an_end_of_its_own() -> None:
    bounds = ModernLimits(listen_seconds_max=10.0)
    bench = await modern_bench(dialect=Dialect(opening=Opening.MODERN, bounds=bounds))
    stream = bench.session.listen(SubscriptionFilter(), guard=bench.guard)
    bench.reactor.run()

    bench.reactor.advance(10.0)

    assert stream.pending.settled
    assert methods(bench.server)[-1] == "notifications/cancelled"


async def test_an_old_version_has_no_streams() -> None:
    bench = await open_bench()

    with pytest.raises(LocalProtocolError):
        bench.session.listen(SubscriptionFilter(), guard=RecordingGuard())
