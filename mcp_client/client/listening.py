"""Notices where they have to be asked for (MCP 2026-07-28): one stream for all that is wanted."""

from __future__ import annotations

from mcp_client.net.reactor import TimerHandle
from mcp_client.ports import SendGuard
from mcp_client.protocol.errors import McpError
from mcp_client.protocol.modern.caching import CACHEABLE
from mcp_client.protocol.modern.subscriptions import SubscriptionFilter
from mcp_client.session import ClientSession
from mcp_client.session.streams import NoticeStream

__all__ = ["Listener"]


class Listener:
    """Keeps one stream open for changed lists and subscribed resources, as long as it can.

    A stream that breaks is asked for anew after a while, doubled each time, `relistens_max` times
    in a row. What may have been missed meanwhile is told as if the server had told it.
    """

    def __init__(self, session: ClientSession) -> None:
        self._session = session
        self._stream: NoticeStream | None = None
        self._began = 0.0
        self._failures = 0
        self._timer: TimerHandle | None = None

    @property
    def granted(self) -> SubscriptionFilter:
        """What the server tells at present."""
        stream = self._stream
        return SubscriptionFilter() if stream is None or stream.granted is None else stream.granted

    def begin(self) -> None:
        """Ask for the changes that the server says it tells. Nobody waits for its answer."""
        if self._wanted() != SubscriptionFilter():
            self._listen(self._session.guard)

    async def renew(self, *, guard: SendGuard | None = None) -> None:
        """Listen to what is wanted by now, and return once the server has answered.

        Raises what the request for the stream raises; the stream before it then stays.
        """
        before = self._stream
        stream = self._listen(self._session.guard if guard is None else guard)
        try:
            await stream.wait_acknowledged()
        except BaseException:
            if self._stream is stream:
                self._stream = before
            self._drop(stream)
            raise
        if before is not None:
            self._drop(before)

    def close(self) -> None:
        """Listen to nothing any more. The connection is over."""
        if self._timer is not None:
            self._timer.cancel()
        self._stream = None

    def _wanted(self) -> SubscriptionFilter:
        declared = self._session.connection.capabilities
        return SubscriptionFilter(
            tools_list_changed=declared.tools_list_changed,
            prompts_list_changed=declared.prompts_list_changed,
            resources_list_changed=declared.resources_list_changed,
            resources=frozenset(self._session.bulletin.subscribed),
        )

    def _listen(self, guard: SendGuard) -> NoticeStream:
        stream = self._stream = self._session.listen(self._wanted(), guard=guard)
        self._began = self._session.reactor.now()
        stream.on_end = self._ended
        return stream

    def _drop(self, stream: NoticeStream) -> None:
        stream.on_end = None
        self._session.give_up(stream.pending)

    def _ended(self, stream: NoticeStream) -> None:
        session = self._session
        if stream is not self._stream or session.lost is not None:
            return
        if session.reactor.now() - self._began >= session.bounds.listen_settled_seconds:
            self._failures = 0
        self._failures += 1
        self._stream = None
        if self._failures > session.bounds.relistens_max:
            return
        delay = session.bounds.relisten_seconds_min * 2 ** (self._failures - 1)
        self._timer = session.reactor.at(session.reactor.now() + delay, self._again)

    def _again(self) -> None:
        self._timer = None
        session = self._session
        if self._stream is not None or session.lost is not None:
            return
        try:
            stream = self._listen(session.guard)
        except McpError:
            return  # the connection takes no more requests: it has other troubles
        stream.on_acknowledged = self._missed

    def _missed(self, stream: NoticeStream) -> None:
        granted = stream.granted or SubscriptionFilter()
        bulletin = self._session.bulletin
        self._session.recall.drop(*CACHEABLE)
        for kind, told in (
            ("tools", granted.tools_list_changed),
            ("prompts", granted.prompts_list_changed),
            ("resources", granted.resources_list_changed),
        ):
            if told:
                bulletin.take(f"notifications/{kind}/list_changed", {})
        for uri in granted.resources:
            bulletin.take("notifications/resources/updated", {"uri": uri})
