"""How one session begins: the frames of the first questions, whichever they are; it judges no answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from mcp_client.ports import SendGuard, Transport
from mcp_client.protocol.connection.frames import OutgoingRequest
from mcp_client.protocol.connection.legacy import ClientConnection
from mcp_client.protocol.connection.modern import ModernConnection
from mcp_client.protocol.declaration import ClientCapabilities
from mcp_client.protocol.dialect import Dialect
from mcp_client.protocol.eras import Era
from mcp_client.protocol.errors import Delivery, HandshakeError
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.modern.metadata import DiscoverResult, read_discover
from mcp_client.protocol.versions import MODERN_VERSION
from mcp_client.session.opening import find_era
from mcp_client.session.pending import PendingRequest

__all__ = ["Handshake", "HandshakeOwner"]


class HandshakeOwner(Protocol):
    """What a handshake needs of its session."""

    connection: ClientConnection | ModernConnection

    @property
    def limits(self) -> ClientLimits:
        """The bounds of the connection."""
        ...

    @property
    def server(self) -> str:
        """The host's label of the server."""
        ...

    @property
    def lost(self) -> Exception | None:
        """Why the connection is over; None while it is not."""
        ...

    def dispatch(
        self, request: OutgoingRequest, method: str, *, guard: SendGuard, seconds: float
    ) -> PendingRequest:
        """Queue a request."""
        ...

    def announce(self, frame: bytes, over: Callable[[Exception | None], object]) -> None:
        """Queue `notifications/initialized`; `over` is called once it can leave no more."""
        ...

    def connection_lost(self, error: Exception) -> None:
        """End everything."""
        ...


class Handshake:
    """The beginning of one session, and its beginning anew. An `Asker`.

    Attributes:
        died_of_probe: the server ended at the question what it speaks.

    Args:
        owner: the session.
        transport: its connection.
        guard: leave for the questions.
        declares: what the server may ask of the client.
        dialect: which versions and extensions are spoken.
    """

    def __init__(
        self,
        owner: HandshakeOwner,
        transport: Transport,
        *,
        guard: SendGuard,
        declares: ClientCapabilities,
        dialect: Dialect,
    ) -> None:
        self._owner = owner
        self._transport = transport
        self._guard = guard
        self._declares = declares
        self._dialect = dialect
        self._pending: PendingRequest | None = None
        self.died_of_probe = False

    @property
    def delivery(self) -> Delivery:
        """What the server may have seen of the last question."""
        return Delivery.NOT_SENT if self._pending is None else self._pending.delivery

    @property
    def server(self) -> str:
        """The host's label of the server."""
        return self._owner.server

    @property
    def lost(self) -> Exception | None:
        """Why the connection is over; None while it is not."""
        return self._owner.lost

    async def open(self) -> None:
        """Ask until it is settled what both sides speak."""
        await find_era(self, self._dialect.opening, self._dialect.memory)

    async def begin_anew(self) -> None:
        """Shake hands once more, with a server that has forgotten the session."""
        try:
            await self.initialize()
        except HandshakeError as error:
            self._owner.connection_lost(error)
            raise

    # --------------------------------------------------------------------------------- Asker

    async def initialize(self) -> None:
        """Complete a handshake."""
        connection = self._owner.connection
        if not isinstance(connection, ClientConnection):
            # the server did not know another question: nothing of it is left but its id
            connection = self._owner.connection = self.new_connection(connection.last_id)
        seconds = self._owner.limits.initialize_seconds_max
        request = connection.frame_initialize(self._transport.versions)
        await self._ask(request, "initialize", seconds)

    async def complete_modern(self) -> None:
        """Say that a handshake is complete whose version has none."""
        connection = self._owner.connection
        if isinstance(connection, ClientConnection):
            self._transport.negotiated(MODERN_VERSION)
            # whatever becomes of it, the next question does not depend on it
            self._owner.announce(connection.frame_initialized(), lambda _: None)

    async def discover(self, version: str, *, is_probe: bool) -> DiscoverResult:
        """Ask what the server speaks, in `version`."""
        owner = self._owner
        connection = owner.connection
        if isinstance(connection, ClientConnection):
            connection = owner.connection = ModernConnection(
                owner.limits,
                self._dialect.bounds,
                server=owner.server,
                last_id=connection.last_id,
                declares=self._declares,
                offers=self._dialect.offers,
            )
        self._transport.negotiated(version)
        bounds, limits = self._dialect.bounds, owner.limits
        seconds = bounds.discover_seconds_max if is_probe else limits.initialize_seconds_max
        result = await self._ask(connection.frame_discover(version), "server/discover", seconds)
        return read_discover(result, limits, bounds, server=owner.server)

    def take_for_old(self) -> None:
        """Take note that the server did not survive a probe: the next one begins otherwise."""
        self.died_of_probe = True
        self._dialect.memory.era = Era.LEGACY

    def accept(self, found: DiscoverResult, version: str) -> None:
        """Go on in `version`."""
        connection = self._owner.connection
        if isinstance(connection, ModernConnection):
            self._transport.negotiated(version)
            connection.accept(found, version)

    def initialized(self, pending: PendingRequest, result: object) -> None:
        """The server accepted the handshake. For the session."""
        connection = self._owner.connection

        def over(error: Exception | None) -> None:
            if error is not None:
                pending.fail(error)
            elif not pending.settled:
                pending.succeed(result)

        # nobody uses the connection before the server can know that it is ready
        if isinstance(connection, ClientConnection):
            self._transport.negotiated(connection.protocol_version)
            self._owner.announce(connection.frame_initialized(), over)

    def new_connection(self, last_id: int = 0) -> ClientConnection:
        """Return a connection that begins with a handshake."""
        return ClientConnection(
            self._owner.limits,
            server=self._owner.server,
            declared=self._declares,
            offers=self._dialect.offers,
            bounds=self._dialect.bounds,
            last_id=last_id,
            awaits=self._awaits,
        )

    def _awaits(self, request_id: int, within: int | None) -> bool:
        """Return whether an answer is the one that is waited for, in its own stream."""
        pending = self._pending
        return (
            pending is not None
            and pending.id == request_id
            and not pending.settled
            and pending.delivery is not Delivery.NOT_SENT
            and (within is None or within == request_id)
        )

    async def _ask(self, request: OutgoingRequest, method: str, seconds: float) -> object:
        self._pending = self._owner.dispatch(request, method, guard=self._guard, seconds=seconds)
        return await self._pending.wait()
