"""One frame over each real transport, with a cause before one step of the loop's; what the server saw."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.lowlevel
import trustme

from mcp_client.net.http.tls import TlsSettings
from mcp_client.net.reactor import Reactor
from mcp_client.testing.http_server import HttpCall, HttpReply
from mcp_client.transports.http_sse import HttpSseTransport
from mcp_client.transports.streamable_http import StreamableHttpTransport
from orchestrator.core.errors import AuthorityError, DenyReason
from tests.matrix.causes import Cause, Leave
from tests.mcp_client.http.harness import Script, WireTo, result, sse_wired, wired
from tests.mcp_client.http.test_http_sse import SseServer
from tests.mcp_client.net.http.conftest import Certificates
from tests.mcp_client.net.http.servers import echo
from tests.mcp_client.net.http.test_gate import MARK, Road, request_came, road, stepped
from tests.mcp_client.stdio.harness import SteppedReactor
from tests.mcp_client.stdio.test_gate import a_bench

__all__ = ["RIDES", "Outcome", "Ride", "certificates_in"]

NEVER = 10_000
"""A step that does not come: nothing happens, and the frame arrives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One frame: whether it had begun by then, whether any of it came, and why it was refused."""

    flipped: bool
    begun: bool
    came: bool
    reason: DenyReason | None


@dataclass
class _Flip:
    """Does a cause before one step, and knows whether the frame had begun by then."""

    cause: Cause
    step: int
    leave: Leave = field(default_factory=Leave)
    flipped: bool = False
    begun: bool = False
    steps: int = 0

    def __post_init__(self) -> None:
        self.permit = self.leave.permit(deadline=self.cause.deadline)

    def before_step(self) -> None:
        if self.steps == self.step:
            self.flipped, self.begun = True, self.permit.spent
            self.cause.act(self.leave)
        self.steps += 1

    def outcome(self, *, came: bool, error: BaseException | None) -> Outcome:
        reason = error.reason if isinstance(error, AuthorityError) else None
        begun = self.begun if self.flipped else True
        return Outcome(flipped=self.flipped, begun=begun, came=came, reason=reason)


AnyWire = WireTo[StreamableHttpTransport] | WireTo[HttpSseTransport]
Ride = Callable[[Cause, int, Path], "AsyncGenerator[Outcome]"]


def certificates_in(folder: Path) -> Certificates:
    """Make an authority whose certificates a client of these tests trusts."""
    authority = trustme.CA()
    file = folder / "authority.pem"
    authority.cert_pem.write_to_path(str(file))
    return Certificates(TlsSettings(authorities_file=str(file)), authority)


async def over_stdio(cause: Cause, steps: int, folder: Path) -> AsyncGenerator[Outcome]:
    """A pipe to a process that counts bytes; all steps over one connection."""
    async with a_bench(folder) as bench:
        for step in range(steps):
            flip = _Flip(cause, step)
            ticket = bench.connection.send(b"t" * 10, flip.permit)
            bench.reactor.before_step = flip.before_step
            bench.connection.send(b"last")
            lines = [await bench.line()]
            if lines[-1] != (4, b"last"):
                lines.append(await bench.line())
            bench.reactor.before_step = lambda: None
            refused = ticket.end == "refused"
            error = _refusal_of(flip) if refused else None
            yield flip.outcome(came=(10, b"tttt") in lines, error=error)


def _refusal_of(flip: _Flip) -> AuthorityError | None:
    """What the permit says: a ticket of the harness keeps that it was refused, not why."""
    try:
        flip.permit.check()
    except AuthorityError as error:
        return error
    return None


def over_engine(name: str) -> Ride:
    """An HTTP request over sockets or TLS, each step over a connection of its own."""

    async def ride(cause: Cause, steps: int, folder: Path) -> AsyncGenerator[Outcome]:
        certificates = certificates_in(folder)
        for step in range(steps):
            flip = _Flip(cause, step)
            with road(name, echo, certificates, folder) as way:
                async with stepped(way, certificates) as (kit, reactor):
                    call = kit.call(way.target, MARK, guard=flip.permit)
                    reactor.before_step = flip.before_step
                    await call.finish()
                    reactor.before_step = lambda: None
                way.server.wait_for_all()
                came = _came(way)
            yield flip.outcome(came=came, error=call.error)

    return ride


def _came(way: Road) -> bool:
    return request_came(way, len(way.server.peers), 0)


async def over_streamable_http(cause: Cause, steps: int, folder: Path) -> AsyncGenerator[Outcome]:
    """A message of Streamable HTTP; its handshake is over before."""
    script = Script()

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.json(result(call))

    for step in range(steps):
        reactors: list[SteppedReactor] = []
        async with wired(script, wrap=_wrapping(reactors)) as wire:
            await wire.initialize()
            yield await _message(wire, reactors[0], _Flip(cause, step))


async def over_http_sse(cause: Cause, steps: int, folder: Path) -> AsyncGenerator[Outcome]:
    """A message of HTTP+SSE, the transport of 2024-11-05; its stream is open before."""
    for step in range(steps):
        reactors: list[SteppedReactor] = []
        async with sse_wired(SseServer(), wrap=_wrapping(reactors)) as wire:
            wire.send(1, "initialize")
            await wire.sink.frame(0)
            wire.transport.negotiated("2024-11-05")
            yield await _message(wire, reactors[0], _Flip(cause, step))


async def _message(wire: AnyWire, reactor: SteppedReactor, flip: _Flip) -> Outcome:
    ticket = wire.send(2, "tools/call", guard=flip.permit)
    reactor.before_step = flip.before_step
    with anyio.fail_after(30):
        while not (ticket.settled or ticket.ended.is_set() or wire.server.posts("tools/call")):
            await anyio.lowlevel.checkpoint()
    reactor.before_step = lambda: None
    for _ in range(5):  # whatever was about to leave has left
        await anyio.wait_all_tasks_blocked()
    came = bool(wire.server.posts("tools/call"))
    return flip.outcome(came=came, error=None if came else _refusal_of(flip))


def _wrapping(reactors: list[SteppedReactor]) -> Callable[[Reactor], Reactor]:
    def wrap(reactor: Reactor) -> Reactor:
        reactors.append(SteppedReactor(reactor))
        return reactors[-1]

    return wrap


RIDES: dict[str, Ride] = {
    "stdio": over_stdio,
    "http": over_engine("plain"),
    "unix socket": over_engine("unix"),
    "tls 1.3": over_engine("tls 1.3"),
    "proxied tls 1.3": over_engine("proxy, tls 1.3"),
    "streamable http": over_streamable_http,
    "http+sse": over_http_sse,
}
