"""Streams of notices of one session (MCP 2026-07-28): asked for, acknowledged, ended; it sends nothing."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from mcp_client.protocol.modern.subscriptions import SubscriptionFilter
from mcp_client.session.pending import PendingRequest

__all__ = ["NoticeStream", "StreamBook"]


class NoticeStream:
    """One stream, from its request to its end. Its notices go where all notices go.

    Attributes:
        wanted: what was asked for.
        granted: what the server granted of it; None before it has answered.
        pending: the request, which is answered when the stream ends.
        on_acknowledged: called in the step in which the server answers.
        on_end: called in the step in which the stream ends, however it does.
    """

    def __init__(self, pending: PendingRequest, wanted: SubscriptionFilter) -> None:
        self.pending = pending
        self.wanted = wanted
        self.granted: SubscriptionFilter | None = None
        self.on_acknowledged: Callable[[NoticeStream], object] | None = None
        self.on_end: Callable[[NoticeStream], object] | None = None
        self._acknowledged = anyio.Event()

    async def wait_acknowledged(self) -> SubscriptionFilter:
        """Return what the server granted. Raises what ended the stream, if that came first."""
        await self._acknowledged.wait()
        if self.granted is None:
            await self.wait_ended()
            return SubscriptionFilter()
        return self.granted

    async def wait_ended(self) -> None:
        """Return when the server ends the stream as it should; raises what else ended it.

        One task waits. If it is cancelled the stream ends, and the server is told.
        """
        await self.pending.wait()

    def acknowledge(self, granted: SubscriptionFilter) -> None:
        """The server has answered. For the session."""
        self.granted = granted
        self._acknowledged.set()
        if self.on_acknowledged is not None:
            self.on_acknowledged(self)

    def end(self) -> None:
        """Nothing more comes. For the session."""
        self._acknowledged.set()
        if self.on_end is not None:
            self.on_end(self)


class StreamBook:
    """The streams of one session that have not ended, by the ids of their requests."""

    def __init__(self) -> None:
        self._streams: dict[int, NoticeStream] = {}

    def __len__(self) -> int:
        return len(self._streams)

    def add(self, stream: NoticeStream) -> None:
        """Take note of a stream that was asked for."""
        self._streams[stream.pending.id] = stream

    def acknowledge(self, request_id: int, granted: SubscriptionFilter) -> None:
        """The server has answered about a stream."""
        stream = self._streams.get(request_id)
        if stream is not None:
            stream.acknowledge(granted)

    def forget(self, request_id: int) -> bool:
        """A request has ended. Returns whether it was that of a stream."""
        stream = self._streams.pop(request_id, None)
        if stream is not None:
            stream.end()
        return stream is not None
