"""Answers to a server's requests on their way out, and how many wait; it frames and sends none."""

from __future__ import annotations

from collections.abc import Callable

from mcp_client.protocol.errors import FrameTooLargeError
from mcp_client.protocol.events import RequestId
from mcp_client.protocol.limits import ClientLimits
from mcp_client.session.desk import Outcome
from mcp_client.session.notices import Notice

__all__ = ["Answers"]


class Answers:
    """Answers that were not written yet.

    Args:
        limits: the bounds of the connection.
        server: the host's label of the server, for errors.
        frame: puts an answer into a frame.
        send: queues a frame; False if there is no room for it.
    """

    def __init__(
        self,
        limits: ClientLimits,
        *,
        server: str,
        frame: Callable[[RequestId, Outcome], bytes],
        send: Callable[[bytes, Notice], bool],
    ) -> None:
        self._limits = limits
        self._server = server
        self._frame = frame
        self._send = send
        self._waiting = 0

    @property
    def full(self) -> bool:
        """True while as many wait as may."""
        return self._waiting >= self._limits.peer_requests_max

    def give(self, request_id: RequestId, outcome: Outcome) -> None:
        """Send the answer to a request of the server. Raises McpError if it cannot be a frame."""
        frame = self._frame(request_id, outcome)
        if len(frame) > self._limits.frame_bytes_max:
            raise FrameTooLargeError(
                f"an answer has more than {self._limits.frame_bytes_max} bytes",
                server=self._server,
                stage="send",
            )
        self._waiting += 1
        if not self._send(frame, Notice(over=self._over)):
            self._waiting -= 1

    def _over(self, _error: Exception | None) -> None:
        self._waiting -= 1
