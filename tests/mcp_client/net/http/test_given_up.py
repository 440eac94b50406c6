"""Requests for which nobody waits any more before they began: nothing of them leaves, by any road."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from mcp_client import UNGUARDED, HttpSpec, connect
from mcp_client.net.http.limits import HttpLimits
from mcp_client.protocol.errors import CallTimeoutError, Delivery
from mcp_client.testing import RecordingGuard
from mcp_client.testing.http_server import HttpCall, HttpReply, serve_http
from tests.mcp_client.http.harness import Mcp
from tests.mcp_client.net.http.conftest import Certificates
from tests.mcp_client.net.http.harness import Call, RefusalError, engine_kit
from tests.mcp_client.net.http.servers import Peer, answer, echo, serving
from tests.mcp_client.net.http.test_connection import KINDS, a_rig, block
from tests.mcp_client.net.http.test_gate import MARK, ROADS, STEPS, road, stepped


async def over(call: Call) -> None:
    """Wait until an exchange is over without its sink being told."""
    with anyio.fail_after(30):
        while not call.exchange.over:
            await anyio.lowlevel.checkpoint()


@pytest.mark.requirement("I1")
@pytest.mark.parametrize("kept_alive", [False, True], ids=["new", "kept alive"])
@pytest.mark.parametrize("name", ROADS)
async def test_no_request_begins_after_it_was_given_up_before_any_step(
    name: str, kept_alive: bool, certificates: Certificates, tmp_path: Path
) -> None:
    outcomes: set[bool] = set()
    for step in range(STEPS):
        with road(name, echo, certificates, tmp_path) as way:
            async with stepped(way, certificates) as (kit, reactor):
                if kept_alive:
                    await kit.ask(way.target, b"first")
                call = kit.call(way.target, MARK)
                begun: list[bool] = []
                steps = 0

                def before_step(
                    call: Call = call, begun: list[bool] = begun, step: int = step
                ) -> None:
                    nonlocal steps
                    if steps == step and not call.over.is_set():
                        begun.append(call.ticket.bytes_sent > 0)
                        call.ticket.settled = True
                    steps += 1

                reactor.before_step = before_step
                await over(call)
                reactor.before_step = lambda: None
                last = await kit.ask(way.target, b"last")
            way.server.wait_for_all()
            came = any(MARK in peer.plain for peer in way.server.peers)
        assert bytes(last.data) == b"last", f"step {step}"
        if begun == [False]:
            assert not came, f"step {step}"
            assert call.events == [], f"step {step}"
            assert call.ticket.delivery is Delivery.NOT_SENT
        else:
            assert call.end == "ended", f"step {step}"
        outcomes.add(begun != [False])
        if not begun:
            break
    assert outcomes == {False, True}


@pytest.mark.requirement("I1")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_request_that_is_given_up_while_it_waits_for_room_stays_unsent(
    kind: str, certificates: Certificates
) -> None:
    async with a_rig(kind, certificates) as rig:
        await rig.serve_one()
        rig.wire.before_send = block
        guard = RecordingGuard()
        call = rig.exchange(guard=guard)
        rig.connection.start(call.exchange)
        call.ticket.settled = True
        asked = guard.checks
        rig.wire.before_send = lambda: None
        await over(call)
        assert rig.received() == b""
        # nobody waits for it: neither is leave asked for, nor a token for its head
        assert guard.checks == asked
        # what was sealed and never left would be missing in front of the next request
        assert rig.owner.events == ["released" if kind == "plain" else "gone"]
    assert (call.events, call.ticket.delivery) == ([], Delivery.NOT_SENT)


@pytest.mark.requirement("I1")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_request_that_is_given_up_within_its_last_check_stays_unsent(
    kind: str, certificates: Certificates
) -> None:
    class GivingUp(RecordingGuard):
        def check(self) -> None:
            call.ticket.settled = True

    async with a_rig(kind, certificates) as rig:
        call = rig.exchange(guard=GivingUp())
        rig.connection.start(call.exchange)
        assert rig.received() == b""
    assert (call.events, call.ticket.delivery) == ([], Delivery.NOT_SENT)


@pytest.mark.requirement("I1")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_request_that_is_aborted_by_what_refuses_it_is_over_once(
    kind: str, certificates: Certificates
) -> None:
    class Aborting(RecordingGuard):
        def check(self) -> None:
            call.exchange.abort()
            raise RefusalError

    async with a_rig(kind, certificates) as rig:
        call = rig.exchange(guard=Aborting())
        rig.connection.start(call.exchange)
        assert rig.received() == b""
        assert len(rig.owner.events) <= 1
    assert (call.events, call.ticket.delivery) == ([], Delivery.NOT_SENT)


async def test_who_gives_up_while_an_answer_comes_and_fails_hears_no_more(
    certificates: Certificates,
) -> None:
    async with a_rig("plain", certificates) as rig:
        call = rig.exchange()

        def give_up(event: str) -> None:
            if event == "started":
                call.exchange.abort()
                raise LookupError

        call.on_event = give_up
        rig.connection.start(call.exchange)
        rig.answer()
        with anyio.fail_after(30):
            while not call.exchange.over:
                await anyio.lowlevel.checkpoint()
    assert call.events == ["first_byte_out", "written", "started"]


@pytest.mark.parametrize("how", ["settled", "aborted"])
async def test_one_that_gives_up_in_the_line_holds_up_nobody_behind_it(how: str) -> None:
    go = threading.Event()

    def slow(peer: Peer) -> None:
        peer.read_request()
        go.wait(5)
        peer.send(answer())
        echo(peer)

    with serving(slow) as server:
        limits = HttpLimits(connections_per_origin_max=1)
        async with engine_kit(limits=limits) as kit:
            url = f"http://127.0.0.1:{server.port}/"

            def give_up(event: str) -> None:
                # it has been called up by now, and does not take the place
                if event == "ended":
                    if how == "settled":
                        second.ticket.settled = True
                    else:
                        second.exchange.abort()

            first = kit.call(url, b"first", on_event=give_up)
            second = kit.call(url, b"second")
            third = kit.call(url, b"third")
            await first.until("written")
            go.set()
            assert bytes((await third.finish()).data) == b"third"
    assert second.events == []


@pytest.mark.requirement("I1")
@pytest.mark.parametrize("how", ["timeout", "cancel"])
async def test_a_call_that_was_told_as_unsent_while_it_connected_is_not_sent_later(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Mcp()
    held, asked, go = anyio.Event(), threading.Event(), threading.Event()
    look_up = socket.getaddrinfo

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        held.set()
        await reply.until_gone()

    def slowly(*args: object, **options: object) -> object:
        asked.set()
        go.wait(5)
        return look_up(*args, **options)  # pyright: ignore[reportArgumentType]

    async with serve_http(script) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        async with connect(HttpSpec(name="srv", url=url), guard=UNGUARDED) as client:
            session = client.session
            params = b'{"name":"add","arguments":{}}'
            session.start("tools/call", params, guard=UNGUARDED)
            with anyio.fail_after(30):
                await held.wait()
            monkeypatch.setattr(socket, "getaddrinfo", slowly)
            late = session.start(
                "tools/call",
                params,
                guard=UNGUARDED,
                seconds=0.05 if how == "timeout" else None,
            )
            if how == "timeout":
                with pytest.raises(CallTimeoutError):
                    await late.wait()
            else:
                async with anyio.create_task_group() as group:
                    group.start_soon(late.wait)
                    await anyio.to_thread.run_sync(asked.wait, 5)
                    group.cancel_scope.cancel()
            assert late.delivery is Delivery.NOT_SENT
            go.set()
            await client.list_tools()  # over the new connection, or after it was given up
            assert len(server.posts("tools/call")) == 1
