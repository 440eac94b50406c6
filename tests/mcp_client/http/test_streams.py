"""Streams that break, resume, answer for others or never end, over a real socket."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import anyio
import pytest

from mcp_client.protocol.errors import Delivery, RemoteProtocolError
from mcp_client.protocol.http.errors import HttpStatusError, SessionLostError
from mcp_client.protocol.http.limits import HttpTransportLimits
from mcp_client.protocol.jsonrpc import encode
from mcp_client.testing.http_server import HttpCall, HttpReply
from tests.mcp_client.http.harness import (
    Guard,
    RevokedError,
    Script,
    Wire,
    result,
    wired,
)

NOTICE: Mapping[str, object] = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}


def resuming(*, cut: bool) -> tuple[Script, list[HttpCall]]:
    """A server whose stream of a call breaks after an event, and goes on when it is asked for."""
    script = Script()
    calls: list[HttpCall] = []

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        calls.append(call)
        await reply.start_events()
        await reply.event(NOTICE, id="event-1", retry=20)
        await (reply.cut() if cut else reply.end())

    @script.on("GET")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        if "last-event-id" not in call.headers:
            await reply.send(405)
            return
        await reply.start_events()
        await reply.event(result(calls[0]), id="event-2")
        await reply.end()

    return script, calls


def resumptions(wire: Wire) -> list[str]:
    return [
        each.headers["last-event-id"]
        for each in wire.server.of("GET")
        if "last-event-id" in each.headers
    ]


@pytest.mark.requirement("H-9")
@pytest.mark.requirement("H-7")
@pytest.mark.parametrize("cut", [False, True], ids=["ended", "cut"])
async def test_a_stream_that_ends_after_an_event_id_is_resumed_by_get_and_the_call_is_not_resent(
    *, cut: bool
) -> None:
    script, calls = resuming(cut=cut)
    async with wired(script) as wire:
        await wire.initialize()
        wire.send(2, "tools/call")
        await wire.answer_to(2)
        asked = resumptions(wire)

    assert (asked, len(calls)) == (["event-1"], 1)


@pytest.mark.requirement("H-8")
async def test_a_stream_that_ends_without_an_event_id_leaves_the_outcome_unknown() -> None:
    script = Script()

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.start_events()
        await reply.event(NOTICE)
        await reply.end()

    async with wired(script) as wire:
        await wire.initialize()
        error = await wire.send(2, "tools/call").error()
        posts, notices = (
            wire.server.posts("tools/call"),
            wire.server.posts("notifications/cancelled"),
        )

    assert isinstance(error, RemoteProtocolError)
    assert (error.delivery, len(posts), len(notices)) == (Delivery.MAYBE_SENT, 1, 0)


def _a_streamed_answer() -> bytes:
    """A whole response: a head, and a stream with one event in chunks."""
    event = b"data: " + encode({"jsonrpc": "2.0", "id": 2, "result": {}}) + b"\n\n"
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    return head + b"%x\r\n%b\r\n" % (len(event), event) + b"0\r\n\r\n"


ANSWER = _a_streamed_answer()


@pytest.mark.requirement("H-8")
async def test_a_response_cut_at_any_byte_is_the_answer_or_an_unknown_outcome() -> None:
    script = Script()
    at = 0

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.raw(ANSWER[:at])
        await reply.cut()

    ends: list[tuple[bool, Delivery]] = []
    async with wired(script) as wire:
        await wire.initialize()
        for length in range(len(ANSWER)):
            at = length
            frames = len(wire.sink.frames)
            ticket = wire.send(2, "tools/call")
            with anyio.fail_after(30):
                while not ticket.settled:
                    await anyio.lowlevel.checkpoint()
            ends.append((len(wire.sink.frames) > frames, ticket.delivery))

    whole = ANSWER.index(b"\n\n") + 2
    assert {end for end in ends[:whole] if end != (False, Delivery.MAYBE_SENT)} == set()
    assert ends[whole:] == [(True, Delivery.ANSWERED)] * (len(ANSWER) - whole)


@pytest.mark.requirement("H-10")
async def test_the_time_that_a_server_names_is_waited_out_before_the_stream_is_asked_for() -> None:
    script, calls = resuming(cut=False)
    waits: list[float] = []
    async with wired(script) as wire:
        await wire.initialize()
        with anyio.fail_after(30):
            await wire.server.until(lambda: wire.server.of("GET"))
        plain = wire.reactor.at

        def at(when: float, fn: Callable[[], object]) -> object:
            waits.append(when - wire.reactor.now())
            return plain(when, fn)

        object.__setattr__(wire.reactor, "at", at)
        wire.send(2, "tools/call")
        await wire.answer_to(2)

    assert min(abs(wait - 0.020) for wait in waits) < 0.005
    assert len(calls) == 1


@pytest.mark.requirement("H-11")
async def test_a_stream_that_only_primes_is_asked_for_again_under_each_new_id() -> None:
    script = Script()
    calls: list[HttpCall] = []

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        calls.append(call)
        await reply.start_events()
        await reply.event(id="0", retry=10)
        await reply.end()

    @script.on("GET")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        last = call.headers.get("last-event-id")
        if last is None:
            await reply.send(405)
            return
        await reply.start_events()
        if int(last) < 12:  # more than the attempts in a row that a silent server gets
            await reply.event(id=str(int(last) + 1))
        else:
            await reply.event(result(calls[0]))
        await reply.end()

    async with wired(script) as wire:
        await wire.initialize()
        wire.send(2, "tools/call")
        await wire.answer_to(2)
        asked, frames = resumptions(wire), wire.sink.frames

    assert (asked, len(frames)) == ([str(each) for each in range(13)], 2)


@pytest.mark.parametrize("ending", ["clean", "refused", "cut"])
async def test_a_stream_that_cannot_be_resumed_ends_after_so_many_attempts(ending: str) -> None:
    script = Script()

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.start_events()
        await reply.event(id="same", retry=0)
        await reply.end()

    @script.on("GET")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        if "last-event-id" not in call.headers or ending == "refused":
            await reply.send(405)
            return
        await reply.start_events()
        await reply.event(id="same")
        await (reply.end() if ending == "clean" else reply.cut())

    limits = HttpTransportLimits(reconnects_max=3, retry_seconds_min=0.001, retry_seconds=0.001)
    async with wired(script, http_limits=limits) as wire:
        await wire.initialize()
        error = await wire.send(2, "tools/call").error()
        asked = resumptions(wire)

    refused = ending == "refused"
    assert isinstance(error, HttpStatusError if refused else RemoteProtocolError)
    # the first one is told the id; it brought it, so the count begins there
    assert (error.delivery, len(asked)) == (Delivery.MAYBE_SENT, 1 if refused else 3)


@pytest.mark.requirement("I15")
async def test_a_resumption_is_a_send_of_its_own_under_the_guard_of_the_request() -> None:
    script, calls = resuming(cut=False)
    guard = Guard()
    async with wired(script) as wire:
        await wire.initialize()
        wire.sink.on_frame = lambda frame: setattr(guard, "revoked", b"message" in frame)
        ticket = wire.send(2, "tools/call", guard=guard)
        error = await ticket.error()
        asked = resumptions(wire)

    # the call itself went out, and nobody knows what became of it
    assert isinstance(error, RemoteProtocolError)
    assert (type(error.__cause__), error.delivery) == (RevokedError, Delivery.MAYBE_SENT)
    assert (asked, len(calls), ticket.end) == ([], 1, "failed")


class OneSend(Guard):
    """Leave to send once, which can be had anew for the rest of an answer."""

    def __init__(self) -> None:
        super().__init__()
        self.others: list[Guard] = []

    def check(self) -> None:
        super().check()
        if self.spent:
            raise RevokedError

    def resumed(self) -> Guard:
        self.others.append(OneSend())
        return self.others[-1]


@pytest.mark.requirement("I15")
async def test_a_guard_that_is_good_for_one_send_gives_leave_anew_for_each_resumption() -> None:
    script, calls = resuming(cut=False)
    asked: list[HttpCall] = []
    serve = script.special["GET"]

    @script.on("GET")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        if "last-event-id" in call.headers and not asked:
            asked.append(call)
            await reply.start_events()
            await reply.event(NOTICE, id="event-1b")
            await reply.end()
        else:
            await serve(call, reply)

    guard = OneSend()
    async with wired(script) as wire:
        await wire.initialize()
        wire.send(2, "tools/call", guard=guard)
        await wire.answer_to(2)

    assert ([each.spent for each in guard.others], guard.spent, len(calls)) == ([1, 1], 1, 1)


@pytest.mark.requirement("H-5")
async def test_a_session_that_is_lost_while_a_stream_resumes_leaves_the_outcome_unknown() -> None:
    script, calls = resuming(cut=False)

    @script.on("GET")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.send(404 if "last-event-id" in call.headers else 405)

    async with wired(script) as wire:
        await wire.initialize()
        error = await wire.send(2, "tools/call").error()

    assert isinstance(error, SessionLostError)
    assert (error.delivery, len(calls)) == (Delivery.MAYBE_SENT, 1)


async def test_answers_are_told_with_the_stream_in_which_they_came() -> None:
    script = Script()

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.start_events()
        await reply.event({"jsonrpc": "2.0", "id": 7, "result": {}})
        await reply.event(result(call))
        await reply.event(result(call))
        await reply.end()

    async with wired(script) as wire:
        await wire.initialize()
        wire.send(2, "tools/call")
        await wire.answer_to(2)
        with anyio.fail_after(30):
            await wire.sink.until(lambda: len(wire.sink.frames) == 4)
        within = {stream for _, stream in wire.sink.frames[1:]}

    assert within == {2}


async def test_many_requests_at_once_each_get_their_own_answer() -> None:
    script = Script()
    gate = anyio.Event()

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        if len([each for each in script_calls() if each.rpc_method == "tools/call"]) == 256:
            gate.set()
        await gate.wait()
        if int(str(call.message["id"])) % 2:
            await reply.json(result(call))
        else:
            await reply.start_events()
            await reply.event(result(call))
            await reply.end()

    calls: list[HttpCall] = []

    def script_calls() -> list[HttpCall]:
        return calls

    async with wired(script) as wire:
        calls = wire.server.calls
        await wire.initialize()
        tickets = [wire.send(number, "tools/call") for number in range(2, 258)]
        for ticket in tickets:
            assert ticket.id is not None
            await wire.answer_to(ticket.id)

    assert {ticket.delivery for ticket in tickets} == {Delivery.ANSWERED}


async def test_a_stream_that_stays_open_after_its_answer_is_closed_soon() -> None:
    script = Script()
    gone = anyio.Event()

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.start_events()
        await reply.event(result(call))
        await reply.until_gone()
        gone.set()

    async with wired(script) as wire:
        await wire.initialize()
        wire.send(2, "tools/call")
        await wire.answer_to(2)
        with anyio.fail_after(30):
            await gone.wait()


@pytest.mark.requirement("H-8")
@pytest.mark.requirement("N-8")
@pytest.mark.parametrize(("version", "tells"), [("2025-11-25", False), ("2026-07-28", True)])
async def test_giving_up_closes_the_stream_which_tells_a_server_only_since_2026(
    version: str, *, tells: bool
) -> None:
    script = Script()
    came, gone = anyio.Event(), anyio.Event()

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        came.set()
        await reply.until_gone()
        gone.set()

    async with wired(script) as wire:
        await wire.initialize(version)
        ticket = wire.send(2, "tools/call")
        with anyio.fail_after(30):
            await came.wait()
            told = wire.transport.abandon(ticket)
            await gone.wait()

    assert told is tells


@pytest.mark.requirement("N-10")
@pytest.mark.requirement("N-2")
async def test_since_2026_there_are_only_posts_and_no_session() -> None:
    async with wired(Script()) as wire:
        wire.send(1, "server/discover")
        await wire.answer_to(1)
        wire.transport.negotiated("2026-07-28")
        wire.send(
            2,
            "tools/call",
            name="caf\u00e9",
            headers=[("Mcp-Param-Region", "eu")],
        )
        await wire.answer_to(2)

    last = wire.server.calls[-1].headers
    assert {each.method for each in wire.server.calls} == {"POST"}
    assert "mcp-session-id" not in last
    named = {name: value for name, value in last.items() if name.startswith("mcp-")}
    assert named == {
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "=?base64?Y2Fmw6k=?=",
        "mcp-param-region": "eu",
    }


@pytest.mark.requirement("N-8")
async def test_since_2026_a_broken_stream_is_not_resumed() -> None:
    script, calls = resuming(cut=True)
    async with wired(script) as wire:
        wire.transport.negotiated("2026-07-28")
        error = await wire.send(2, "tools/call").error()

    assert isinstance(error, RemoteProtocolError)
    assert (len(calls), wire.server.of("GET"), error.delivery) == (1, [], Delivery.MAYBE_SENT)


async def test_the_stream_of_an_answered_request_ends_soon_whatever_else_comes_in_it() -> None:
    script = Script()
    gone = anyio.Event()

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.start_events()
        await reply.event(result(call))
        try:
            while True:
                await reply.chunk(b": still here\n\n")
        finally:  # what cannot be sent any more ends this
            gone.set()

    async with wired(script) as wire:
        await wire.initialize()
        wire.send(2, "tools/call")
        with anyio.fail_after(30):
            await gone.wait()
