"""What a server can say of a message by its HTTP status, as errors; it reads no response."""

from __future__ import annotations

from mcp_client.protocol.errors import Delivery, McpError
from mcp_client.protocol.http.challenges import Challenge

__all__ = ["AuthorizationRequiredError", "HttpStatusError", "SessionLostError"]


class HttpStatusError(McpError):
    """The server answered a message with a status that is no success.

    Attributes:
        status: the HTTP status.
        code: the code of the JSON-RPC error in the body, if it holds one.
        peer_message: that error's own text: untrusted, bounded, never part of `str(error)`.
        data: its `data` member, as decoded; untrusted.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: int | None = None,
        peer_message: str = "",
        data: object = None,
        server: str = "",
        stage: str = "receive",
        delivery: Delivery = Delivery.MAYBE_SENT,
    ) -> None:
        super().__init__(message, server=server, stage=stage, delivery=delivery)
        self.status = status
        self.code = code
        self.peer_message = peer_message
        self.data = data


class AuthorizationRequiredError(HttpStatusError):
    """The server wants other credentials: status 401 or 403.

    Attributes:
        challenges: what it says about them; untrusted, bounded, never part of `str(error)`.
        nonce: what the next proof of possession has to hold (RFC 9449, 9); empty if nothing.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int,
        challenges: tuple[Challenge, ...],
        nonce: str = "",
        server: str = "",
        delivery: Delivery = Delivery.MAYBE_SENT,
    ) -> None:
        super().__init__(message, status=status, server=server, delivery=delivery)
        self.challenges = challenges
        self.nonce = nonce


class SessionLostError(McpError):
    """The server no longer knows the session. It has to be initialized anew.

    The delivery is REFUSED where the server turned this very message away with a 404: it was not
    executed, and may be sent again in the new session, as a new send.
    """
