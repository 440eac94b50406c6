"""What can go wrong between this client and a server, and what the server may have seen of it."""

from __future__ import annotations

from enum import Enum

__all__ = [
    "CallCancelledError",
    "CallTimeoutError",
    "Delivery",
    "FrameTooLargeError",
    "HandshakeError",
    "LocalProtocolError",
    "McpError",
    "PeerError",
    "RemoteProtocolError",
    "ResourceNotFoundError",
    "ServerGoneError",
    "StartError",
    "UnsupportedVersionError",
]


class Delivery(Enum):
    """What the server may have seen of a frame. Ordered by how much it may have seen."""

    NOT_SENT = "not_sent"
    """No byte of the frame was handed to the kernel."""
    REFUSED = "refused"
    """The server rejected the request before executing it."""
    MAYBE_SENT = "maybe_sent"
    """At least one byte was handed to the kernel: the request may have been executed."""
    ANSWERED = "answered"
    """The server answered, whether or not the answer was delivered to the caller."""


class McpError(Exception):
    """A failure of one connection or one request.

    Attributes:
        server: the label that the host gave to the server (never the server's own name).
        stage: where it happened, one of start, handshake, send, wait, receive, close.
        delivery: what the server may have seen of the request concerned.
    """

    def __init__(
        self,
        message: str,
        *,
        server: str = "",
        stage: str = "",
        delivery: Delivery = Delivery.NOT_SENT,
    ) -> None:
        super().__init__(message)
        self.server = server
        self.stage = stage
        self.delivery = delivery


class LocalProtocolError(McpError):
    """The caller asked for something that the protocol or a bound forbids; nothing was sent."""


class RemoteProtocolError(McpError):
    """The server broke the protocol."""


class FrameTooLargeError(McpError):
    """A frame is over the bound. On the way out it is the caller's fault, on the way in the peer's."""


class StartError(McpError):
    """The server's process could not be started."""


class HandshakeError(McpError):
    """The server did not complete `initialize` as it must."""


class UnsupportedVersionError(HandshakeError):
    """The server answered `initialize` with a protocol version that this client does not speak."""

    def __init__(self, message: str, *, offered: str, server: str = "") -> None:
        super().__init__(message, server=server, stage="handshake", delivery=Delivery.ANSWERED)
        self.offered = offered


class CallCancelledError(McpError):
    """The task that waited for a request was cancelled.

    Observers are told it; the task itself sees its own cancellation.
    """


class CallTimeoutError(McpError):
    """The deadline of a request passed without an answer."""


class PeerError(McpError):
    """The server answered with a JSON-RPC error object.

    Attributes:
        code: the JSON-RPC error code.
        peer_message: the server's own text: untrusted, bounded, never part of `str(error)`.
        data: the `data` member, as decoded; untrusted.
    """

    def __init__(
        self, *, code: int, peer_message: str, data: object = None, server: str = ""
    ) -> None:
        super().__init__(
            f"the server answered with error {code}",
            server=server,
            stage="receive",
            delivery=Delivery.ANSWERED,
        )
        self.code = code
        self.peer_message = peer_message
        self.data = data


class ResourceNotFoundError(PeerError):
    """The server answered a read or a subscription with one of the codes for a missing resource.

    -32002 says so; -32602 says it too (MCP 2026-07-28), and stands for any wrong parameter.
    """


class ServerGoneError(McpError):
    """The connection ended while it was in use.

    Attributes:
        exit_status: the process's exit status, negative for a signal; None if not known.
        stderr_tail: the last of what the server wrote to stderr: untrusted, bounded, never part
            of `str(error)`.
    """

    def __init__(
        self,
        message: str,
        *,
        server: str = "",
        stage: str = "wait",
        delivery: Delivery = Delivery.NOT_SENT,
        exit_status: int | None = None,
        stderr_tail: str = "",
    ) -> None:
        super().__init__(message, server=server, stage=stage, delivery=delivery)
        self.exit_status = exit_status
        self.stderr_tail = stderr_tail
