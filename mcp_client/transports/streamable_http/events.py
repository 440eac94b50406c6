"""The events of one response as messages; whose they are, others say."""

from __future__ import annotations

from collections.abc import Callable

from mcp_client.protocol.http.resumption import Resumption
from mcp_client.protocol.http.sse import SseDecoder

__all__ = ["EventReader"]


class EventReader:
    """Bytes of one response in, messages out; it remembers where to resume."""

    __slots__ = ("_decoder", "_deliver", "_resumption")

    def __init__(
        self, bound: int, resumption: Resumption, deliver: Callable[[bytes], object]
    ) -> None:
        self._decoder = SseDecoder(bound)
        self._resumption = resumption
        self._deliver = deliver

    def feed(self, data: bytes) -> None:
        """Take more. Raises FrameTooLargeError."""
        for event in self._decoder.feed(data):
            self._resumption.note(event)
            # MCP 2025-11-25: an event without data primes the client to reconnect
            if event.data and event.kind == "message":
                self._deliver(event.data)
