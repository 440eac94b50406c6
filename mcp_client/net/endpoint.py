"""Where a server is and what is sent to it with each request; redirects. It sends nothing itself."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol
from urllib.parse import urljoin

from mcp_client.net.http.encoding import OWNED_HEADERS
from mcp_client.net.http.messages import (
    ExchangeSink,
    HttpRequest,
    LateHeaders,
    RequestHeaders,
    Target,
)
from mcp_client.ports import SendGuard, Ticket
from mcp_client.protocol.errors import (
    Delivery,
    LocalProtocolError,
    McpError,
    RemoteProtocolError,
)

__all__ = [
    "Endpoint",
    "Engine",
    "RunningExchange",
    "name_server",
    "within_origin",
]

_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+").fullmatch
_OURS: Final = frozenset({"accept", "content-type", "last-event-id"})
_OURS_PREFIX: Final = "mcp-"


class RunningExchange(Protocol):
    """An exchange under way. `over` once nothing more comes of it."""

    over: bool

    def abort(self) -> None:
        """End it now; its sink is told nothing more. Harmless if it is over."""
        ...


class Engine(Protocol):
    """What a transport needs of `mcp_client.net.http`."""

    def exchange(
        self, request: HttpRequest, guard: SendGuard, ticket: Ticket, sink: ExchangeSink
    ) -> RunningExchange:
        """Begin an exchange; see `HttpEngine.exchange`."""
        ...

    def close(self) -> None:
        """End everything, in this step."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One server's address and what every request to it carries.

    Attributes:
        target: where it is. Never part of an error: it may hold a secret.
        headers: set by whoever configured the server. Never shown.
        late_headers: known only in the step of a write, such as a bearer token.
        credential: names the incarnation of the credentials in both.

    Raises LocalProtocolError for a header that is not the configuration's to set.
    """

    target: Target = field(repr=False)
    headers: Sequence[tuple[str, str]] = field(default=(), repr=False)
    late_headers: LateHeaders | None = field(default=None, repr=False)
    credential: str = ""

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for name, value in self.headers:
            lower = name.lower()
            if lower in seen:
                raise LocalProtocolError(f"the header {lower} is set twice", stage="start")
            seen.add(lower)
            if lower in OWNED_HEADERS or lower in _OURS or lower.startswith(_OURS_PREFIX):
                raise LocalProtocolError(
                    f"the header {lower} is not the configuration's to set", stage="start"
                )
            if not _TOKEN(name):
                raise LocalProtocolError("a header's name is no token", stage="start")
            if not value.isascii() or not value.isprintable() or value != value.strip():
                raise LocalProtocolError(
                    f"the value of the header {lower} holds what a header cannot", stage="start"
                )

    @classmethod
    def parse(
        cls,
        url: str,
        *,
        headers: Mapping[str, str],
        unix_socket: str = "",
        late_headers: LateHeaders | None = None,
        credential: str = "",
    ) -> Endpoint:
        """Return the endpoint at a URL. Raises LocalProtocolError, which never repeats it."""
        return cls(
            target=Target.parse(url, unix_socket=unix_socket),
            headers=tuple(headers.items()),
            late_headers=late_headers,
            credential=credential,
        )

    def request(
        self,
        method: str,
        headers: Sequence[tuple[str, str]],
        body: bytes = b"",
        *,
        target: Target | None = None,
        deadline: float | None = None,
    ) -> HttpRequest:
        """Return a request to it, or to another target, which must be of the same origin."""
        if target is None:
            target = self.target
        elif target.origin != self.target.origin:
            raise LocalProtocolError("a request would leave the server's origin", stage="send")
        late = self.late_headers
        if isinstance(late, RequestHeaders):
            late = late.of(method, f"{target.origin}{target.path}")
        return HttpRequest(
            method=method,
            target=target,
            headers=(*self.headers, *headers),
            body=body,
            late_headers=late,
            credential=self.credential,
            deadline=deadline,
        )


def within_origin(base: Target, reference: str) -> Target:
    """Return the target of a reference that a server gave, relative to `base`.

    Raises RemoteProtocolError if it is no URL of the same origin: nothing is sent there.
    """
    try:
        target = Target.parse(
            urljoin(f"{base.origin}{base.path}", reference), unix_socket=base.unix_socket
        )
    except (LocalProtocolError, ValueError):
        raise RemoteProtocolError("the server named no usable address", stage="receive") from None
    # credentials and session ids never leave the configured origin
    if target.origin != base.origin:
        raise RemoteProtocolError("the server named an address of another origin", stage="receive")
    return target


def name_server(error: Exception, server: str, delivery: Delivery) -> Exception:
    """Note in an error of ours whose it is and what the server may have seen; return it."""
    if isinstance(error, McpError):
        error.server = error.server or server
        error.delivery = delivery
    return error
