"""The client of one connection, put together of its surfaces; it decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import anyio

from mcp_client.client.completion import CompletionSurface
from mcp_client.client.prompts import PromptSurface
from mcp_client.client.resources import ResourceSurface
from mcp_client.client.skills import SkillSurface
from mcp_client.client.standing import Standing, stand_again
from mcp_client.client.tools import ToolSurface
from mcp_client.ports import SendGuard
from mcp_client.protocol.capabilities import ServerCapabilities
from mcp_client.protocol.connection.frames import ServerInfo
from mcp_client.protocol.connection.modern import ModernConnection
from mcp_client.protocol.errors import LocalProtocolError
from mcp_client.protocol.events import ListKind
from mcp_client.protocol.jsonrpc import as_object
from mcp_client.protocol.logs import LogLevel, LogMessage
from mcp_client.protocol.peer.roots import Root, check_roots
from mcp_client.session import ClientSession, ask

__all__ = ["Client"]


class Client(ToolSurface, ResourceSurface, PromptSurface, CompletionSurface, SkillSurface):
    """One connection to one server, after its handshake.

    What the server says of itself is untrusted and bounded. Errors are those of
    `PendingRequest.wait` and of `ClientSession.start`.

    Attributes:
        epoch: which session of which connection this is. What was listed or assumed under another
            number is to be asked for again; subscriptions and the level of logs are, by the client.

    Args:
        session: the connection.
        epoch: the number of the connection.
        on_list_changed: see `connect`.
        on_log: see `connect`.
    """

    def __init__(
        self,
        session: ClientSession,
        *,
        epoch: int = 0,
        on_list_changed: Callable[[ListKind], object] | None = None,
        on_log: Callable[[LogMessage], object] | None = None,
    ) -> None:
        super().__init__(session)
        self.epoch = epoch
        self._on_list_changed = on_list_changed
        self._gone = anyio.Event()
        session.on_lost = self._lost
        session.bulletin.on_notice = session.recall.notified
        session.bulletin.on_list_changed = self._list_changed
        session.bulletin.on_log = on_log
        session.renewal.restore = self._restore

    @property
    def protocol_version(self) -> str:
        """The version that was negotiated."""
        return self.session.connection.protocol_version

    @property
    def capabilities(self) -> ServerCapabilities:
        """What the server declared."""
        return self.session.connection.capabilities

    @property
    def server_info(self) -> ServerInfo:
        """What the server calls itself: for display only."""
        return self.session.connection.server_info

    @property
    def instructions(self) -> str:
        """What the server says about its use; empty if it says nothing."""
        return self.session.connection.instructions

    @property
    def roots(self) -> tuple[Root, ...]:
        """What the server is told when it asks for its roots."""
        return self.session.desk.roots

    @property
    def logs_dropped(self) -> int:
        """Log messages that were over the rate, or malformed."""
        return self.session.bulletin.logs_dropped

    async def ping(self, *, seconds: float | None = None) -> None:
        """Return once the server has answered a ping."""
        # a version without a handshake has no ping, and one question that every server answers
        is_modern = isinstance(self.session.connection, ModernConnection)
        method = "server/discover" if is_modern else "ping"
        result = await ask(self.session, method, b"{}", seconds=seconds)
        if as_object(result) is None:
            raise self._broken("a result is an object")

    async def set_log_level(
        self, level: LogLevel, *, guard: SendGuard | None = None, seconds: float | None = None
    ) -> None:
        """Have the server send log messages of this level and above.

        Since 2026-07-28 each request says so from now on, and nothing is sent for it.

        Raises LocalProtocolError if it has not declared that it does.
        """
        session = self.session
        if not isinstance(session.connection, ModernConnection):
            params = {"level": level.value}
            await self._ask("logging/setLevel", params, guard=guard, seconds=seconds)
            session.log_level = level
        elif session.connection.capabilities.logging:
            session.log_level = level
        else:
            raise self._wrong("the server has not declared that it logs")

    def set_roots(self, roots: Iterable[Root]) -> None:
        """Grant the server these roots and no others, and tell it if they have changed.

        Since 2026-07-28 nobody is told: a server asks for them each time.

        Raises LocalProtocolError for a root that cannot be granted, or if roots were not declared.
        """
        session = self.session
        if not session.connection.negotiated.roots:
            raise LocalProtocolError("roots were not declared", server=self.server, stage="send")
        checked = check_roots(roots, session.limits)
        if checked != session.desk.roots:
            session.desk.roots = checked
            if isinstance(session.connection, ModernConnection):
                return
            session.notify("notifications/roots/list_changed")

    @property
    def standing(self) -> Standing:
        """What was asked of the server for as long as its session lasts."""
        return Standing(self.subscriptions, self.session.log_level)

    async def restore(self, standing: Standing) -> Standing:
        """Ask for what an earlier connection to the server had, and return what was granted of it.

        A session that begins anew on the same connection does so by itself. What is no longer
        granted is left out; updates that may have been missed meanwhile are told. Raises what the
        connection's guard raised, or SessionLostError.
        """
        await stand_again(self.session, self.listener, standing)
        return self.standing

    async def _restore(self) -> None:
        await stand_again(self.session, self.listener, self.standing)

    async def wait_lost(self) -> Exception:
        """Wait until the connection is over, and return why."""
        await self._gone.wait()
        assert self.session.lost is not None
        return self.session.lost

    def begin(self) -> None:
        """Ask for the notices that have to be asked for. Nobody waits for them."""
        if isinstance(self.session.connection, ModernConnection):
            self.listener.begin()

    def begin_anew(self, epoch: int) -> None:
        """The server had forgotten the session, and a new one has begun: nothing listed holds."""
        self.epoch = epoch
        declared = self.capabilities
        for kind, has in (
            (ListKind.TOOLS, declared.tools),
            (ListKind.RESOURCES, declared.resources),
            (ListKind.PROMPTS, declared.prompts),
        ):
            if has:
                self._list_changed(kind)

    def _lost(self) -> None:
        self._gone.set()
        self._updates.end()
        self.listener.close()
        for changes in (self._tools_changed, self._resources_changed, self._prompts_changed):
            changes.tell()

    def _list_changed(self, kind: ListKind) -> None:
        match kind:
            case ListKind.TOOLS:
                self._tools_changed.tell()
            case ListKind.RESOURCES:
                self._resources_changed.tell()
            case ListKind.PROMPTS:
                self._prompts_changed.tell()
        if self._on_list_changed is not None:
            self._on_list_changed(kind)
