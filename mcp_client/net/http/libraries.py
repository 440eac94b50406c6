"""What httpx and libraries after its model have in common: headers they add, names of errors. No I/O.

It imports none of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mcp_client.net.http.errors import (
    ConnectError,
    ConnectionLostError,
    ConnectStep,
    ConnectTimeoutError,
    ExchangeTimeoutError,
    HttpError,
    HttpProtocolError,
    RequestRefusedError,
)

__all__ = ["asked_headers", "error_name"]

_ADDED: Final = frozenset(
    {"accept-encoding", "connection", "content-length", "host", "transfer-encoding"}
)
"""Headers that a library adds by itself; the encoder writes its own."""


def asked_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return those headers of a request that the library did not add by itself."""
    return [(name, value) for name, value in headers if name.lower() not in _ADDED]


def error_name(error: HttpError) -> str:
    """Return the name of the class with which the libraries say what went wrong.

    Where they have no word for it that is the one from which all of these descend.
    """
    match error:
        case ConnectTimeoutError():
            return "ConnectTimeout"
        case ConnectError(step=ConnectStep.PROXY):
            return "ProxyError"
        case ConnectError():
            return "ConnectError"
        case ExchangeTimeoutError(stage="send"):
            return "WriteTimeout"
        case ExchangeTimeoutError():
            return "ReadTimeout"
        case ConnectionLostError(stage="send"):
            return "WriteError"
        case ConnectionLostError():
            return "ReadError"
        case HttpProtocolError():
            return "RemoteProtocolError"
        case RequestRefusedError():
            return "LocalProtocolError"
        case _:
            return "TransportError"
