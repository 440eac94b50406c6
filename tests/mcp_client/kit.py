"""A session over a scripted server on a loop turned by hand, ready to use."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_client.client import Host
from mcp_client.ports import NO_HANDLERS, Handlers, SendGuard
from mcp_client.protocol.dialect import Dialect
from mcp_client.protocol.limits import ClientLimits
from mcp_client.session import ClientSession, PendingRequest
from mcp_client.testing import EventRecorder, ManualReactor, RecordingGuard, ScriptedServer
from mcp_client.transports.stdio import Supervisor

CALL = b'{"arguments":{},"name":"wait"}'


class RefusalError(Exception):
    """What a guard of these tests raises."""


@dataclass(kw_only=True)
class Bench:
    reactor: ManualReactor
    server: ScriptedServer
    session: ClientSession
    guard: RecordingGuard
    cancel_guard: RecordingGuard
    observer: EventRecorder

    def call(
        self, *, guard: SendGuard | None = None, seconds: float | None = None
    ) -> PendingRequest:
        """Queue a call of the tool that never answers by itself."""
        return self.session.start(
            "tools/call", CALL, guard=guard or RecordingGuard(), seconds=seconds
        )

    def sent_call(self, *, seconds: float | None = None) -> PendingRequest:
        """Make such a call and let its frame leave."""
        pending = self.call(seconds=seconds)
        self.reactor.run()
        return pending


def new_bench(
    server: ScriptedServer | None = None,
    *,
    limits: ClientLimits | None = None,
    dialect: Dialect | None = None,
    handlers: Handlers = NO_HANDLERS,
) -> Bench:
    """Return a session that was not opened."""
    reactor = ManualReactor()
    if server is None:
        server = ScriptedServer()
        server.add_tool("wait")
    limits = limits or ClientLimits()
    observer = EventRecorder()
    guard, cancel_guard = RecordingGuard(), RecordingGuard()
    transport = server.transport(
        Host(reactor, Supervisor(reactor)), limits=limits, observer=observer
    )
    session = ClientSession(
        transport,
        reactor,
        guard=guard,
        cancel_guard=cancel_guard,
        observer=observer,
        limits=limits,
        server="scripted",
        dialect=dialect,
        handlers=handlers,
    )
    return Bench(
        reactor=reactor,
        server=server,
        session=session,
        guard=guard,
        cancel_guard=cancel_guard,
        observer=observer,
    )


async def open_bench(
    server: ScriptedServer | None = None,
    *,
    limits: ClientLimits | None = None,
    dialect: Dialect | None = None,
    handlers: Handlers = NO_HANDLERS,
) -> Bench:
    """Return a session after its handshake, with the records of the handshake wiped."""
    bench = new_bench(server, limits=limits, dialect=dialect, handlers=handlers)
    await bench.reactor.finish(bench.session.open)
    bench.observer.events.clear()
    return bench
