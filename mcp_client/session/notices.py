"""The ticket of a frame for which nobody waits: a notification or an answer; it sends nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mcp_client.protocol.errors import Delivery

__all__ = ["Notice"]


class Notice:
    """See `mcp_client.ports.Ticket`. `over` is called once the frame can leave no more.

    `tell` is called with the method once all of it has left.
    """

    __slots__ = ("_over", "bytes_sent", "delivery", "method", "settled", "tell")
    id: int | None = None
    name: str = ""
    headers: Sequence[tuple[str, str]] = ()

    def __init__(
        self, method: str = "", *, over: Callable[[Exception | None], object] | None = None
    ) -> None:
        self.method = method
        self.delivery = Delivery.NOT_SENT
        self.bytes_sent = 0
        self.settled = False
        self._over = over
        self.tell: Callable[[str], object] | None = None

    def refused(self, error: Exception) -> None:
        """No byte left."""
        if self._over is not None:
            self._over(error)

    def written(self) -> None:
        """The whole frame was taken."""
        if self.tell is not None:
            self.tell(self.method)
        if self._over is not None:
            self._over(None)

    def failed(self, error: Exception) -> None:
        """It came to nothing."""
        if self._over is not None:
            self._over(error)

    def lost(self) -> None:
        """Do nothing: `connection_lost` ends everything."""
