"""A scripted server of MCP 2026-07-28: no handshake, questions in between, streams of notices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mcp_client.client import Host
from mcp_client.ports import ClientObserver
from mcp_client.protocol.jsonrpc import as_object
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.modern.metadata import SUBSCRIPTION_ID, UNSUPPORTED_VERSION
from mcp_client.protocol.modern.subscriptions import ACKNOWLEDGED
from mcp_client.protocol.versions import MODERN_VERSION
from mcp_client.testing.server import ScriptedRequest, ScriptedServer
from mcp_client.transports.memory import MemoryTransport

__all__ = ["ModernServer"]


class ModernServer(ScriptedServer):
    """A `ScriptedServer` that speaks 2026-07-28 alone.

    It answers `server/discover`, says `complete` in results that say nothing, acknowledges every
    stream of notices with all that was asked for, and refuses `initialize` by naming its version.

    Args:
        name: the host's label of it.
        capabilities: what it declares.
        supported: the versions that it says it speaks.
        page_size: tools on one page of a listing; all if None.
        carries_headers: whether its connection is one on which headers mirror arguments.

    Attributes:
        discover_result: what it answers to `server/discover`; change it to misbehave.
        ttl_ms: how long its listings live.
        cache_scope: whose they are.
        grants: what it grants of each stream of notices; all that was asked for if None.
        streams: the ids of requests for notices that have not been ended, in order.
    """

    def __init__(
        self,
        name: str = "modern",
        *,
        capabilities: Mapping[str, object] | None = None,
        supported: Sequence[str] = (MODERN_VERSION,),
        page_size: int | None = None,
        carries_headers: bool = False,
    ) -> None:
        super().__init__(name, page_size=page_size)
        declared: Mapping[str, object] = {"tools": {}} if capabilities is None else capabilities
        self.discover_result: object = {
            "supportedVersions": [*supported],
            "capabilities": declared,
            "instructions": "",
            "ttlMs": 0,
            "cacheScope": "public",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "modern", "version": "1"}},
        }
        self.ttl_ms = 0
        self.cache_scope = "private"
        self.streams: list[int | str] = []
        self.grants: Mapping[str, object] | None = None
        self._label = name
        self._supported = supported
        self._carries_headers = carries_headers
        self.on("initialize", self._refuse_initialize)
        self.on("server/discover", lambda request: request.answer(self.discover_result))
        self.on("subscriptions/listen", self._acknowledge)

    def transport(
        self, host: Host, *, limits: ClientLimits, observer: ClientObserver
    ) -> MemoryTransport:
        """Return the connection to it."""
        return MemoryTransport(
            self,
            reactor=host.reactor,
            limits=limits,
            observer=observer,
            server=self._label,
            carries_headers=self._carries_headers,
        )

    def answer(self, request_id: object, result: object) -> None:
        """Answer any id with a result, which is complete unless it says otherwise."""
        members = as_object(result)
        if members is None:
            super().answer(request_id, result)
            return
        whole = {"resultType": "complete", **members}
        if "tools" in members:
            whole = {"ttlMs": self.ttl_ms, "cacheScope": self.cache_scope, **whole}
        super().answer(request_id, whole)

    def notice(
        self, method: str, params: Mapping[str, object] | None = None, *, stream: object = None
    ) -> None:
        """Send a notice on a stream, the last one that was asked for if None."""
        request_id = self.streams[-1] if stream is None else stream
        self.notify(method, {"_meta": {SUBSCRIPTION_ID: request_id}, **(params or {})})

    def end_stream(self, stream: int | str) -> None:
        """End a stream as a server should: by answering its request."""
        self.streams.remove(stream)
        self.answer(stream, {"_meta": {SUBSCRIPTION_ID: stream}})

    def _refuse_initialize(self, request: ScriptedRequest) -> None:
        data = {"supported": [*self._supported], "requested": "2025-11-25"}
        request.refuse(UNSUPPORTED_VERSION, "unsupported protocol version", data)

    def _acknowledge(self, request: ScriptedRequest) -> None:
        self.streams.append(request.request_id)
        asked = as_object(request.params.get("notifications")) or {}
        granted = asked if self.grants is None else self.grants
        self.notice(ACKNOWLEDGED, {"notifications": granted})
