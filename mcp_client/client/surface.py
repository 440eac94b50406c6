"""What every surface of a client is built on: one request, one listing; it knows no method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar, cast

from mcp_client.client.rounds import Exchange, continue_exchange, run_exchange
from mcp_client.ports import SendGuard
from mcp_client.protocol.declaration import ClientCapabilities
from mcp_client.protocol.errors import (
    CallTimeoutError,
    Delivery,
    LocalProtocolError,
    PeerError,
    RemoteProtocolError,
)
from mcp_client.protocol.jsonrpc import as_object, canonical, encode
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.modern.mrtr import InputRequired
from mcp_client.protocol.peer.requests import INVALID_PARAMS
from mcp_client.protocol.surfaces.items import Item, Quarantined
from mcp_client.session import ClientSession

__all__ = ["Listed", "Surface"]

ItemT = TypeVar("ItemT", bound=Item)


class Surface:
    """Requests over one connection. Errors are those of `PendingRequest.wait` and of `start`."""

    def __init__(self, session: ClientSession) -> None:
        self.session = session

    @property
    def server(self) -> str:
        """The host's label of the server."""
        return self.session.server

    async def _ask(
        self,
        method: str,
        params: Mapping[str, object],
        *,
        guard: SendGuard | None = None,
        seconds: float | None = None,
        declares: ClientCapabilities | None = None,
    ) -> object:
        """Send one request, under the connection's own guard if it has none, and return its result.

        See `run_exchange` for what happens to questions of the server.
        """
        how = Exchange(guard=guard, seconds=seconds, declares=declares)
        return await run_exchange(self.session, method, self._encode(params), how)

    async def _continue(
        self, method: str, required: InputRequired, answers: Mapping[str, object], how: Exchange
    ) -> object:
        if required.method != method:
            raise LocalProtocolError(
                "the questions belong to a request of another kind",
                server=self.server,
                stage="send",
            )
        return await continue_exchange(self.session, required, answers, how)

    def _encode(self, params: Mapping[str, object], *, within: int = 0) -> bytes:
        """Encode params, or what will stand `within` so many objects of them."""
        return encode(params, depth_max=self.session.limits.nesting_depth_max - within)

    async def _list(
        self,
        method: str,
        member: str,
        read: Callable[[object, ClientLimits], ItemT | Quarantined],
        identity: Callable[[ItemT], str],
        *,
        count_max: int,
    ) -> Listed[ItemT]:
        """Return what is listed on all pages.

        A server that refuses a cursor of its own has changed its list meanwhile: all pages are
        dropped and asked for once more. All of it together ends within `listing_seconds_max`.
        """
        ends_at = self.session.reactor.now() + self.session.limits.listing_seconds_max
        for is_last in (False, True):
            found = Listed(identity)
            try:
                await self._take_pages(
                    method, member, read, found, count_max=count_max, ends_at=ends_at
                )
            except PeerError as error:
                if is_last or not found.pages or error.code != INVALID_PARAMS:
                    raise
                self.session.recall.drop(method)
            else:
                return found
        raise AssertionError("the second time either returns or raises")

    async def _take_pages(
        self,
        method: str,
        member: str,
        read: Callable[[object, ClientLimits], ItemT | Quarantined],
        found: Listed[ItemT],
        *,
        count_max: int,
        ends_at: float,
    ) -> None:
        limits = self.session.limits
        cursors: set[str] = set()
        params: dict[str, object] = {}
        while found.pages < limits.pages_max:
            left = self._seconds_until(ends_at)
            result = as_object(await self._ask(method, params, seconds=left))
            page = None if result is None else result.get(member)
            if result is None or not isinstance(page, list):
                raise self._broken("a page of a listing is an array")
            for definition in cast("list[object]", page):
                item = read(definition, limits)
                # what is set apart is not kept, and still was sent and looked at
                whole = canonical(definition) if isinstance(item, Quarantined) else item.definition
                found.add(item, len(whole))
                if found.count > count_max:
                    raise self._broken(f"a listing has more than {count_max} entries")
                if found.size > limits.listing_bytes_max:
                    raise self._broken(f"a listing has more than {limits.listing_bytes_max} bytes")
            found.pages += 1
            # MCP, pagination: cursors are opaque, and an empty one is a cursor
            cursor = result.get("nextCursor")
            if cursor is None:
                return
            if not isinstance(cursor, str) or len(cursor) > limits.cursor_chars_max:
                raise self._broken("a cursor is a text within bounds")
            if cursor == "" and cursor in cursors:
                return  # to such a server it means that there is no more
            if cursor in cursors:
                raise self._broken("the pages of a listing turn in a circle")
            cursors.add(cursor)
            params = {"cursor": cursor}
        raise self._broken(f"a listing has more than {limits.pages_max} pages")

    def _seconds_until(self, ends_at: float) -> float:
        """How long one page may take. Raises CallTimeoutError if nothing is left of the listing."""
        left = ends_at - self.session.reactor.now()
        if left <= 0:
            raise CallTimeoutError(
                f"a listing takes more than {self.session.limits.listing_seconds_max:g} seconds",
                server=self.server,
                stage="wait",
                delivery=Delivery.ANSWERED,
            )
        return min(left, self.session.limits.request_seconds_max)

    def _wrong(self, detail: str) -> LocalProtocolError:
        return LocalProtocolError(detail, server=self.server, stage="send")

    def _broken(self, detail: str) -> RemoteProtocolError:
        return RemoteProtocolError(
            detail, server=self.server, stage="receive", delivery=Delivery.ANSWERED
        )


class Listed(Generic[ItemT]):
    """A listing on its way: each thing once, and none of those that came in two versions."""

    def __init__(self, identity: Callable[[ItemT], str]) -> None:
        self.pages = 0
        self.count = 0
        self.size = 0
        self._identity = identity
        self._items: dict[str, ItemT] = {}
        self._quarantined: list[Quarantined] = []
        self._ambiguous: set[str] = set()

    @property
    def items(self) -> tuple[ItemT, ...]:
        """What can be used, in the server's own order."""
        return tuple(self._items.values())

    @property
    def quarantined(self) -> tuple[Quarantined, ...]:
        """What cannot."""
        return tuple(self._quarantined)

    def add(self, item: ItemT | Quarantined, size: int) -> None:
        """Take one entry, whose definition has so many bytes."""
        self.count += 1
        self.size += size
        if isinstance(item, Quarantined):
            self._quarantined.append(item)
            return
        name = self._identity(item)
        known = self._items.get(name)
        if name in self._ambiguous or (known is not None and known.digest == item.digest):
            return
        if known is None:
            self._items[name] = item
            return
        # neither definition may silently win
        del self._items[name]
        self._ambiguous.add(name)
        reason = "it is listed twice, with different definitions"
        self._quarantined.append(Quarantined(name, reason))
