"""Invariants I1 and I15 over HTTP: leave is taken back before every step of everything that is sent."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from mcp_client.net.reactor import Reactor
from mcp_client.testing.http_server import HttpCall, HttpReply
from tests.mcp_client.http.harness import Guard, Script, Wire, result, wired
from tests.mcp_client.stdio.harness import SteppedReactor

NOTICE = {"jsonrpc": "2.0", "method": "notifications/message"}


def a_server() -> Script:
    """A server that makes a client do everything that sends: streams that end, a session lost."""
    script = Script()
    calls: list[HttpCall] = []

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        calls.append(call)
        await reply.start_events()
        await reply.event(NOTICE, id="of-the-call", retry=10)
        await reply.end()

    @script.on("GET")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        last = call.headers.get("last-event-id", "")
        await reply.start_events()
        if last == "of-the-call":
            await reply.event(result(calls[-1]))
            await reply.end()
        elif last == "own-2":
            await reply.until_gone()
        else:
            await reply.event(NOTICE, id="own-2" if last else "own-1", retry=10)
            await reply.end()

    @script.on("resources/read")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.send(404)

    return script


async def everything(wire: Wire) -> None:
    """A handshake, a resumed call, the server's own stream twice, a lost session, a new one."""
    await wire.initialize()
    call = wire.send(2, "tools/call")
    while not call.settled:
        await anyio.lowlevel.checkpoint()
    await wire.server.until(lambda: len(wire.server.of("GET")) == 4)
    await wire.send(3, "resources/read").error()
    wire.send(4, "initialize")
    await wire.answer_to(4)


async def run(revoke_before: int) -> tuple[int, Guard, Wire]:
    """Do everything under one guard whose leave ends before one step; return what was out by then."""
    reactors: list[SteppedReactor] = []

    def wrap(reactor: Reactor) -> Reactor:
        reactors.append(SteppedReactor(reactor))
        return reactors[0]

    out: list[int] = []
    async with wired(a_server(), wrap=wrap) as wire:
        guard = wire.session_guard
        steps = 0

        def before_step() -> None:
            nonlocal steps
            if steps == revoke_before:
                out.append(guard.spent)
                guard.revoked = True
                scope.cancel()
            steps += 1

        reactors[0].before_step = before_step
        with anyio.fail_after(30), anyio.CancelScope() as scope:
            await everything(wire)
        for _ in range(20):  # whatever was about to leave has left
            await anyio.wait_all_tasks_blocked()
    return (out[0] if out else guard.spent), guard, wire


@pytest.mark.requirement("I1")
@pytest.mark.requirement("I15")
async def test_nothing_leaves_after_its_leave_was_taken_back_before_any_step() -> None:
    begun: set[int] = set()
    step = 0
    while True:
        out, guard, wire = await run(step)
        assert guard.spent == out, f"step {step}: something began after the leave was gone"
        assert len(wire.server.calls) <= out, f"step {step}: something left without its leave"
        begun.add(out)
        if not guard.revoked:
            break
        step += 1

    methods = [each.method for each in wire.server.calls]
    assert (guard.spent, methods.count("GET"), methods[-1]) == (len(methods), 4, "DELETE")
    # the injection comes between any two sends, but for those that one step makes
    assert {0, 1, 2} <= begun
    assert len(begun) > len(methods) // 2


@pytest.mark.requirement("I1")
@pytest.mark.parametrize("kept_alive", [False, True], ids=["new", "kept alive"])
async def test_a_request_is_refused_or_whole_wherever_its_own_leave_ends(
    *, kept_alive: bool
) -> None:
    ends: set[tuple[str, int]] = set()
    for revoke_before in range(12):
        reactors: list[SteppedReactor] = []

        def wrap(reactor: Reactor, reactors: list[SteppedReactor] = reactors) -> Reactor:
            reactors.append(SteppedReactor(reactor))
            return reactors[0]

        async with wired(Script(session_id=""), wrap=wrap) as wire:
            if kept_alive:
                wire.send(1, "ping")
                await wire.answer_to(1)
            guard = Guard()
            reactors[0].before_step = revoking(guard, revoke_before)
            ticket = wire.send(2, "tools/call", guard=guard)
            with anyio.fail_after(30):
                while not ticket.settled:
                    await anyio.lowlevel.checkpoint()
            arrived = len(wire.server.posts("tools/call"))
            assert arrived == guard.spent
            ends.add((ticket.end, arrived))

    assert ends == {("refused", 0), ("written", 1)}


def revoking(guard: Guard, at: int) -> Callable[[], None]:
    steps = 0

    def before_step() -> None:
        nonlocal steps
        if steps == at:
            guard.revoked = True
        steps += 1

    return before_step
