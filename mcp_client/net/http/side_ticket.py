"""The ticket of a request that carries no frame: who sends it hears of it elsewhere. It sends nothing."""

from __future__ import annotations

from collections.abc import Sequence

from mcp_client.protocol.errors import Delivery

__all__ = ["SideTicket"]


class SideTicket:
    """See `mcp_client.ports.Ticket`: that of a GET, a DELETE, a request to who is no MCP server.

    `settled` is set once nobody wants it any more.
    """

    id: int | None = None
    method: str = ""
    name: str = ""
    headers: Sequence[tuple[str, str]] = ()

    def __init__(self) -> None:
        self.delivery = Delivery.NOT_SENT
        self.bytes_sent = 0
        self.settled = False

    def refused(self, error: Exception) -> None:
        """Do nothing: the exchange's sink is told."""

    def written(self) -> None:
        """Do nothing: the exchange's sink is told."""

    def failed(self, error: Exception) -> None:
        """Do nothing: the exchange's sink is told."""

    def lost(self) -> None:
        """Do nothing: the exchange's sink is told."""
