"""What is asked of the engine and whom it tells: targets, requests, sinks. Values, no I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, runtime_checkable
from urllib.parse import urlsplit

from mcp_client.net.http.errors import RequestRefusedError
from mcp_client.protocol.errors import Delivery

__all__ = ["ExchangeSink", "HttpRequest", "LateHeaders", "RequestHeaders", "Target"]

LateHeaders = Callable[[], Sequence[tuple[str, str]]]
"""Headers that are known only in the step of the write, such as a bearer token."""


@runtime_checkable
class RequestHeaders(Protocol):
    """Late headers that are not the same for every request: a proof names method and URL."""

    def __call__(self) -> Sequence[tuple[str, str]]:
        """Return those of a request that is not known."""
        ...

    def of(self, method: str, url: str) -> LateHeaders:
        """Return what makes those of one request."""
        ...


_PORTS: Final = {"http": 80, "https": 443}
_VISIBLE: Final = re.compile(r"[!-\[\]-~]+")
"""Visible ASCII but the backslash, which some take for a slash."""
_HOST: Final = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9.])?|\[[0-9a-f:.]+\]")
"""A name or an IPv4 address, or an IPv6 address in brackets. Names are in their ASCII form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a request goes.

    Attributes:
        scheme: http or https.
        host: in lower case; an IPv6 address in brackets.
        port: always a number.
        path: with the query, beginning with a slash, percent-encoded as it is to be sent.
        unix_socket: the path of a unix socket to connect to instead; empty if none.
        origin: scheme, host and port, the port only where it is not the scheme's own.
        authority: the host, and the port where it is not the scheme's own.
    """

    scheme: str
    host: str
    port: int
    path: str = field(default="/", repr=False)  # a query may hold a secret
    unix_socket: str = ""
    authority: str = field(init=False)
    origin: str = field(init=False)

    def __post_init__(self) -> None:
        if self.scheme not in _PORTS:
            raise RequestRefusedError("only http and https URLs are spoken to", stage="start")
        if not _HOST.fullmatch(self.host):
            raise RequestRefusedError("the URL has no valid host", stage="start")
        if not 0 < self.port < 65_536:
            raise RequestRefusedError("the URL has no valid port", stage="start")
        if not self.path.startswith("/") or not _VISIBLE.fullmatch(self.path) or "#" in self.path:
            raise RequestRefusedError("the URL has no valid path", stage="start")
        if "\0" in self.unix_socket:
            raise RequestRefusedError("a socket's path contains a zero", stage="start")
        own = self.port == _PORTS[self.scheme]
        authority = self.host if own else f"{self.host}:{self.port}"
        object.__setattr__(self, "authority", authority)
        object.__setattr__(self, "origin", f"{self.scheme}://{authority}")

    @classmethod
    def parse(cls, url: str, *, unix_socket: str = "") -> Target:
        """Return the target of a URL. A fragment is dropped.

        Raises RequestRefusedError for other schemes, user names, passwords, control characters,
        blanks, backslashes and anything that is not ASCII; the message never repeats the URL.
        """
        if not _VISIBLE.fullmatch(url):
            raise RequestRefusedError("the URL contains what a URL may not", stage="start")
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise RequestRefusedError("the URL cannot be read", stage="start") from None
        if "@" in parts.netloc:
            raise RequestRefusedError("the URL contains a user name", stage="start")
        host = (parts.hostname or "").lower()
        return cls(
            scheme=parts.scheme,
            host=f"[{host}]" if ":" in host else host,
            port=_PORTS.get(parts.scheme, 0) if port is None else port,
            path=f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}",
            unix_socket=unix_socket,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """One request. It is checked by the encoder, when it is handed to the engine.

    Attributes:
        method: a token such as POST.
        headers: without those that the encoder owns: Host, Content-Length, Transfer-Encoding,
            Connection, Accept-Encoding and the like.
        body: the whole of it.
        late_headers: called in the step of the first byte, after the guard has said yes and before
            it is asked for the last time; again if that byte has to wait. What it raises refuses
            the request.
        credential: names the incarnation of the credential that the headers carry; connections are
            never shared between two of them.
        deadline: a time of the reactor's clock by which the whole exchange must be over; it covers
            waiting, connecting and writing. None: no bound but the one on connecting.
    """

    method: str
    target: Target
    headers: Sequence[tuple[str, str]] = field(default=(), repr=False)
    body: bytes = field(default=b"", repr=False)
    late_headers: LateHeaders | None = None
    credential: str = ""
    deadline: float | None = None


class ExchangeSink(Protocol):
    """Who is told of one exchange, synchronously, in the step in which it happens.

    Exactly one of `refused`, `ended` and `failed` comes, and it comes last; after `abort` none
    comes. Nothing comes before `HttpEngine.exchange` has returned. The engine keeps `delivery` and
    `bytes_sent` of the ticket and calls none of the ticket's methods: that is the sink's to do.
    """

    def refused(self, error: Exception) -> None:
        """The guard, the record or the late headers said no: no byte left."""
        ...

    def first_byte_out(self) -> None:
        """The kernel took the first byte of the request."""
        ...

    def written(self) -> None:
        """The kernel took the last byte of the request."""
        ...

    def response_started(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """The head of the final response is here. Names are in lower case, values latin-1."""
        ...

    def body(self, data: bytes) -> None:
        """Some of the body, without its transfer coding. Never empty.

        What this or `response_started` raises ends the exchange: it comes back by `failed`.
        """
        ...

    def ended(self) -> None:
        """The response is complete."""
        ...

    def failed(self, error: Exception, delivery: Delivery) -> None:
        """The exchange came to nothing, or broke off; `delivery` is the ticket's."""
        ...
