"""What can go wrong with one HTTP exchange, by where it went wrong; it knows no status codes."""

from __future__ import annotations

from enum import Enum

from mcp_client.protocol.errors import Delivery, LocalProtocolError, McpError, RemoteProtocolError

__all__ = [
    "CertificateError",
    "ConnectError",
    "ConnectStep",
    "ConnectTimeoutError",
    "ConnectionLostError",
    "ExchangeTimeoutError",
    "HttpError",
    "HttpProtocolError",
    "RequestRefusedError",
]


class ConnectStep(Enum):
    """How far a new connection got."""

    RESOLVE = "resolve"
    """The name was being looked up."""
    CONNECT = "connect"
    """A socket was being connected, to the origin or to the proxy."""
    PROXY = "proxy"
    """The proxy was asked for a tunnel."""
    TLS = "tls"
    """The handshake was under way."""


class HttpError(McpError):
    """One exchange failed. `stage` is one of start (connecting), send, wait, receive, close."""


class RequestRefusedError(HttpError, LocalProtocolError):
    """The request cannot be sent as it is, or a bound is reached; no byte left."""


class ConnectError(HttpError):
    """There is no connection; no byte of the request left.

    Attributes:
        step: how far it got.
        proxy_status: the status with which the proxy refused a tunnel, or None.
    """

    def __init__(self, message: str, *, step: ConnectStep, proxy_status: int | None = None) -> None:
        super().__init__(message, stage="start", delivery=Delivery.NOT_SENT)
        self.step = step
        self.proxy_status = proxy_status


class ConnectTimeoutError(ConnectError):
    """The time for connecting ran out."""


class CertificateError(ConnectError):
    """The server's certificate is not one that we trust for this name."""


class ExchangeTimeoutError(HttpError):
    """The deadline of an exchange passed."""


class ConnectionLostError(HttpError):
    """The connection ended before the exchange did."""


class HttpProtocolError(HttpError, RemoteProtocolError):
    """The response is not HTTP/1.1 as we accept it."""
